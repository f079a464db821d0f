// Device on the CPU: kernels as shared objects, blocks over a thread pool, threads of a block as fibers. Make it with
// open_host_device (jit/backends.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/digest.hpp"
#include "core/log.hpp"
#include "device/device.hpp"
#include "device/host/block_runner.hpp"
#include "device/host/library.hpp"
#include "device/host/stream.hpp"
#include "device/host/thread_pool.hpp"

namespace sl {

/// Everything runs before the enqueuing call returns, so every error of a kernel is its launch's: threads that wait for
/// each other forever or misaligned loads (Code::device), a write outside a shared array (Code::wrong_result). A launch
/// takes locks, unlike on cuda. Buffers come with redzones; one that was written outside reports to `sink` when it is
/// freed. Buffers, kernels and recordings may outlive the device only as objects: nothing runs any more.
class HostDevice final : public Device {
 public:
  /// As HostDeviceOptions in jit/backends.hpp says.
  HostDevice(int capability, int threads, std::uint64_t seed, LogSink sink);
  ~HostDevice() override;

  const DeviceInfo& info() const override { return info_; }
  int ordinal() const override { return 0; }
  Status launch(const Kernel&, const Geometry&, const SlParams&, Stream) noexcept override;
  bool capturing(Stream) noexcept override;  ///< true inside record() on that stream only
  Result<std::shared_ptr<const Kernel>> load(const Binary&, int dynamic_smem) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Result<MemoryUse> memory() override;
  Result<Stream> create_stream() override;
  void destroy_stream(Stream) noexcept override;
  Status synchronize(Stream) override;
  Status copy_in(void* device, const void* host, std::size_t bytes, Stream) override;
  Status copy_out(void* host, const void* device, std::size_t bytes, Stream) override;
  Status copy(void* to, const void* from, std::size_t bytes, Stream) override;
  Status fill(void* device, unsigned char byte, std::size_t bytes, Stream) override;
  Result<std::unique_ptr<Recording>> record(Stream, const std::function<Status(Stream)>& body) override;
  Status call(Stream, const std::function<Status(Stream)>& body) override;

 private:
  class LaunchJob;
  template <class Call>
  Status enqueue(Stream, const Call&);
  template <class Call>
  Status complete(Stream, const char* what, const Call&);
  Status check_geometry(const HostKernel&, const Geometry&) const;
  Status run(const HostKernel&, const Geometry&, const SlParams&);
  std::unique_ptr<BlockRunner> take_runner();
  void give_back(std::unique_ptr<BlockRunner>);

  DeviceInfo info_;
  std::uint64_t seed_;
  std::shared_ptr<const LogSink> sink_;  // buffers report through it
  ThreadPool pool_;
  HostStreams streams_;
  std::mutex runners_mutex_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;  // idle ones
  std::mutex libraries_mutex_;
  std::map<Digest, std::weak_ptr<const HostLibrary>> libraries_;  // by content: kernels of one unit share it
};

}  // namespace sl
