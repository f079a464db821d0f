#include "tuner/row_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include "store/posix_io.hpp"

namespace sl::tool {
namespace {

std::filesystem::path part_of(const std::filesystem::path& path) { return path.string() + ".part"; }

Error refuse(const std::filesystem::path& path, const std::string& why) {
  return {Code::invalid, path.string() + ": " + why + "; name another --out, or remove it"};
}

}  // namespace

Result<RowFile> RowFile::open(const std::filesystem::path& path, Shape shape) {
  RowFile file;
  file.path_ = path;
  file.shape_ = std::move(shape);
  const Shape& is = file.shape_;
  const auto take = [&](const Json& row) { file.rows_[row.at(is.key).get<std::string>()] = row; };
  std::filesystem::path reading = path;
  try {
    if (std::ifstream whole(path); whole) {
      const Json there = Json::parse(whole);
      if (const std::string why = is.foreign(there); !why.empty()) return refuse(path, why);
      for (const Json& row : there.at(is.list)) take(row);
    }
    reading = part_of(path);
    std::ifstream part(reading);
    std::string line;
    if (part && std::getline(part, line)) {
      if (const std::string why = is.foreign(Json::parse(line)); !why.empty()) return refuse(reading, why);
      while (std::getline(part, line)) {
        const Json row = Json::parse(line, nullptr, false);
        if (!row.is_discarded()) take(row);  // a line that a kill cut short is a row to measure again
      }
    }
  } catch (const Json::exception& error) {
    return refuse(reading, "not a file of `sluice " + is.writer + "`: " + error.what());
  }
  return file;
}

const RowFile::Json* RowFile::find(const std::string& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

Status RowFile::add(const Json& row) {
  const std::filesystem::path part = part_of(path_);
  std::error_code ignored;
  const bool fresh = !std::filesystem::exists(part, ignored);
  bool cut_short = false;  // a kill may have left the last line without its end
  if (!fresh) {
    std::ifstream before(part, std::ios::binary | std::ios::ate);
    if (before.tellg() > 0) cut_short = before.seekg(-1, std::ios::end).get() != '\n';
  }
  std::ofstream file(part, std::ios::app);
  if (cut_short) file << '\n';
  if (fresh) file << shape_.header.dump() << '\n';
  file << row.dump() << '\n';
  file.flush();
  if (!file) return Error{Code::environment, part.string() + ": cannot be written"};
  rows_[row.at(shape_.key).get<std::string>()] = row;
  return {};
}

Status RowFile::finish() {
  SL_TRY(write_rows(path_, shape_.header, shape_.list, rows_));
  std::error_code ignored;
  std::filesystem::remove(part_of(path_), ignored);
  return {};
}

Status write_whole(const std::filesystem::path& path, const std::string& text) {
  const std::string next = path.string() + ".next";
  const auto cannot = [](const std::string& file, int error) {
    return Error{Code::environment, file + ": cannot be written: " + error_text(error)};
  };
  Fd file(::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.ok()) return cannot(next, errno);
  int error = write_fully(file.get(), text);
  if (error == 0) error = sync_fd(file.get());
  if (const int closed = file.close(); error == 0) error = closed;
  if (error == 0 && std::rename(next.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(next.c_str());
  return cannot(path.string(), error);
}

Status write_rows(const std::filesystem::path& path, const RowFile::Json& header, const std::string& list,
                  const std::map<std::string, RowFile::Json>& rows) {
  std::string text = header.dump();
  text.back() = ',';
  text += "\n\"" + list + "\": [";
  bool first = true;
  for (const auto& [key, row] : rows) text += (std::exchange(first, false) ? "\n" : ",\n") + row.dump();
  return write_whole(path, text + "\n]}\n");
}

}  // namespace sl::tool
