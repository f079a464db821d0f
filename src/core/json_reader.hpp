// Reading JSON with messages that say file, place, value and what would be right. For .cpp files only: nlohmann/json
// never appears in another header.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "core/result.hpp"

namespace sl {

/// One JSON document. Errors carry `origin`, line and column; a key that occurs twice in one object is an error, since
/// one of the two values would be dropped silently.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view origin);

/// The text of a regular file of at most 256 MiB. Code::environment where it cannot be read.
Result<std::string> read_text_file(const std::string& path);

/// A value in a document and the place it stands at ("$.rules[2].when.n"). Refers to the document and to `origin`; copy
/// freely.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string_view origin) : JsonView(value, origin, "$") {}
  JsonView(const nlohmann::json& value, std::string_view origin, std::string path)
      : value_(&value), origin_(origin), path_(std::move(path)) {}

  const nlohmann::json& json() const { return *value_; }
  const std::string& path() const { return path_; }
  std::string_view origin() const { return origin_; }
  /// "ORIGIN: $.a.b: is VALUE, WHAT WOULD BE RIGHT".
  Error wrong(std::string_view right) const;
  /// "ORIGIN: $.a.b: MESSAGE".
  Error error(std::string_view message) const;

  Result<std::string> text() const;
  Result<bool> boolean() const;
  Result<double> number() const;  ///< finite
  Result<std::int64_t> integer(std::int64_t min, std::int64_t max) const;
  Result<std::vector<JsonView>> items() const;                            ///< of an array
  Result<std::vector<std::pair<std::string, JsonView>>> members() const;  ///< of an object
  Result<std::vector<std::string>> texts() const;                         ///< of an array of strings

 private:
  const nlohmann::json* value_;
  std::string_view origin_;
  std::string path_;
};

/// The fields of one object. Getters return a neutral value after the first error; finish() reports it, and any key
/// that no getter asked for. A getter without `fallback` requires its key.
class JsonFields {
 public:
  explicit JsonFields(const JsonView&);

  std::string text(std::string_view key, const std::optional<std::string>& fallback = {});
  bool boolean(std::string_view key, std::optional<bool> fallback = {});
  double number(std::string_view key, std::optional<double> fallback = {});
  /// A number, or one of the words "inf", "-inf", "nan", which JSON has no numbers for (see json_real).
  double real(std::string_view key, std::optional<double> fallback = {});
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max,
                       std::optional<std::int64_t> fallback = {});
  int count(std::string_view key, std::optional<int> fallback = {});  ///< an int that is not negative
  std::vector<std::string> texts(std::string_view key, const std::optional<std::vector<std::string>>& fallback = {});
  Digest digest(std::string_view key, std::optional<Digest> fallback = {});  ///< 32 hex digits
  std::optional<JsonView> value(std::string_view key, bool required);        ///< for nested values

  /// Reads "schema", which must be `known`. Ask first: a document of another version may hold anything else.
  Status schema(std::int64_t known);

  bool has(std::string_view key) const;
  void fail(Error);  ///< keeps the first
  bool failed() const { return error_.has_value(); }
  Status finish() const;           ///< the first error, else the first unknown key
  Status finish_tolerant() const;  ///< unknown keys are allowed: records that a newer library may have written

 private:
  const nlohmann::json* find(std::string_view key, bool required);  ///< null where it is not there
  template <class T, class Read>
  T get(std::string_view key, const std::optional<T>& fallback, Read read);

  JsonView view_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
};

/// A double for a document: a number, or the word for a value that JSON has no number for.
nlohmann::ordered_json json_real(double);

/// Text of a document; bytes that are not UTF-8 (a driver's device name may hold some) become U+FFFD. Ends with a
/// newline where pretty.
std::string dump_json(const nlohmann::ordered_json&, bool pretty);

}  // namespace sl
