#include "jit/nvrtc_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

namespace sl {
namespace {

namespace fs = std::filesystem;

std::string loader_error(const std::string& fallback) {
  const char* const why = dlerror();
  return why != nullptr ? why : fallback;
}

/// Opens the builtins of `folder` for a CUDA version that is not known yet: those of libnvrtc.so.13.0.88 carry "13.0"
/// in their name, and a folder holds one version. Returns the path, empty where there are none.
std::string open_builtins(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string path = entry->path().string();
    if (entry->path().filename().string().starts_with("libnvrtc-builtins.so.") &&
        dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr)
      return path;
  }
  return {};
}

std::string list(const std::vector<int>& archs) {
  std::string text;
  for (const int arch : archs) text += (text.empty() ? "sm_" : ", sm_") + std::to_string(arch);
  return text;
}

}  // namespace

Result<NvrtcLibrary> open_nvrtc(const std::string& path) {
  NvrtcLibrary library;
  library.path = path;
  library.builtins = open_builtins(fs::path(path).parent_path());
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Error{Code::environment, "NVRTC at " + path + " cannot be opened: " + loader_error("unknown") +
                                        "; set SLUICE_NVRTC to the libnvrtc.so of a CUDA toolkit 12 or newer"};
  const char* missing = nullptr;
#define SLUICE_RESOLVE(member, symbol, arguments)                                     \
  library.member = reinterpret_cast<decltype(library.member)>(dlsym(handle, symbol)); \
  if (library.member == nullptr && missing == nullptr) missing = symbol;
  SLUICE_NVRTC_SYMBOLS(SLUICE_RESOLVE)
#undef SLUICE_RESOLVE
  library.error_string = reinterpret_cast<const char* (*)(int)>(dlsym(handle, "nvrtcGetErrorString"));
  if (missing == nullptr && library.error_string == nullptr) missing = "nvrtcGetErrorString";
  if (missing != nullptr)
    return Error{Code::environment, path + " has no symbol " + missing +
                                        ": it is not NVRTC, or older than CUDA 12; set SLUICE_NVRTC to the "
                                        "libnvrtc.so of a CUDA toolkit 12 or newer"};
  int count = 0;
  if (const int result = library.version(&library.major, &library.minor); result != 0)
    return Error{Code::environment, "nvrtcVersion of " + path + " failed: " + library.error_string(result)};
  if (const int result = library.num_archs(&count); result != 0 || count <= 0)
    return Error{Code::environment, "NVRTC " + library.version_text() + " at " + path +
                                        " names no architecture: " + library.error_string(result)};
  library.supported.resize(static_cast<std::size_t>(count));
  library.archs(library.supported.data());
  std::sort(library.supported.begin(), library.supported.end());
  return library;
}

Result<std::string> nvrtc_target(const NvrtcLibrary& library, int capability) {
  const auto& known = library.supported;
  const auto above = std::upper_bound(known.begin(), known.end(), capability);
  if (above == known.begin())
    return Error{Code::unsupported, "NVRTC " + library.version_text() + " at " + library.path + " compiles for " +
                                        list(known) + ", not for sm_" + std::to_string(capability) +
                                        ": set SLUICE_NVRTC to that of an older CUDA toolkit"};
  const int newest = *(above - 1);
  return (newest == capability ? "sm_" : "compute_") + std::to_string(newest);
}

}  // namespace sl
