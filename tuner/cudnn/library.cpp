#include "tuner/cudnn/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "jit/nvrtc_search.hpp"
#include "tuner/support.hpp"

namespace sl::cudnn {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libcudnn.so.9";

/// Where to look, in order; a bare name is the loader's to find.
std::vector<std::string> places(const std::string& path, const Environment& environment) {
  std::error_code ignored;
  if (!path.empty()) return {fs::is_directory(path, ignored) ? (fs::path(path) / file_name).string() : path};
  std::vector<std::string> all = {file_name};
  const NvrtcLocation nvrtc = find_nvrtc(environment);
  if (nvrtc.path.empty()) return all;
  const fs::path folder = fs::path(nvrtc.path).parent_path();
  for (const fs::path& one : {folder, folder.parent_path().parent_path() / "cudnn" / "lib"}) {
    if (fs::exists(one / file_name, ignored)) all.push_back((one / file_name).string());
  }
  return all;
}

std::string mapped_path(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr && *map->l_name != '\0') {
    return map->l_name;
  }
  return asked;
}

/// The first symbol that is not there; null where all are.
const char* resolve(void* handle, Library& library) {
  const char* missing = nullptr;
#define SLUICE_RESOLVE(member, symbol, result, arguments)                             \
  library.member = reinterpret_cast<decltype(library.member)>(dlsym(handle, symbol)); \
  if (library.member == nullptr && missing == nullptr) missing = symbol;
  SLUICE_CUDNN_SYMBOLS(SLUICE_RESOLVE)
#undef SLUICE_RESOLVE
  return missing;
}

Code code_of(Status_t status) {
  if (status >= status_not_supported && status < status_not_supported_end) return Code::unsupported;
  constexpr Status_t host_allocation = 4003, device_allocation = 4004;
  return status == host_allocation || status == device_allocation ? Code::out_of_memory : Code::device;
}

}  // namespace

std::string Library::version_text() const {
  const bool before_9 = version < 10000;  // then 1000 * major + 100 * minor + patch
  const std::size_t major = before_9 ? version / 1000 : version / 10000;
  const std::size_t minor = before_9 ? version / 100 % 10 : version / 100 % 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

Status Library::check(const std::string& call, Status_t status) const {
  if (status == status_success) return {};
  std::string message = call + ": ";
  const char* const name = get_error_string(status);
  message += name != nullptr ? name : "cuDNN status " + std::to_string(status);
  std::array<char, 1024> words{};
  get_last_error(words.data(), words.size() - 1);
  if (words[0] != '\0') message += std::string(" (") + words.data() + ")";
  return Error{code_of(status), message};
}

Result<std::shared_ptr<const Library>> load_library(const std::string& path, const Environment& environment) {
  std::string tried;
  void* handle = nullptr;
  for (const std::string& place : places(path, environment)) {
    handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
    const char* const why = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(why != nullptr ? why : place);
  }
  if (handle == nullptr) {
    return Error{Code::environment, "no cuDNN: " + tried +
                                        "; name it with --cudnn-library, or put its folder into "
                                        "LD_LIBRARY_PATH"};
  }
  auto library = std::make_shared<Library>();
  library->path = mapped_path(handle, path.empty() ? file_name : path);
  if (const char* const missing = resolve(handle, *library)) {
    return Error{Code::environment, library->path + " has no symbol " + missing + ": it is not cuDNN 9"};
  }
  library->version = library->get_version();
  if (library->version < oldest_version || library->version >= versions_end) {
    return Error{Code::environment, library->path + " is cuDNN " + library->version_text() + "; a version 9 is needed"};
  }
  library->on_host = dlsym(handle, "sluice_cudnn_on_host") != nullptr;
  return std::shared_ptr<const Library>(std::move(library));
}

std::vector<std::string> mapped() { return tool::mapped_libraries({"libcudnn"}); }

}  // namespace sl::cudnn
