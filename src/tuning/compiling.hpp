// Kernels being compiled on a thread of their own, and taken one by one as they are there.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
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

  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// Starts at once. Where `beside` is false, or there is no thread to be had, compiles here, and all are there when it
  /// returns. `cache` and `device` outlive it.
  Compiling(BinaryCache& cache, const DeviceInfo& device, std::vector<KernelSpec> specs, int threads, bool beside,
            Clock now);
  /// Waits for the compiler, which cannot be stopped, and until all that it made is in the store.
  ~Compiling();
  Compiling(const Compiling&) = delete;
  Compiling& operator=(const Compiling&) = delete;

  /// The next, each once, in the order that they come; waits for it. Nothing after the last; sooner only where there is
  /// no memory.
  std::optional<Arrival> next();
  /// From the start to the last that has come.
  double took_ms() const;

 private:
  void compile() noexcept;

  BinaryCache& cache_;
  const DeviceInfo& device_;
  const std::vector<KernelSpec> specs_;
  const int threads_;
  const Clock now_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;  ///< guarded by mutex_, as what follows is
  mutable std::mutex mutex_;
  std::condition_variable there_;
  std::vector<Arrival> arrived_;  ///< never grows beyond what it has room for
  std::size_t taken_ = 0;
  bool ended_ = false;
  std::thread beside_;
};

}  // namespace sl
