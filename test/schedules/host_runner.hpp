// Runs schedules on the host device: kernels compiled in batches, every tensor in a fenced buffer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "jit/backends.hpp"
#include "jit/binary_cache.hpp"
#include "reference/reference.hpp"
#include "schedules/schedule.hpp"

namespace sl::test {

/// One thing to run: a problem, and how. Data comes from `seed` and `fill`.
struct Job {
  ConvProblem problem;
  const Schedule* schedule = nullptr;
  Config config = {};
  std::uint64_t seed = 1;
  Fill fill = Fill::random;
  bool in_place = false;  ///< z is y itself; needs problem.residual
  std::vector<std::pair<std::string, std::int64_t>> instead =
      {};  ///< constants compiled in other than the schedule says

  KernelSpec spec() const;
  HostData data() const { return make_data(problem, seed, fill); }
  std::string what() const;  ///< for messages: schedule, config, problem, seed
};

/// Not thread-safe.
class HostRunner {
 public:
  HostRunner();

  const DeviceInfo& info() const { return device_->info(); }
  /// Compiles what `jobs` need, many kernels a translation unit, and holds it until the next call: what many jobs need
  /// is more than a BinaryCache keeps. The first failure, or success.
  Status compile(std::span<const Job> jobs);
  /// y of the job, one of those compiled last. Poisons y first; x, w, bias and z are surrounded by NaN, y by a fence
  /// that is checked after. Tensors start at an address that problem.align divides and no larger power of two up to 16
  /// does. Threads of a block start in an order that `thread_order` shuffles (0: in order).
  Result<std::vector<std::byte>> run(const Job&, const HostData&, std::uint64_t thread_order = 0);

 private:
  Log log_;
  std::shared_ptr<Device> device_;
  BinaryCache cache_;
  std::map<std::string, std::shared_ptr<const Binary>> held_;  // by entry
};

/// Whether this machine has a compiler for the host device; if not, a reason to skip.
bool host_compiler_present(std::string* why_not);

}  // namespace sl::test
