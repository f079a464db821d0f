#include "jit/nvrtc_search.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

namespace sl {
namespace {

namespace fs = std::filesystem;
using Found = std::optional<std::string>;

constexpr int newest_major = 19, oldest_major = 12;

#if defined(__aarch64__)
constexpr const char* target_lib = "targets/sbsa-linux/lib";
#else
constexpr const char* target_lib = "targets/x86_64-linux/lib";
#endif

bool regular(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Found resolved(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path.string() : real.string();
}

/// The newest libnvrtc of a folder. Probed by name: a system folder has thousands of entries.
Found in_folder(const fs::path& folder) {
  for (int major = newest_major; major >= oldest_major; --major)
    if (const fs::path file = folder / ("libnvrtc.so." + std::to_string(major)); regular(file)) return resolved(file);
  if (const fs::path file = folder / "libnvrtc.so"; regular(file)) return resolved(file);
  return {};
}

Found in_toolkit(const fs::path& home) {
  for (const char* const lib : {"lib64", "lib", target_lib})
    if (Found found = in_folder(home / lib)) return found;
  return {};
}

std::vector<fs::path> folders(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> result;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(prefix)) result.push_back(entry->path());
  std::sort(result.rbegin(), result.rend());
  return result;
}

/// Pip's NVIDIA packages: nvidia/cu13/lib since CUDA 13, nvidia/cuda_nvrtc/lib before.
Found in_site_packages(const fs::path& nvidia) {
  for (const fs::path& package : folders(nvidia, "cu1"))
    if (Found found = in_folder(package / "lib")) return found;
  return in_folder(nvidia / "cuda_nvrtc" / "lib");
}

Found in_python(const fs::path& prefix) {
  for (const fs::path& python : folders(prefix / "lib", "python3"))
    for (const char* const packages : {"site-packages", "dist-packages"})
      if (Found found = in_site_packages(python / packages / "nvidia")) return found;
  return {};
}

Found beside_mapped(const std::string& maps) {
  std::vector<fs::path> beside;
  std::ifstream file(maps);
  for (std::string line; std::getline(file, line);) {
    const auto slash = line.find('/');
    if (slash == std::string::npos) continue;
    const fs::path path = line.substr(slash);
    const std::string name = path.filename().string();
    if (name.starts_with("libnvrtc.so") && regular(path)) return path.string();
    for (const char* const library : {"libcudart.so", "libcublas.so", "libcudnn.so", "libnvJitLink.so"})
      if (name.starts_with(library) && std::find(beside.begin(), beside.end(), path.parent_path()) == beside.end())
        beside.push_back(path.parent_path());
  }
  for (const fs::path& folder : beside) {
    if (Found found = in_folder(folder)) return found;
    // nvidia/cuda_runtime/lib has its sibling in nvidia/cuda_nvrtc/lib.
    if (const fs::path nvidia = folder.parent_path().parent_path(); nvidia.filename() == "nvidia")
      if (Found found = in_site_packages(nvidia)) return found;
  }
  return {};
}

Found in_path(const std::string& path) {
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const auto end = std::min(path.find(':', begin), path.size());
    const fs::path entry = path.substr(begin, end - begin);
    begin = end + 1;
    if (!entry.is_absolute() || entry.filename() != "bin") continue;
    const fs::path prefix = entry.parent_path();
    if (regular(entry / "nvcc"))
      if (Found found = in_toolkit(prefix)) return found;
    if (Found found = in_python(prefix)) return found;
  }
  return {};
}

Found in_loader_paths() {
  void* const self = dlopen(nullptr, RTLD_LAZY);
  if (self == nullptr) return {};
  Found found;
  Dl_serinfo size;
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    // The loader fills a header with an array behind it, of the size that it named.
    std::vector<std::max_align_t> storage(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* const paths = reinterpret_cast<Dl_serinfo*>(storage.data());
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, paths) == 0 && dlinfo(self, RTLD_DI_SERINFO, paths) == 0)
      for (unsigned i = 0; i < paths->dls_cnt && !found; ++i) found = in_folder(paths->dls_serpath[i].dls_name);
  }
  dlclose(self);
  return found;
}

/// The loader cache keeps the full path of each library as a zero-ended string: looking for those is enough, and needs
/// no knowledge of its format's versions.
Found in_loader_cache(const std::string& cache) {
  std::ifstream file(cache, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  for (int major = newest_major; major >= oldest_major; --major) {
    const std::string name = "/libnvrtc.so." + std::to_string(major) + '\0';
    for (auto at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1)) {
      const auto begin = bytes.rfind('\0', at);
      const std::string path = bytes.substr(begin == std::string::npos ? 0 : begin + 1, at - begin + name.size() - 2);
      if (regular(path)) return resolved(path);
    }
  }
  return {};
}

}  // namespace

std::string NvrtcLocation::summary() const {
  std::string text;
  for (const std::string& place : searched) text += (text.empty() ? "" : "; ") + place;
  return text;
}

NvrtcLocation find_nvrtc(const Environment& environment, const NvrtcSearchHost& host) {
  NvrtcLocation location;
  const auto take = [&](const std::string& place, Found found) {
    location.searched.push_back(place + (found ? ": " + *found : ": none"));
    if (found) location.path = *found;
    return found.has_value();
  };
  if (!environment.nvrtc.empty()) {
    const fs::path asked = environment.nvrtc;
    take("SLUICE_NVRTC=" + environment.nvrtc, regular(asked) ? resolved(asked) : in_folder(asked));
    return location;
  }
  if (!environment.cuda_home.empty() && take("CUDA_HOME=" + environment.cuda_home, in_toolkit(environment.cuda_home)))
    return location;
  if (take("libraries of this process", beside_mapped(host.maps))) return location;
  if (take("prefixes of PATH (toolkit, pip's nvidia folders)", in_path(environment.path))) return location;
  if (!environment.home.empty() &&
      take("pip's nvidia folders in ~/.local", in_python(fs::path(environment.home) / ".local")))
    return location;
  for (const fs::path& toolkit : folders(host.system_prefix, "cuda"))
    if (toolkit.filename() == "cuda" && take(toolkit.string(), in_toolkit(toolkit))) return location;
  for (const fs::path& toolkit : folders(host.system_prefix, "cuda-"))
    if (take(toolkit.string(), in_toolkit(toolkit))) return location;
  location.searched.push_back(host.system_prefix + "/cuda*: none");
  if (host.loader_paths && take("the loader's folders (LD_LIBRARY_PATH)", in_loader_paths())) return location;
  take("the loader's cache " + host.loader_cache, in_loader_cache(host.loader_cache));
  return location;
}

}  // namespace sl
