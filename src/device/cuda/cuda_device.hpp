// Device on a GPU, through the driver API and the primary context.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/context.hpp"
#include "device/device.hpp"

namespace sl::cuda {

class CudaDevice final : public Device {
 public:
  CudaDevice(ContextPtr context, DeviceInfo info, std::string driver);

  const DeviceInfo& info() const override { return info_; }
  int ordinal() const override { return context_->ordinal(); }
  std::string driver() const override { return driver_; }
  Status launch(const Kernel&, const Geometry&, const SlParams& params, Stream) noexcept override;
  bool try_launch(const Kernel&, const Geometry&, const SlParams& params, Stream) noexcept override;
  bool capturing(Stream) noexcept override;
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
  int clock_mhz() override;

 private:
  Status check(const std::string& call, CUresult result) const;
  /// A synchronise would invalidate a capture, so it is refused before the driver hears of it.
  Status refuse_capturing(const char* call, Stream);

  const ContextPtr context_;
  const DriverApi& api_;
  const DeviceInfo info_;
  const std::string driver_;
};

}  // namespace sl::cuda
