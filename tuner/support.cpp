#include "tuner/support.hpp"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace sl::tool {

std::vector<std::string> mapped_libraries(const std::vector<std::string>& stems) {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string path = line.substr(slash);
    const std::string file = path.substr(path.rfind('/') + 1);
    if (std::any_of(stems.begin(), stems.end(), [&](const auto& stem) { return file.starts_with(stem); })) {
      found.insert(path);
    }
  }
  return {found.begin(), found.end()};
}

std::vector<std::pair<std::string, std::string>> variables_with_prefix(const std::string& prefix) {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string text = *at;
    const auto equals = text.find('=');
    if (equals == std::string::npos || !text.starts_with(prefix)) continue;
    found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::filesystem::path> own_folder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Error{Code::environment, "cannot find this program's own folder: " + error.message()};
  return self.parent_path();
}

std::string operating_system() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

std::string libc_version() { return std::string("glibc ") + ::gnu_get_libc_version(); }

std::string build_description() {
#if defined(__clang__)
  std::string text = "clang " __clang_version__;
#else
  std::string text = "g++ " __VERSION__;
#endif
#if defined(NDEBUG)
  text += ", optimised";
#else
  text += ", assertions on";
#endif
#if defined(__SANITIZE_ADDRESS__)
  text += ", AddressSanitizer";
#elif defined(__SANITIZE_THREAD__)
  text += ", ThreadSanitizer";
#endif
  return text;
}

}  // namespace sl::tool
