// The JSON form of a suite, read and written.
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json_reader.hpp"
#include "tuner/suite_forms.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t size_limit = (std::int64_t{1} << 31) - 1;

/// A list, or the one thing that would be in it.
std::vector<JsonView> one_or_more(JsonFields& fields, std::string_view key) {
  const std::optional<JsonView> found = fields.value(key, false);
  if (!found) return {};
  if (!found->json().is_array()) return {*found};
  const auto items = found->items();
  if (items->empty()) fields.fail(found->error("is empty; leave the key out, or name what is meant"));
  return *items;
}

template <class T, class Read>
std::vector<T> list(JsonFields& fields, std::string_view key, Read read) {
  std::vector<T> values;
  for (const JsonView& view : one_or_more(fields, key)) {
    Result<T> value = read(view);
    value.ok() ? values.push_back(*value) : fields.fail(value.error());
  }
  return values;
}

void pair(JsonFields& fields, std::string_view key, std::int64_t least, std::int64_t& first, std::int64_t& second) {
  const std::optional<JsonView> found = fields.value(key, true);
  if (!found) return;
  const auto items = found->items();
  if (!items.ok() || items->size() != 2)
    return fields.fail(found->wrong("a pair, of rows and columns, would be right"));
  std::int64_t* const to[] = {&first, &second};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto value = (*items)[i].integer(least, size_limit);
    if (!value.ok()) return fields.fail(value.error());
    *to[i] = *value;
  }
}

Result<DType> dtype_at(const JsonView& view) {
  SL_ASSIGN(const std::string text, view.text());
  if (const auto dtype = suite_dtype(text)) return *dtype;
  return view.wrong("use f32, f16 or bf16");
}

Result<Layout> layout_at(const JsonView& view) {
  SL_ASSIGN(const std::string text, view.text());
  if (const auto layout = parse_layout(text)) return *layout;
  return view.wrong("use nchw or nhwc");
}

std::string float_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, static_cast<float>(value)).ptr};
}

/// Attributes as the text form has them, so that one reader knows their names and what goes with what.
std::string attributes(JsonFields& fields) {
  std::string text;
  for (const char* const key : {"wtag", "bias", "act"}) {
    const std::string value = fields.text(key, "");
    if (value.find_first_of(" \t\r\n") != std::string::npos) {
      if (const auto at = fields.value(key, true)) fields.fail(at->wrong("one word would be right"));
    }
    if (!value.empty()) text += std::string(" ") + key + "=" + value;
  }
  for (const char* const key : {"alpha", "beta"}) {
    if (!fields.has(key)) continue;
    const double value = fields.real(key);
    if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) {
      if (const auto at = fields.value(key, true)) fields.fail(at->wrong("a number that a float holds would be right"));
      return text;
    }
    text += std::string(" ") + key + "=" + float_text(value);
  }
  if (fields.boolean("z", false)) text += " z=1";
  const std::int64_t align = fields.integer("align", 0, 16, 0);
  if (align != 0) text += " align=" + std::to_string(align);
  return text;
}

Result<std::vector<SuiteCall>> from_object(const JsonView& view, const SuiteDefaults& defaults) {
  JsonFields fields(view);
  ConvProblem base;
  const auto size = [&](const char* key) { return fields.integer(key, 1, size_limit); };
  base.c = size("c");
  base.h = size("h");
  base.w = size("w");
  base.k = size("k");
  base.groups = size("groups");
  base.r = size("kh");
  base.s = size("kw");
  pair(fields, "stride", 1, base.stride_h, base.stride_w);
  pair(fields, "pad", 0, base.pad_top, base.pad_left);
  pair(fields, "dil", 1, base.dil_h, base.dil_w);
  if (fields.has("out")) pair(fields, "out", 1, base.p, base.q);
  Stated stated;
  stated.batches =
      list<std::int64_t>(fields, "N", [](const JsonView& v) { return v.integer(1, (std::int64_t{1} << 40) - 1); });
  stated.dtypes = list<DType>(fields, "dt", dtype_at);
  stated.layouts = list<Layout>(fields, "tag", layout_at);
  SuiteCall call;
  call.count = fields.integer("count", 1, size_limit, 1);
  call.networks = list<std::string>(fields, "networks", [](const JsonView& v) { return v.text(); });
  const std::string more = attributes(fields);
  SL_TRY(fields.finish_tolerant());

  const auto here = [&](const Error& error) { return view.error(error.message); };
  if (!fields.has("out")) {
    auto sized = with_output_size(base, base.pad_top, base.pad_left);
    if (!sized.ok()) return here(sized.error());
    base = *sized;
  }
  const auto problems = expand_text(
      base.descriptor() + more,
      Stated{stated.batches.empty() ? defaults.batches : stated.batches, stated.dtypes, stated.layouts}, defaults);
  if (!problems.ok()) return here(problems.error());
  std::vector<SuiteCall> calls(problems->size(), call);
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i].problem = (*problems)[i];
  return calls;
}

