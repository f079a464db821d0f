#include "device/cuda/query.hpp"

#include <dlfcn.h>

#include <array>
#include <fstream>

namespace sl::cuda {
namespace {

// "NVIDIA H100 80GB HBM3 MIG 1g.10gb": the name of the GPU and of the slice are two fields.
void split_mig(DeviceInfo& info) {
  constexpr std::string_view mark = " MIG ";
  const auto at = info.name.find(mark);
  if (at == std::string::npos) return;
  info.mig = info.name.substr(at + mark.size());
  info.name.resize(at);
}

/// The four NVML calls that reading a clock takes. NVML is a part of the driver, absent from some containers.
struct Nvml {
  int (*init)() = nullptr;
  int (*handle_by_bus_id)(const char*, void**) = nullptr;
  int (*clock_info)(void*, int, unsigned*) = nullptr;
  bool usable = false;
};

const Nvml& nvml() {
  static const Nvml* const loaded = [] {  // leaked, and never closed, as libcuda
    auto* const nvml = new Nvml;
    void* const handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return nvml;
    nvml->init = reinterpret_cast<decltype(nvml->init)>(dlsym(handle, "nvmlInit_v2"));
    nvml->handle_by_bus_id =
        reinterpret_cast<decltype(nvml->handle_by_bus_id)>(dlsym(handle, "nvmlDeviceGetHandleByPciBusId_v2"));
    nvml->clock_info = reinterpret_cast<decltype(nvml->clock_info)>(dlsym(handle, "nvmlDeviceGetClockInfo"));
    nvml->usable =
        nvml->init != nullptr && nvml->handle_by_bus_id != nullptr && nvml->clock_info != nullptr && nvml->init() == 0;
    return nvml;
  }();
  return *loaded;
}

}  // namespace

Result<DeviceInfo> query_device(const DriverApi& api, CUdevice device, int ordinal) {
  const std::string where = " of cuda:" + std::to_string(ordinal);
  DeviceInfo info;
  std::array<char, 256> name{};
  if (const CUresult result = api.device_get_name(name.data(), static_cast<int>(name.size()) - 1, device);
      result != cuda_success)
    return call_failed(api, "cuDeviceGetName" + where, result);
  info.name = name.data();
  split_mig(info);

  int major = 0, minor = 0, l2 = 0;
  const struct {
    DeviceAttribute attribute;
    int* value;
  } attributes[] = {
      {attribute_capability_major, &major},
      {attribute_capability_minor, &minor},
      {attribute_sm_count, &info.sm_count},
      {attribute_l2_bytes, &l2},
      {attribute_smem_optin, &info.smem_optin},
      {attribute_smem_per_sm, &info.smem_per_sm},
      {attribute_registers_per_sm, &info.registers_per_sm},
      {attribute_threads_per_sm, &info.max_threads_per_sm},
  };
  for (const auto& [attribute, value] : attributes)
    if (const CUresult result = api.device_get_attribute(value, attribute, device); result != cuda_success)
      return call_failed(api, "cuDeviceGetAttribute(" + std::to_string(attribute) + ")" + where, result);
  info.capability = 10 * major + minor;
  info.l2_bytes = l2;

  std::size_t bytes = 0;
  if (const CUresult result = api.device_total_mem(&bytes, device); result != cuda_success)
    return call_failed(api, "cuDeviceTotalMem" + where, result);
  info.memory_bytes = static_cast<std::int64_t>(bytes);
  return info;
}

std::string driver_version_text(const DriverApi& api) {
  int version = 0;
  std::string cuda = "CUDA unknown";
  if (api.driver_get_version(&version) == cuda_success)
    cuda = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  std::ifstream file("/sys/module/nvidia/version");
  std::string module;
  if (file >> module) return module + " (" + cuda + ")";
  return cuda;
}

int sm_clock_mhz(const DriverApi& api, CUdevice device) {
  constexpr int nvml_clock_sm = 1;
  std::array<char, 64> bus_id{};
  if (api.device_get_pci_bus_id == nullptr ||
      api.device_get_pci_bus_id(bus_id.data(), static_cast<int>(bus_id.size()) - 1, device) != cuda_success)
    return 0;
  const Nvml& library = nvml();
  void* handle = nullptr;
  unsigned mhz = 0;
  if (!library.usable || library.handle_by_bus_id(bus_id.data(), &handle) != 0 ||
      library.clock_info(handle, nvml_clock_sm, &mhz) != 0)
    return 0;
  return static_cast<int>(mhz);
}

}  // namespace sl::cuda
