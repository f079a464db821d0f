// Bounded scratch for verifying and timing candidates: x, w, bias, z once, y (and copies of x for rotation) with
// redzones. The caller's tensors are never used.
#pragma once

#include <memory>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "device/device.hpp"
#include "reference/reference.hpp"

namespace sl {

struct WorkspaceOptions {
  std::uint64_t max_bytes = 1ULL << 30;
  std::uint64_t seed = 1;
  int max_sets = 64;
  Fill fill = Fill::random;
};

/// Device buffers for one problem, on one device and stream. Freed on destruction, after a synchronise of the stream.
/// Not thread-safe.
class Workspace {
 public:
  /// Out of memory (or beyond max_bytes) halves the sets down to one; below that it is an error with
  /// Code::out_of_memory.
  static Result<std::unique_ptr<Workspace>> create(Device&, Stream, const ConvProblem&, const WorkspaceOptions&);
  ~Workspace();

  int sets() const;
  /// params with the pointers of set `set` filled in.
  SlParams bind(SlParams params, int set) const;
  /// Fills y of set `set` with NaN poison and arms its redzones.
  Status poison(int set);
  /// Redzones around y of `set` untouched? An error names the first byte that was written and where.
  Status check_redzones(int set);
  Result<std::vector<std::byte>> read_y(int set);
  const HostData& host_data() const;  ///< the data on the device, for the reference
  /// Enqueues the same-bytes copy: half of x+y bytes from a copy source to a copy target of set `set`.
  Status copy_same_bytes(int set, Stream);
  std::uint64_t bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  Workspace();
};

}  // namespace sl