Result<std::vector<SuiteCall>> from_entry(const JsonView& view, const SuiteDefaults& defaults) {
  if (view.json().is_object()) return from_object(view, defaults);
  if (!view.json().is_string()) return view.wrong("a descriptor or an object would be right");
  const auto problems = expand_text(view.json().get<std::string>(), {}, defaults);
  if (!problems.ok()) return view.error(problems.error().message);
  std::vector<SuiteCall> calls;
  for (const ConvProblem& problem : *problems) calls.push_back({problem, 1, {}});
  return calls;
}

/// The line that each entry of the array in valid JSON begins in.
std::vector<int> entry_lines(std::string_view text) {
  std::vector<int> lines;
  int line = 1, depth = 0;
  bool quoted = false, begun = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (depth == 1 && c == ',') {
      begun = false;
      continue;
    }
    if (depth == 1 && !begun && c != ']') {
      lines.push_back(line);
      begun = true;
    }
    quoted = c == '"';
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
  }
  return lines;
}

Json real(float value) { return json_real(static_cast<double>(value)); }

/// As short as it can be said: what the reader works out by itself is left out.
Json json_of(const SuiteCall& call) {
  const ConvProblem& p = call.problem;
  Json out = {{"c", p.c}, {"h", p.h}, {"w", p.w}, {"k", p.k}, {"groups", p.groups}, {"kh", p.r}, {"kw", p.s}};
  out["stride"] = {p.stride_h, p.stride_w};
  out["pad"] = {p.pad_top, p.pad_left};
  out["dil"] = {p.dil_h, p.dil_w};
  const auto sized = with_output_size(p, p.pad_top, p.pad_left);
  if (!sized.ok() || sized->p != p.p || sized->q != p.q) out["out"] = {p.p, p.q};
  out["N"] = Json::array({p.n});
  out["dt"] = Json::array({name(p.dtype)});
  out["tag"] = Json::array({name(p.layout)});
  if (p.weight_layout != WeightLayout::oihw) out["wtag"] = name(p.weight_layout);
  if (p.bias != Bias::none) out["bias"] = name(p.bias);
  if (p.activation != Activation::none) out["act"] = name(p.activation);
  if (p.alpha != 0.0F) out["alpha"] = real(p.alpha);
  if (p.beta != 0.0F) out["beta"] = real(p.beta);
  if (p.residual) out["z"] = true;
  if (p.align != 16) out["align"] = p.align;
  if (call.count != 1) out["count"] = call.count;
  if (!call.networks.empty()) out["networks"] = call.networks;
  return out;
}

}  // namespace

Result<Suite> suite_of_json(const std::string& text, const std::string& path, const SuiteDefaults& defaults) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, "suite " + path));
  if (!document.is_array()) return Error{Code::invalid, "suite " + path + ": not an array of calls"};
  const std::vector<int> lines = entry_lines(text);
  Suite suite;
  for (std::size_t i = 0; i < document.size(); ++i) {
    const std::string origin = "suite " + path + ", entry " + std::to_string(i) + ", line " + std::to_string(lines[i]);
    SL_ASSIGN(const std::vector<SuiteCall> calls, from_entry(JsonView(document[i], origin), defaults));
    suite.calls.insert(suite.calls.end(), calls.begin(), calls.end());
  }
  return suite;
}

std::string suite_text(const std::vector<SuiteCall>& calls) {
  std::string text = "[";
  for (const SuiteCall& call : calls)
    text += (&call == &calls.front() ? "\n" : ",\n") + dump_json(json_of(call), false);
  return text + "\n]\n";
}

}  // namespace sl::tool
