// A directory that lives as long as its object.
#pragma once

#include <filesystem>
#include <string>

namespace sl::test {

/// Made empty and private (0700) under the system's temporary directory; removed with what is in it, even where a test
/// took its write permission away. Throws std::system_error where it cannot be made: the machine cannot run the test.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Writes a file as it stands (binary). Throws std::system_error.
void write_file(const std::filesystem::path&, const std::string& content);
/// The whole file (binary). Throws std::system_error.
std::string read_file(const std::filesystem::path&);

}  // namespace sl::test
