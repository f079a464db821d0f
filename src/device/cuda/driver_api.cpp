#include "device/cuda/driver_api.hpp"

#include <dlfcn.h>
#include <link.h>

#include <map>
#include <memory>
#include <mutex>

namespace sl::cuda {
namespace {

constexpr const char* default_library = "libcuda.so.1";

// Leaked on purpose: no static destructor may run before or after the driver's own exit handlers.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<DriverApi>> ready;
};
Registry& registry() {
  static auto* const registry = new Registry;
  return *registry;
}

std::string mapped_path(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr && *map->l_name != '\0')
    return map->l_name;
  return asked;
}

std::string cuda_version(const DriverApi& api) {
  int version = 0;
  if (api.driver_get_version == nullptr || api.driver_get_version(&version) != cuda_success) return "unknown";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The first needed symbol that the library lacks; null where it has them all.
const char* resolve(void* handle, DriverApi& api) {
  const char* missing = nullptr;
#define SLUICE_RESOLVE(member, symbol, arguments) \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(handle, symbol));
#define SLUICE_NEED(member, symbol, arguments) \
  SLUICE_RESOLVE(member, symbol, arguments)    \
  if (api.member == nullptr && missing == nullptr) missing = symbol;
  SLUICE_DRIVER_SYMBOLS(SLUICE_NEED)
  SLUICE_DRIVER_OPTIONAL_SYMBOLS(SLUICE_RESOLVE)
#undef SLUICE_NEED
#undef SLUICE_RESOLVE
  return missing;
}

/// Where somebody chose the library, the choice is the first thing to look at.
std::string chosen_by(const std::string& library) {
  return library.empty() ? std::string() : "SLUICE_LIBCUDA=" + library + ": ";
}

/// A library that opens and is no driver, or an old one.
Error lacks(const std::string& library, const DriverApi& api, const char* symbol) {
  const std::string what = chosen_by(library) + api.path + " has no symbol " + symbol + ": ";
  if (api.driver_get_version == nullptr)
    return {Code::environment, what + "it is not a CUDA driver (libcuda.so.1 would be right)"};
  return {Code::environment, what + "the driver is too old (it offers CUDA " + cuda_version(api) +
                                 "; CUDA 11.4 or newer is needed: driver 470 or later)"};
}

Error init_failed(const DriverApi& api, CUresult result) {
  if (result == cuda_stub_library)
    return {Code::environment, api.path +
                                   " is the CUDA toolkit's link-time stub, not a driver (CUDA error 34): install the "
                                   "NVIDIA driver, and keep the toolkit's stubs folder out of LD_LIBRARY_PATH and "
                                   "SLUICE_LIBCUDA"};
  if (result == cuda_no_device)
    return {Code::environment, api.path +
                                   " was opened, but it sees no CUDA device (CUDA error 100): check nvidia-smi, and "
                                   "that CUDA_VISIBLE_DEVICES does not hide it"};
  return {Code::environment,
          "cuInit of " + api.path + " (CUDA " + cuda_version(api) + ") failed: " + describe(api, result)};
}

}  // namespace

Result<const DriverApi*> load_driver(const std::string& library) {
  const std::string name = library.empty() ? default_library : library;
  Registry& known = registry();
  const std::scoped_lock lock(known.mutex);
  if (const auto found = known.ready.find(name); found != known.ready.end()) return found->second.get();

  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return Error{Code::environment,
                 chosen_by(library) + "no CUDA driver: " + std::string(why != nullptr ? why : name) +
                     "; install the NVIDIA driver (it brings libcuda.so.1), or in a container start it with the GPU "
                     "(docker run --gpus all)"};
  }
  auto api = std::make_unique<DriverApi>();
  api->path = mapped_path(handle, name);
  if (const char* const missing = resolve(handle, *api)) return lacks(library, *api, missing);
  if (const CUresult result = api->init(0); result != cuda_success) return init_failed(*api, result);
  return known.ready.emplace(name, std::move(api)).first->second.get();
}

std::string describe(const DriverApi& api, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.get_error_name(result, &name);
  api.get_error_string(result, &text);
  if (name == nullptr) return "CUDA error " + std::to_string(result);
  return std::string(name) + " (" + (text != nullptr ? text : "no text") + ")";
}

Error call_failed(const DriverApi& api, std::string_view what, CUresult result) {
  std::string message = std::string(what) + " failed: " + describe(api, result);
  switch (result) {
    case cuda_illegal_address:
    case cuda_launch_failed:
      message += "; a kernel faulted, and this process's CUDA context cannot be used any more";
      break;
    case cuda_not_initialized:
      message += "; CUDA does not survive a fork: initialise it in the child only";
      break;
    case cuda_context_is_destroyed:
      message += "; the primary context was reset or destroyed by other code (cudaDeviceReset)";
      break;
    default:
      break;
  }
  return {result == cuda_out_of_memory ? Code::out_of_memory : Code::device, std::move(message)};
}

}  // namespace sl::cuda
