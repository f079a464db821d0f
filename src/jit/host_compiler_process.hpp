// Running a program without a shell, and the few file operations around it. Private to the host compiler.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace sl {

/// A fresh private directory (0700), removed with all it holds on destruction. Failing to remove it harms nobody.
class PrivateDirectory {
 public:
  static Result<PrivateDirectory> create();
  PrivateDirectory(PrivateDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit PrivateDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

Status write_text_file(const std::filesystem::path&, std::string_view content);
std::optional<std::string> read_binary_file(const std::filesystem::path&);

/// The path of an executable regular file: `name` itself where it holds a slash, else the first match in `search_path`
/// (colon-separated; empty = the system's default path).
std::optional<std::string> find_executable(const std::string& name, const std::string& search_path);

struct ProcessOutcome {
  bool timed_out = false;
  bool status_known = true;  ///< false where the application reaps all children: judge by the files written
  int exit_code = 0;         ///< 128 + signal where a signal ended it
  std::string output;        ///< stdout and stderr together
  bool failed() const { return timed_out || (status_known && exit_code != 0); }
};

/// Runs argv[0] (a path) in its own process group, with messages in English and temporary files in `scratch`. After
/// `timeout` the whole group is killed. An Error means that it did not start.
Result<ProcessOutcome> run_process(const std::vector<std::string>& argv, const std::filesystem::path& scratch,
                                   std::chrono::milliseconds timeout);

}  // namespace sl
