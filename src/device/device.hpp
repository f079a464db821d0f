// Device: query, allocate, copy, load a binary, launch, time. Two kinds: cuda (driver API opened at run time) and host
// (fibers on the CPU).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "device/device_info.hpp"
#include "kernels/common/params.h"

namespace sl {

/// CUstream for cuda (null = the legacy default stream); for host an opaque handle, null = run at once on the calling
/// thread.
using Stream = void*;

/// Machine code of one kernel, as a compiler made it or a store kept it.
struct Binary {
  enum class Format : std::uint8_t { cubin, ptx, shared_object };
  Format format = Format::cubin;
  std::string code;
  std::string entry;                                    ///< symbol of the kernel
  std::string arch;                                     ///< "sm_90", "compute_90", "host"
  std::string compiler;                                 ///< provenance: "nvrtc 13.0", "g++ 12.2.0"
  int registers = 0, spill_bytes = 0, static_smem = 0;  ///< per thread, per thread, per block; 0 where unknown (host)
};

/// One-dimensional launch geometry. grid.x carries everything; kernels decode it in 64 bits.
struct Geometry {
  std::int64_t grid = 0;  ///< blocks, at most 2^31 - 1
  int block = 0;          ///< threads
  int dynamic_smem = 0;   ///< bytes
};

/// A loaded kernel; launchable from any thread while it lives. Immutable.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Device::try_launch() of this kernel on the device that loaded it, without the way through the device; null where
  /// there is no shorter way.
  using Quick = bool (*)(const Kernel&, const Geometry&, const SlParams&, Stream) noexcept;
  Quick quick() const noexcept { return quick_; }

 protected:
  explicit Kernel(Quick quick = nullptr) : quick_(quick) {}

 private:
  Quick quick_;
};

/// Device memory; freed on destruction (after the device's outstanding work on it, which the owner must have awaited).
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual void* data() const = 0;
  virtual std::size_t size() const = 0;
};

/// Work recorded once and replayed for timing: a CUDA graph on cuda, a list of calls on host.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Replays once and returns the elapsed device time in microseconds.
  virtual Result<double> replay() = 0;
};

struct MemoryUse {
  std::size_t free_bytes = 0, total_bytes = 0;
};

/// Thread-safe. Every call is made on the primary context of the device (pushed and popped where it is not current).
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual int ordinal() const = 0;
  /// Version of the driver as text: provenance of decisions (a change of it is a weaker match). Empty where there is
  /// none.
  virtual std::string driver() const { return {}; }

  // ---- hot path: no lock, no allocation ----
  /// Launches asynchronously on `stream`. `params` is copied before return.
  virtual Status launch(const Kernel&, const Geometry&, const SlParams& params, Stream) noexcept = 0;
  /// The same without words: true where the kernel is enqueued. False says nothing; then launch() does it, or says why
  /// not.
  virtual bool try_launch(const Kernel& kernel, const Geometry& geometry, const SlParams& params,
                          Stream stream) noexcept {
    return launch(kernel, geometry, params, stream).ok();
  }

  // ---- everything else may block ----
  /// True while `stream` captures a graph: then nothing on that path may synchronise, allocate, load or time.
  virtual bool capturing(Stream) noexcept = 0;
  /// Loads now (never lazily). `dynamic_smem` above the default limit is opted in to.
  virtual Result<std::shared_ptr<const Kernel>> load(const Binary&, int dynamic_smem) = 0;
  virtual Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) = 0;
  virtual Result<MemoryUse> memory() = 0;
  virtual Result<Stream> create_stream() = 0;  ///< non-blocking
  virtual void destroy_stream(Stream) noexcept = 0;
  virtual Status synchronize(Stream) = 0;
  virtual Status copy_in(void* device, const void* host, std::size_t bytes, Stream) = 0;   ///< complete on return
  virtual Status copy_out(void* host, const void* device, std::size_t bytes, Stream) = 0;  ///< complete on return
  virtual Status copy(void* to, const void* from, std::size_t bytes, Stream) = 0;  ///< device to device, asynchronous
  virtual Status fill(void* device, unsigned char byte, std::size_t bytes, Stream) = 0;  ///< asynchronous
  /// Records what `body` enqueues on `stream` (relaxed capture mode on cuda, so that no other thread's capture breaks).
  virtual Result<std::unique_ptr<Recording>> record(Stream, const std::function<Status(Stream)>& body) = 0;
  /// SM clock in MHz now; 0 where unknown.
  virtual int clock_mhz() { return 0; }
  /// Has another library enqueue its work on `stream`, with this device's context current: `body` runs on the calling
  /// thread, before return; on host in the stream's turn, so where it records at every replay: what `body` refers to
  /// must outlive the recording. It must not wait for the stream.
  virtual Status call(Stream stream, const std::function<Status(Stream)>& body) { return body(stream); }
};

}  // namespace sl
