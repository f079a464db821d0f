#include "tuner/suite.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace sl::tool {
namespace {

using Json = nlohmann::json;

std::optional<DType> dtype_of(const std::string& text) {
  if (text == "fp16") return DType::f16;
  if (text == "fp32") return DType::f32;
  return parse_dtype(text);
}

// Throws nlohmann's exceptions, caught where the file is read.
Result<std::vector<ConvProblem>> from_object(const Json& entry, const SuiteDefaults& defaults) {
  ConvProblem base;
  base.c = entry.at("c");
  base.h = entry.at("h");
  base.w = entry.at("w");
  base.k = entry.at("k");
  base.groups = entry.at("groups");
  base.r = entry.at("kh");
  base.s = entry.at("kw");
  base.stride_h = entry.at("stride").at(0);
  base.stride_w = entry.at("stride").at(1);
  base.pad_top = entry.at("pad").at(0);
  base.pad_left = entry.at("pad").at(1);
  base.dil_h = entry.at("dil").at(0);
  base.dil_w = entry.at("dil").at(1);

  std::vector<DType> dtypes;
  if (entry.contains("dt") && !defaults.dtypes_win) {
    for (const std::string text : entry["dt"]) {
      const auto dtype = dtype_of(text);
      if (!dtype) return Error{Code::invalid, "dt = \"" + text + "\": use f32, f16 or bf16"};
      dtypes.push_back(*dtype);
    }
  } else {
    dtypes = defaults.dtypes;
  }
  const bool own_batches = entry.contains("N") && !defaults.batches_win;
  const auto batches = own_batches ? entry["N"].get<std::vector<std::int64_t>>() : defaults.batches;

  std::vector<ConvProblem> problems;
  for (const auto n : batches) {
    for (const auto dtype : dtypes) {
      for (const auto layout : defaults.layouts) {
        ConvProblem problem = base;
        problem.n = n;
        problem.dtype = dtype;
        problem.layout = layout;
        SL_ASSIGN(problem, with_output_size(problem, base.pad_top, base.pad_left));
        SL_TRY(validate(problem));
        problems.push_back(problem);
      }
    }
  }
  return problems;
}

Result<std::vector<ConvProblem>> from_entry(const Json& entry, const SuiteDefaults& defaults) {
  if (entry.is_object()) return from_object(entry, defaults);
  if (!entry.is_string()) return Error{Code::invalid, "neither a descriptor nor an object"};
  ParseDefaults own;
  if (!defaults.dtypes.empty()) own.dtype = defaults.dtypes.front();
  if (!defaults.layouts.empty()) own.layout = defaults.layouts.front();
  SL_ASSIGN(const auto problem, parse(entry.get<std::string>(), own));
  return std::vector<ConvProblem>{problem};
}

/// A descriptor a line, as benchdnn's own files and SLUICE_RECORD have them; `#` starts a comment, and benchdnn's flags
/// (--mode=P) say nothing about a problem.
Result<std::vector<ConvProblem>> from_lines(std::istream& file, const std::filesystem::path& path,
                                            const SuiteDefaults& defaults) {
  std::vector<ConvProblem> all;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line = line.substr(0, line.find('#'));
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos || line.compare(start, 2, "--") == 0) continue;
    const std::size_t end = line.find_last_not_of(" \t\r");
    auto problems = from_entry(Json(line.substr(start, end - start + 1)), defaults);
    if (!problems.ok()) {
      return Error{Code::invalid,
                   "suite " + path.string() + ", line " + std::to_string(number) + ": " + problems.error().message};
    }
    all.insert(all.end(), problems->begin(), problems->end());
  }
  return all;
}

}  // namespace

Result<std::vector<ConvProblem>> load_suite(const std::filesystem::path& path, const SuiteDefaults& defaults) {
  std::ifstream file(path);
  if (!file) return Error{Code::invalid, "suite " + path.string() + ": cannot be read"};
  if ((file >> std::ws).peek() != '[' && file.peek() != '{') return from_lines(file, path, defaults);
  std::vector<ConvProblem> all;
  std::size_t index = 0;
  try {
    const Json suite = Json::parse(file);
    if (!suite.is_array()) return Error{Code::invalid, "suite " + path.string() + ": not an array of calls"};
    for (const auto& entry : suite) {
      auto problems = from_entry(entry, defaults);
      if (!problems.ok()) {
        return Error{Code::invalid,
                     "suite " + path.string() + ", entry " + std::to_string(index) + ": " + problems.error().message};
      }
      all.insert(all.end(), problems.value().begin(), problems.value().end());
      ++index;
    }
  } catch (const Json::exception& error) {
    return Error{Code::invalid, "suite " + path.string() + ", entry " + std::to_string(index) + ": " + error.what()};
  }
  return all;
}

}  // namespace sl::tool
