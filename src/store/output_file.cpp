#include "store/output_file.hpp"

#include <system_error>

namespace sl {

Error cannot_write(const std::filesystem::path& path, const std::string& why) {
  return {Code::environment, path.string() + ": cannot be written: " + why};
}

Result<std::filesystem::path> output_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return Error{Code::invalid, "an output's name is empty; the name of a file would be right"};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return cannot_write(path, "is a directory; name a file");
  if (fs::exists(status) && !fs::is_regular_file(status))
    return cannot_write(path, "is not a regular file; name another");
  if (!fs::exists(status)) return path;
  fs::path target = fs::canonical(path, error);
  if (error) return cannot_write(path, error.message());
  return target;
}

}  // namespace sl
