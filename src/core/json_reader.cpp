#include "core/json_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace sl {
namespace {

using nlohmann::json;

// Our documents are a handful of levels deep; printing one is recursive.
constexpr int most_depth = 100;
constexpr std::uintmax_t most_file_bytes = 256ULL << 20;

/// "line 3, column 14" of a byte offset.
std::string place(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  const std::size_t newline = text.substr(0, offset).rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset + 1 : offset - newline;
  return std::to_string(line) + ":" + std::to_string(column);
}

/// What nlohmann says, without its "[json.exception...] parse error at line 1, column 2: " that we say shorter.
std::string reason(std::string_view what) {
  for (const std::string_view head : {"column ", "] "}) {
    if (const auto at = what.find(head); at != std::string_view::npos) {
      what.remove_prefix(at + head.size());
      if (head == "column ") what.remove_prefix(std::min(what.size(), what.find(": ") + 2));
      break;
    }
  }
  return std::string(what);
}

/// NaN and Infinity are what people (and Python's json) write most often of what JSON does not have.
bool looks_like_nan(std::string_view text, std::size_t end) {
  const std::string_view near = text.substr(0, std::min(text.size(), end + 9)).substr(end > 10 ? end - 10 : 0);
  return near.find("NaN") != std::string_view::npos || near.find("Infinity") != std::string_view::npos ||
         near.find("nan") != std::string_view::npos || near.find("inf") != std::string_view::npos;
}

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, std::string_view origin) {
  const std::string file(origin);
  std::vector<std::set<std::string>> keys;
  std::string twice;
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    too_deep = too_deep || depth > most_depth;
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second && twice.empty())
      twice = value.get<std::string>();
    return true;
  };
  try {
    json document = json::parse(text.begin(), text.end(), watch);
    if (too_deep)
      return Error{Code::invalid, file + ": is nested deeper than " + std::to_string(most_depth) + " levels"};
    if (!twice.empty())
      return Error{Code::invalid, file + ": key \"" + twice + "\" occurs twice in one object; each key once is right"};
    return document;
  } catch (const json::parse_error& e) {
    const std::size_t at = e.byte > 0 ? e.byte - 1 : 0;
    std::string message = file + ":" + place(text, at) + ": not JSON: " + reason(e.what());
    if (looks_like_nan(text, at))
      message += " (JSON has neither NaN nor Infinity: give a finite number or leave the bound out)";
    return Error{Code::invalid, std::move(message)};
  } catch (const std::exception& e) {
    return Error{Code::invalid, file + ": not JSON: " + reason(e.what())};
  }
}

Result<std::string> read_text_file(const std::string& path) {
  const auto failed = [&path](const std::string& why) { return Error{Code::environment, path + ": " + why}; };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error) return failed("cannot be read: " + error.message());
  if (!std::filesystem::is_regular_file(status)) return failed("is not a regular file");
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return failed("cannot be read: " + error.message());
  if (bytes > most_file_bytes) return failed("has " + std::to_string(bytes) + " bytes; at most 256 MiB is right");
  try {
    std::ifstream in(path, std::ios::binary);
    std::string text(static_cast<std::size_t>(bytes), '\0');
    in.read(text.data(), static_cast<std::streamsize>(bytes));
    if (!in) return failed("cannot be read");
    return text;
  } catch (const std::exception& e) {
    return failed(std::string("cannot be read: ") + e.what());
  }
}

Error JsonView::error(std::string_view message) const {
  return {Code::invalid, std::string(origin_) + ": " + path_ + ": " + std::string(message)};
}

Error JsonView::wrong(std::string_view right) const {
  return error("is " + shown(*value_) + ", " + std::string(right));
}

Result<std::string> JsonView::text() const {
  if (!value_->is_string()) return wrong("a string would be right");
  return value_->get<std::string>();
}

Result<bool> JsonView::boolean() const {
  if (!value_->is_boolean()) return wrong("true or false would be right");
  return value_->get<bool>();
}

Result<double> JsonView::number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) return wrong("a finite number would be right");
  return value_->get<double>();
}

Result<std::int64_t> JsonView::integer(std::int64_t min, std::int64_t max) const {
  const auto range = [&] {
    return "an integer from " + std::to_string(min) + " to " + std::to_string(max) + " would be right";
  };
  if (!value_->is_number_integer()) return wrong(range());
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return wrong(range());
  const auto value = value_->get<std::int64_t>();
  if (value < min || value > max) return wrong(range());
  return value;
}

Result<std::vector<JsonView>> JsonView::items() const {
  if (!value_->is_array()) return wrong("an array would be right");
  std::vector<JsonView> out;
  for (std::size_t i = 0; i < value_->size(); ++i)
    out.emplace_back((*value_)[i], origin_, path_ + "[" + std::to_string(i) + "]");
  return out;
}

Result<std::vector<std::pair<std::string, JsonView>>> JsonView::members() const {
  if (!value_->is_object()) return wrong("an object would be right");
  std::vector<std::pair<std::string, JsonView>> out;
  for (const auto& [key, value] : value_->items()) out.emplace_back(key, JsonView(value, origin_, path_ + "." + key));
  return out;
}

