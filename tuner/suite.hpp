// Suites: lists of calls that real networks make (configs/suites/*.json, recordings, benchdnn's files).
// docs/file-formats.md describes the forms.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"

namespace sl::tool {

/// Every combination that an entry leaves open is made; what `..._win` says is made whatever the entry says.
struct SuiteDefaults {
  std::vector<std::int64_t> batches = {1};
  std::vector<DType> dtypes = {DType::f16};
  std::vector<Layout> layouts = {Layout::nhwc};
  bool batches_win = false, dtypes_win = false, layouts_win = false;
};

/// One call of a suite, and where it comes from.
struct SuiteCall {
  ConvProblem problem;
  std::int64_t count = 1;             ///< how often it occurs there
  std::vector<std::string> networks;  ///< whose call it is; may be empty
};

/// Calls in the order of the file, repeats included; and how many were left out, by reason.
struct Suite {
  enum class Kind { json, lines, onnx };
  Kind kind = Kind::json;
  std::vector<SuiteCall> calls;
  std::map<std::string, std::int64_t> left_out;
};

/// Reads JSON, or a descriptor a line. Errors name the file, the line or the entry, and the field; Code::environment
/// where the file cannot be read.
Result<Suite> read_suite(const std::filesystem::path&, const SuiteDefaults& = {});
/// The problems alone; an error where anything was left out.
Result<std::vector<ConvProblem>> load_suite(const std::filesystem::path&, const SuiteDefaults& = {});

/// What an entry says of the batch, the type and the layout; empty = left open.
struct Stated {
  std::vector<std::int64_t> batches;
  std::vector<DType> dtypes;
  std::vector<Layout> layouts;
};
/// Every combination of `base`, each checked, as the defaults and what is stated make them.
Result<std::vector<ConvProblem>> expand(const ConvProblem& base, const Stated&, const SuiteDefaults&);

/// A problem's text with what it leaves open. Attributes that the text does not state are as in `open`.
Result<std::vector<ConvProblem>> expand_text(const std::string& text, const Stated& open, const SuiteDefaults&);

/// "f16", and "fp16" as other tools spell it.
std::optional<DType> suite_dtype(const std::string&);

/// The JSON form of calls, one a line (suite_json.cpp).
std::string suite_text(const std::vector<SuiteCall>&);

}  // namespace sl::tool
