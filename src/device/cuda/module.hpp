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
  /// Requires launchable(geometry).
  CUresult enqueue(const Geometry& geometry, const SlParams& params, Stream stream) const noexcept;
  const std::string& entry() const noexcept { return entry_; }

 private:
  CudaKernel(ContextPtr context, CUmodule module, std::string entry);
  Status prepare(const DeviceInfo&, int dynamic_smem);
  CUresult enqueue_as_is(const Geometry&, const SlParams&, Stream) const noexcept;
  CUresult enqueue_in_context(const Geometry&, const SlParams&, Stream, CUresult refused) const noexcept;
  static bool quick_launch(const Kernel&, const Geometry&, const SlParams&, Stream) noexcept;

  decltype(DriverApi::launch_kernel) launch_kernel_;  // the driver's: here, so that a launch reads no other table
  CUfunction function_ = nullptr;
  ContextPtr context_;
  CUmodule module_;
  std::string entry_;
};

/// Whether the driver can take it whole: 1 to 2^31 - 1 blocks of at least one thread.
inline bool launchable(const Geometry& g) noexcept {
  constexpr std::int64_t max_grid = (std::int64_t{1} << 31) - 1;
  return g.grid > 0 && g.grid <= max_grid && g.block > 0 && g.dynamic_smem >= 0;
}

}  // namespace sl::cuda
