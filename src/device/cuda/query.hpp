// What the driver says about a GPU.
#pragma once

#include <string>

#include "device/cuda/driver_api.hpp"
#include "device/device_info.hpp"

namespace sl::cuda {

Result<DeviceInfo> query_device(const DriverApi&, CUdevice, int ordinal);

/// "580.95.05 (CUDA 13.0)"; only the part in brackets where the kernel module's version cannot be read.
std::string driver_version_text(const DriverApi&);

/// SM clock in MHz now, through NVML opened at run time; 0 where there is no NVML or it does not tell.
int sm_clock_mhz(const DriverApi&, CUdevice);

}  // namespace sl::cuda
