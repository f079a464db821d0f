#include "store/output_file.hpp"

#include <system_error>

namespace sl {

Result<std::filesystem::path> output_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return Error{Code::invalid, "an output's name is empty; the name of a file would be right"};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    return Error{Code::environment, path.string() + ": cannot be written: is a directory; name a file"};
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return Error{Code::environment, path.string() + ": cannot be written: is not a regular file; name another"};
  }
  if (!fs::exists(status)) return path;
  fs::path target = fs::canonical(path, error);
  if (error) return Error{Code::environment, path.string() + ": cannot be written: " + error.message()};
  return target;
}

}  // namespace sl
