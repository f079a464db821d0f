#include "tuner/suite.hpp"

#include <cerrno>
#include <fstream>
#include <utility>

#include "store/posix_io.hpp"
#include "tuner/suite_forms.hpp"

namespace sl::tool {

std::optional<DType> suite_dtype(const std::string& text) {
  if (text == "fp16") return DType::f16;
  if (text == "fp32") return DType::f32;
  return parse_dtype(text);
}

Result<std::vector<ConvProblem>> expand(const ConvProblem& base, const Stated& stated, const SuiteDefaults& defaults) {
  const auto choose = [](const auto& own, const auto& fallback, bool fallback_wins) -> const auto& {
    return own.empty() || fallback_wins ? fallback : own;
  };
  std::vector<ConvProblem> problems;
  for (const auto n : choose(stated.batches, defaults.batches, defaults.batches_win)) {
    for (const auto dtype : choose(stated.dtypes, defaults.dtypes, defaults.dtypes_win)) {
      for (const auto layout : choose(stated.layouts, defaults.layouts, defaults.layouts_win)) {
        ConvProblem problem = base;
        problem.n = n;
        problem.dtype = dtype;
        problem.layout = layout;
        SL_ASSIGN(problem, validated(problem));
        problems.push_back(problem);
      }
    }
  }
  return problems;
}

Result<std::vector<ConvProblem>> expand_text(const std::string& text, const Stated& open,
                                             const SuiteDefaults& defaults) {
  // What two readings with different defaults agree on is what the text states.
  SL_ASSIGN(const ConvProblem one, parse(text, {DType::f16, Layout::nchw}));
  SL_ASSIGN(const ConvProblem two, parse(text, {DType::bf16, Layout::nhwc}));
  Stated stated = open;
  if (stated.batches.empty()) stated.batches = {one.n};
  if (one.dtype == two.dtype) stated.dtypes = {one.dtype};
  if (one.layout == two.layout) stated.layouts = {one.layout};
  return expand(one, stated, defaults);
}

Result<std::string> suite_file(const std::string& path) {
  constexpr std::size_t most_bytes = 256ULL << 20;
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return Error{Code::environment, path + ": is a directory, not a suite"};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::environment, path + ": cannot be read: " + error_text(errno)};
  std::string text;
  char block[1 << 16];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) return Error{Code::invalid, path + ": has more than 256 MiB, which no suite has"};
  }
  return text;
}

Result<Suite> read_suite(const std::filesystem::path& path, const SuiteDefaults& defaults) {
  SL_ASSIGN(const std::string text, suite_file(path.string()));
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && (text[first] == '[' || text[first] == '{');
  return json ? suite_of_json(text, path.string(), defaults) : suite_of_lines(text, path.string(), defaults);
}

Result<std::vector<ConvProblem>> load_suite(const std::filesystem::path& path, const SuiteDefaults& defaults) {
  SL_ASSIGN(const Suite suite, read_suite(path, defaults));
  if (!suite.left_out.empty()) {
    return Error{Code::invalid, "suite " + path.string() + ": has calls that are not served (" +
                                    suite.left_out.begin()->first + "); `sluice suite` makes a suite without them"};
  }
  if (suite.calls.empty()) return Error{Code::invalid, "suite " + path.string() + ": holds no call"};
  std::vector<ConvProblem> problems;
  problems.reserve(suite.calls.size());
  for (const SuiteCall& call : suite.calls) problems.push_back(call.problem);
  return problems;
}

}  // namespace sl::tool
