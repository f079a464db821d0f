#include "tuner/row_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/json_reader.hpp"
#include "store/output_file.hpp"
#include "store/posix_io.hpp"

namespace sl::tool {
namespace {

std::filesystem::path part_of(const std::filesystem::path& path) { return path.string() + ".part"; }

Error refuse(const std::filesystem::path& path, const std::string& why) {
  return {Code::invalid, path.string() + ": " + why + "; name another --out, or remove it"};
}

/// What stands at one of the two files, checked as a whole before a row of it is taken.
class Reader {
 public:
  Reader(const RowFile::Shape& shape, std::filesystem::path path) : shape_(shape), path_(std::move(path)) {}

  Result<RowFile::Json> document(const std::string& text) const {
    const auto checked = parse_json(text, path_.string());  // bounds the depth; a key that occurs twice is an error
    if (!checked.ok()) return refused(checked.error());
    RowFile::Json there = RowFile::Json::parse(text, nullptr, false);
    try {
      if (const std::string why = shape_.foreign(there); !why.empty()) return refuse(path_, why);
    } catch (const RowFile::Json::exception& error) {
      return refuse(path_, "not a file of `sluice " + shape_.writer + "`: " + error.what());
    }
    return there;
  }

  /// The text of a document with its rows.
  Status check(const std::string& text) const {
    const Status checked = shape_.check(text, path_.string());
    return checked.ok() ? checked : refused(checked.error());
  }

 private:
  static Error refused(const Error& error) {
    return {error.code, error.message + "; name another --out, or remove the file"};
  }

  const RowFile::Shape& shape_;
  std::filesystem::path path_;
};

}  // namespace

Status RowFile::take(const Json& rows) {
  for (const Json& row : rows) rows_[row.at(shape_.key).get<std::string>()] = row;
  return {};
}

Status RowFile::read_whole(const std::filesystem::path& target) {
  std::error_code ignored;
  if (!std::filesystem::exists(target, ignored)) return {};
  const Reader reader(shape_, path_);
  SL_ASSIGN(const std::string text, read_text_file(path_.string()));
  SL_ASSIGN(const Json there, reader.document(text));
  SL_TRY(reader.check(text));
  return take(there.at(shape_.list));
}

Status RowFile::read_part() {
  const std::filesystem::path part = part_of(path_);
  SL_ASSIGN(const std::string text, part_.text());
  std::istringstream lines(text);
  std::string line;
  // A header that a kill or a full disk cut short has no row behind it.
  if (text.find('\n') == std::string::npos || !std::getline(lines, line)) return {};
  const Reader reader(shape_, part);
  SL_ASSIGN(Json there, reader.document(line));
  there[shape_.list] = Json::array();
  while (std::getline(lines, line)) {
    // A line that a kill cut short is a row to make again. parse_json, since depth must be bounded here too.
    if (!parse_json(line, part.string()).ok()) continue;
    there[shape_.list].push_back(Json::parse(line));
  }
  SL_TRY(reader.check(there.dump()));
  return take(there.at(shape_.list));
}

Result<RowFile> RowFile::open(const std::filesystem::path& path, Shape shape) {
  RowFile file;
  file.path_ = path;
  file.shape_ = std::move(shape);
  SL_ASSIGN(const std::filesystem::path target, output_file(path));
  SL_ASSIGN(file.part_, PartFile::hold(part_of(path)));  // first: what another process is adding is not there yet
  SL_TRY(file.read_whole(target));
  SL_TRY(file.read_part());
  return file;
}

const RowFile::Json* RowFile::find(const std::string& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

/// Makes an end to what a kill or a full disk cut short: of a row, its line; of a header, the file.
Status RowFile::mend() {
  SL_ASSIGN(const std::string text, part_.text());
  if (text.empty() || text.back() == '\n') return {};
  return text.find('\n') == std::string::npos ? part_.clear() : part_.append("\n");
}

Status RowFile::add(const Json& row) {
  if (!std::exchange(appended_, true)) SL_TRY(mend());
  const std::string header = part_.empty() ? dump_json(shape_.header, false) + '\n' : "";
  SL_TRY(part_.append(header + dump_json(row, false) + '\n'));
  rows_[row.at(shape_.key).get<std::string>()] = row;
  return {};
}

Status RowFile::finish() {
  SL_TRY(write_rows(path_, shape_.header, shape_.list, rows_));
  part_.remove();
  return {};
}

Status write_whole(const std::filesystem::path& path, const std::string& text) {
  SL_ASSIGN(const std::filesystem::path target, output_file(path));
  const std::string next = target.string() + "." + random_hex() + ".next";
  Fd file(::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.ok()) return cannot_write(path, error_text(errno));
  int error = write_fully(file.get(), text);
  if (error == 0) error = sync_fd(file.get());
  if (const int closed = file.close(); error == 0) error = closed;
  if (error == 0 && std::rename(next.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(next.c_str());
  return cannot_write(path, error_text(error));
}

Status write_rows(const std::filesystem::path& path, const RowFile::Json& header, const std::string& list,
                  const std::map<std::string, RowFile::Json>& rows) {
  std::string text = dump_json(header, false);
  text.back() = ',';
  text += "\n\"" + list + "\": [";
  bool first = true;
  for (const auto& [key, row] : rows) text += (std::exchange(first, false) ? "\n" : ",\n") + dump_json(row, false);
  return write_whole(path, text + "\n]}\n");
}

}  // namespace sl::tool
