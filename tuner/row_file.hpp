// A JSON file that grows row by row and survives being interrupted: `sluice bench` and `sluice tune` write one.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "tuner/part_file.hpp"

namespace sl::tool {

/// {HEADER..., LIST: [rows]}. Each row is in `FILE.part` (the header, then one row a line) when add() returns, so that
/// a kill loses at most the row in flight; finish() puts the whole at FILE in one step and removes the part file.
class RowFile {
 public:
  using Json = nlohmann::ordered_json;
  struct Shape {
    std::string writer;  ///< the command, for messages
    std::string list;    ///< key of the rows
    std::string key;     ///< key within a row: rows with the same text replace each other
    Json header;
    /// Why rows that stand under another header do not belong here; empty where they do. May throw nlohmann's
    /// exceptions: then the file is not one of these.
    std::function<std::string(const Json& there)> foreign;
    /// What is wrong with a file of these, rows included; `origin` is for the message.
    std::function<Status(const std::string& text, const std::string& origin)> check;
  };
  /// Reads FILE and FILE.part where they are there. A file that does not belong, or is not as it should be, is
  /// Code::invalid, naming what stands there; one that another process is writing, Code::environment. No row is written
  /// before the first add().
  static Result<RowFile> open(const std::filesystem::path&, Shape);
  /// The row with this key; null where there is none.
  const Json* find(const std::string& key) const;
  Status add(const Json& row);
  Status finish();
  const std::map<std::string, Json>& rows() const { return rows_; }

 private:
  Status read_whole(const std::filesystem::path& target);
  Status read_part();
  Status mend();
  Status take(const Json& rows);

  std::filesystem::path path_;
  Shape shape_;
  PartFile part_;
  std::map<std::string, Json> rows_;
  bool appended_ = false;
};

/// Puts `text` at `path` in one step: a reader sees the old file or the new one. A symbolic link stays one; only a
/// regular file is replaced (output_file).
Status write_whole(const std::filesystem::path& path, const std::string& text);
/// Puts {header..., list: [rows]} at `path` in the same way.
Status write_rows(const std::filesystem::path& path, const RowFile::Json& header, const std::string& list,
                  const std::map<std::string, RowFile::Json>& rows);

}  // namespace sl::tool
