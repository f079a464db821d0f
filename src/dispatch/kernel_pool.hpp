// Loaded kernels: each loaded once and kept until the dispatcher dies, because plans hold raw pointers to them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "dispatch/plan_table.hpp"
#include "jit/binary_cache.hpp"
#include "schedules/schedule.hpp"

namespace sl {

/// What a launch of `candidate` for `problem` needs besides the kernel. An error where the schedule cannot run the
/// problem, or its grid does not fit.
struct LaunchShape {
  KernelSpec spec;
  Geometry geometry;
  SlParams params;
};
Result<LaunchShape> launch_shape(const ConvProblem& problem, const Candidate&, const DeviceInfo&);

/// A kernel and where its code came from.
struct LoadedKernel {
  std::shared_ptr<const Kernel> kernel;
  std::string compiler, arch;  ///< Binary's
};

/// Thread-safe.
class KernelPool {
 public:
  KernelPool(Device& device, BinaryCache& binaries) : device_(device), binaries_(binaries) {}

  /// Compiles and loads what is not there yet. A failure is not remembered. The pointer lives as long as the pool.
  Result<const LoadedKernel*> get(const LaunchShape&);
  /// Null where it is not loaded. No device call: safe while a stream captures.
  const LoadedKernel* loaded(const LaunchShape&) const;
  std::size_t size() const;

 private:
  static std::string key(const LaunchShape&);

  Device& device_;
  BinaryCache& binaries_;
  mutable std::mutex mutex_;  // the map
  std::mutex loading_;        // one load at a time, so that no module is loaded twice (and one of the two unloaded)
  std::map<std::string, LoadedKernel> kernels_;  // nodes never move
};

}  // namespace sl
