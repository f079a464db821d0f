// FILE.part, the rows of a file that is not finished, held by one process at a time.
#pragma once

#include <filesystem>
#include <string>

#include "core/result.hpp"
#include "store/posix_io.hpp"

namespace sl::tool {

/// Open for appending, and locked until it is closed: two processes with one --out would each finish without the
/// other's rows. Move-only.
class PartFile {
 public:
  PartFile() = default;
  /// Creates the file where there is none. Code::environment where it cannot be written, or another process holds it.
  /// On a file system without locks nobody is kept out.
  static Result<PartFile> hold(const std::filesystem::path&);
  PartFile(PartFile&&) = default;
  PartFile& operator=(PartFile&&) = default;
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile();  ///< a file that is still empty is taken away again

  Result<std::string> text() const;
  bool empty() const;
  /// At its end, and on disk when this returns.
  Status append(const std::string& text);
  Status clear();
  void remove();

 private:
  PartFile(std::filesystem::path path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  Fd file_;
};

}  // namespace sl::tool