Result<std::vector<std::string>> JsonView::texts() const {
  SL_ASSIGN(const std::vector<JsonView> views, items());
  std::vector<std::string> out;
  for (const JsonView& view : views) {
    SL_ASSIGN(std::string text, view.text());
    out.push_back(std::move(text));
  }
  return out;
}

JsonFields::JsonFields(const JsonView& view) : view_(view) {
  asked_.reserve(8);
  if (!view.json().is_object()) fail(view.wrong("an object would be right"));
}

bool JsonFields::has(std::string_view key) const { return view_.json().is_object() && view_.json().contains(key); }

void JsonFields::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

const nlohmann::json* JsonFields::find(std::string_view key, bool required) {
  asked_.emplace_back(key);
  if (failed()) return nullptr;
  if (const auto at = view_.json().find(key); at != view_.json().end()) return &*at;
  if (required) fail(view_.error("has no \"" + std::string(key) + "\", which is required"));
  return nullptr;
}

std::optional<JsonView> JsonFields::value(std::string_view key, bool required) {
  const nlohmann::json* const found = find(key, required);
  if (found == nullptr) return std::nullopt;
  return JsonView(*found, view_.origin(), view_.path() + "." + std::string(key));
}

template <class T, class Read>
T JsonFields::get(std::string_view key, const std::optional<T>& fallback, Read read) {
  const nlohmann::json* const found = find(key, !fallback);
  if (found == nullptr) return fallback.value_or(T{});
  Result<T> result = read(JsonView(*found, view_.origin(), {}));  // only an error needs its path
  if (result.ok()) return std::move(result).value();
  fail(read(JsonView(*found, view_.origin(), view_.path() + "." + std::string(key))).error());
  return T{};
}

std::string JsonFields::text(std::string_view key, const std::optional<std::string>& fallback) {
  return get<std::string>(key, fallback, [](const JsonView& v) { return v.text(); });
}

bool JsonFields::boolean(std::string_view key, std::optional<bool> fallback) {
  return get<bool>(key, fallback, [](const JsonView& v) { return v.boolean(); });
}

double JsonFields::number(std::string_view key, std::optional<double> fallback) {
  return get<double>(key, fallback, [](const JsonView& v) { return v.number(); });
}

double JsonFields::real(std::string_view key, std::optional<double> fallback) {
  return get<double>(key, fallback, [](const JsonView& v) -> Result<double> {
    if (!v.json().is_string()) return v.number();
    const auto word = v.json().get<std::string>();
    if (word == "inf") return std::numeric_limits<double>::infinity();
    if (word == "-inf") return -std::numeric_limits<double>::infinity();
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    return v.wrong("a number or \"inf\", \"-inf\", \"nan\" would be right");
  });
}

std::int64_t JsonFields::integer(std::string_view key, std::int64_t min, std::int64_t max,
                                 std::optional<std::int64_t> fallback) {
  return get<std::int64_t>(key, fallback, [&](const JsonView& v) { return v.integer(min, max); });
}

int JsonFields::count(std::string_view key, std::optional<int> fallback) {
  std::optional<std::int64_t> wide;
  if (fallback) wide = *fallback;
  return static_cast<int>(integer(key, 0, std::numeric_limits<int>::max(), wide));
}

Digest JsonFields::digest(std::string_view key, std::optional<Digest> fallback) {
  return get<Digest>(key, fallback, [](const JsonView& v) -> Result<Digest> {
    Digest digest;
    if (v.json().is_string()) {
      const auto text = v.json().get<std::string>();
      const char *start = text.data(), *middle = start + 16, *end = start + text.size();
      if (text.size() == 32 && std::from_chars(start, middle, digest.high, 16).ptr == middle &&
          std::from_chars(middle, end, digest.low, 16).ptr == end)
        return digest;
    }
    return v.wrong("32 hex digits would be right");
  });
}

std::vector<std::string> JsonFields::texts(std::string_view key,
                                           const std::optional<std::vector<std::string>>& fallback) {
  return get<std::vector<std::string>>(key, fallback, [](const JsonView& v) { return v.texts(); });
}

Status JsonFields::schema(std::int64_t known) {
  const std::int64_t found = integer("schema", 0, 1'000'000);
  SL_TRY(finish_tolerant());
  if (found == known) return {};
  return view_.error("schema is " + std::to_string(found) + ", this library reads " + std::to_string(known));
}

Status JsonFields::finish_tolerant() const {
  if (error_) return *error_;
  return {};
}

Status JsonFields::finish() const {
  SL_TRY(finish_tolerant());
  for (const auto& [key, value] : view_.json().items()) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    std::string known;
    for (const std::string& name : asked_) known += (known.empty() ? "" : ", ") + name;
    return view_.error("has an unknown key \"" + key + "\"; known here: " + known);
  }
  return {};
}

nlohmann::ordered_json json_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string dump_json(const nlohmann::ordered_json& document, bool pretty) {
  std::string text = document.dump(pretty ? 2 : -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (pretty) text += '\n';
  return text;
}

}  // namespace sl
