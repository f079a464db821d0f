// Kernels being compiled on a thread of their own, and taken one by one as they are there.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "jit/binary_cache.hpp"

namespace sl {

class Compiling {
 public:
  struct Arrival {
    std::size_t index;  ///< of the spec
    Result<std::shared_ptr<const Binary>> binary;
  };

  /// Starts at once. Where `beside` is false, or there is no thread to be had, compiles here, and all are there when it
  /// returns. `cache` and `device` outlive it.
  Compiling(BinaryCache& cache, const DeviceInfo& device, std::vector<KernelSpec> specs, int threads, bool beside);
  /// Waits for the compiler: it cannot be stopped.
  ~Compiling();
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;

  /// The next, each once, in the order that they come; waits for it. Nothing after the last.
  std::optional<Arrival> next();

 private:
  void compile() noexcept;

  BinaryCache& cache_;
  const DeviceInfo& device_;
  const std::vector<KernelSpec> specs_;
  const int threads_;
  std::mutex mutex_;
  std::condition_variable there_;
  std::vector<Arrival> arrived_;  ///< guarded by mutex_, as what follows is; never grows beyond what it has room for
  std::size_t taken_ = 0;
  bool ended_ = false;
  std::thread beside_;
};

}  // namespace sl
