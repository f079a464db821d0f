#include <string_view>

#include "store/file_store.hpp"

namespace sl {

std::filesystem::path default_cache_root(const char* sluice_cache_dir, const char* xdg_cache_home, const char* home) {
  const auto given = [](const char* text) { return text != nullptr && *text != '\0'; };
  // The freedesktop rule: a relative path in these is invalid and ignored; it would scatter caches over the disk.
  const auto absolute = [&given](const char* text) { return given(text) && *text == '/'; };
  if (given(sluice_cache_dir)) return std::string_view(sluice_cache_dir) == "off" ? "" : sluice_cache_dir;
  if (absolute(xdg_cache_home)) return std::filesystem::path(xdg_cache_home) / "sluice";
  if (absolute(home)) return std::filesystem::path(home) / ".cache" / "sluice";
  return {};
}

}  // namespace sl
