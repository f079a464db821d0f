// A loaded kernel: one module, one function.
#pragma once

#include <string>

#include "device/cuda/context.hpp"
#include "device/device.hpp"

namespace sl::cuda {

/// Unloads its module when the last reference goes: the owner has awaited its launches by then, as for a Buffer.
class CudaKernel final : public Kernel {
 public:
  /// Loads at once, opting in to `dynamic_smem` bytes where they are beyond the default limit.
  /// Errors: a binary that is not for this device or damaged, PTX that the driver is too old for, no such symbol,
  /// more shared memory than `info` has; with the driver's log.
  static Result<std::shared_ptr<const Kernel>> load(const ContextPtr&, const DeviceInfo&, const Binary&,
                                                    int dynamic_smem);
  ~CudaKernel() override;

  const PrimaryContext& context() const noexcept { return *context_; }
  CUfunction function() const noexcept { return function_; }
  const std::string& entry() const noexcept { return entry_; }

 private:
  CudaKernel(ContextPtr context, CUmodule module, std::string entry);
  Status prepare(const DeviceInfo&, int dynamic_smem);

  ContextPtr context_;
  CUmodule module_;
  CUfunction function_ = nullptr;
  std::string entry_;
};

}  // namespace sl::cuda
