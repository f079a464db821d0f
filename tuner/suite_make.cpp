#include "tuner/suite_make.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json_reader.hpp"
#include "tuner/calls.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/row_file.hpp"
#include "tuner/suite_grid.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;
using LeftOut = std::map<std::string, std::int64_t>;

/// Beyond so many channels an ungrouped convolution is a matrix product, which Sluice's schedules are not for.
constexpr std::int64_t most_dense_channels = 8;

const char* kind_name(Suite::Kind kind) {
  switch (kind) {
    case Suite::Kind::json:
      return "json";
    case Suite::Kind::lines:
      return "lines";
    case Suite::Kind::onnx:
      return "onnx";
  }
  return "?";
}

struct Input {
  std::string file;
  Suite::Kind kind = Suite::Kind::json;
  std::size_t calls = 0;  ///< those that stay
  LeftOut left_out;
};

/// What files have in common is one entry.
class Joined {
 public:
  void add(const SuiteCall& call) {
    const auto [at, fresh] = places_.try_emplace(call.problem.to_string(), calls_.size());
    if (fresh) {
      calls_.push_back(call);
      return;
    }
    SuiteCall& known = calls_[at->second];
    known.count += call.count;
    for (const std::string& network : call.networks) {
      const auto& names = known.networks;
      if (std::find(names.begin(), names.end(), network) == names.end()) known.networks.push_back(network);
    }
  }
  const std::vector<SuiteCall>& calls() const { return calls_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<SuiteCall> calls_;
};

std::string why_not(const ConvProblem& problem, const Options& o) {
  if (problem.empty()) return "no image (batch 0)";
  if (problem.groups == 1 && problem.c > most_dense_channels && !o.dense) return "ungrouped";
  return {};
}

std::int64_t total(const LeftOut& reasons) {
  std::int64_t sum = 0;
  for (const auto& [reason, count] : reasons) sum += count;
  return sum;
}

std::string in_words(const LeftOut& reasons) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (const auto& [reason, count] : reasons) sorted.emplace_back(-count, reason);
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const auto& [count, reason] : sorted) {
    text += (text.empty() ? "" : ", ") + std::to_string(-count) + " " + reason;
  }
  return text;
}

/// A file that is read must still be what it was afterwards.
Status check_out(const Options& o) {
  std::error_code ignored;
  if (is_onnx(o.out)) return Error{Code::invalid, "--out " + o.out + ": a suite is JSON, and this is a model's name"};
  for (const std::string& path : o.inputs) {
    if (std::filesystem::exists(o.out, ignored) && std::filesystem::equivalent(path, o.out, ignored)) {
      return Error{Code::invalid, "--out " + o.out + " is one of the files that are read; name another"};
    }
  }
  return {};
}

Result<int> draw(const Options& o) {
  SL_ASSIGN(const SuiteDefaults defaults, defaults_of(o));
  GridOptions options;
  options.calls = o.grid;
  options.seed = o.seed;
  if (defaults.batches_win) options.batches = defaults.batches;
  if (defaults.dtypes_win) options.dtypes = defaults.dtypes;
  if (defaults.layouts_win) options.layouts = defaults.layouts;
  SL_ASSIGN(const GridSuite grid, make_grid(options));
  SL_TRY(write_whole(o.out, suite_text(grid.calls)));
  if (o.json) {
    const Json out = {
        {"out", o.out}, {"calls", grid.calls.size()}, {"pairs", grid.pairs}, {"pairs_covered", grid.covered}};
    std::fputs(dump_json(out, true).c_str(), stdout);
    return exit_done;
  }
  std::fputs((field("calls", std::to_string(grid.calls.size())) +
              field("pairs", std::to_string(grid.covered) + " of " + std::to_string(grid.pairs) +
                                 " possible pairs of values are in a call") +
              field("written", o.out))
                 .c_str(),
             stdout);
  return exit_done;
}

void show(const Options& o, const std::vector<Input>& inputs, const Joined& joined, const LeftOut& left_out) {
  std::vector<std::string> networks;
  std::int64_t occurrences = 0;
  for (const SuiteCall& call : joined.calls()) {
    occurrences += call.count;
    for (const std::string& network : call.networks) networks.push_back(network);
  }
  std::sort(networks.begin(), networks.end());
  networks.erase(std::unique(networks.begin(), networks.end()), networks.end());
  if (o.json) {
    Json files = Json::array();
    for (const Input& input : inputs) {
      files.push_back({{"file", input.file},
                       {"kind", kind_name(input.kind)},
                       {"calls", input.calls},
                       {"left_out", Json(input.left_out)}});
    }
    const Json out = {{"out", o.out},
                      {"inputs", files},
                      {"calls", joined.calls().size()},
                      {"occurrences", occurrences},
                      {"left_out", Json(left_out)},
                      {"networks", networks}};
    std::fputs(dump_json(out, true).c_str(), stdout);
    return;
  }
  Grid grid({"calls", "left out", "kind", "file"});
  for (const Input& input : inputs) {
    grid.row({std::to_string(input.calls), std::to_string(total(input.left_out)), kind_name(input.kind),
              printable(input.file)});
  }
  std::string text = grid.text() + "\n";
  text += field("calls", std::to_string(joined.calls().size()) + " of " + std::to_string(occurrences) +
                             " that occur; what occurs again is counted");
  if (!left_out.empty()) text += field("left out", printable(in_words(left_out)));
  if (!networks.empty()) text += field("networks", std::to_string(networks.size()));
  std::fputs((text + field("written", o.out)).c_str(), stdout);
}

Result<int> join(const Options& o, const OnnxReader& read_onnx) {
  SL_ASSIGN(const SuiteDefaults defaults, defaults_of(o));
  std::vector<Input> inputs;
  Joined joined;
  LeftOut left_out;
  LongWork work(o.inputs.size(), 0);
  for (const std::string& path : o.inputs) {
    work.step(path);
    SL_ASSIGN(const Suite suite, is_onnx(path) ? read_onnx(path, defaults) : read_suite(path, defaults));
    Input input{path, suite.kind, 0, suite.left_out};
    for (const SuiteCall& call : suite.calls) {
      if (const std::string reason = why_not(call.problem, o); !reason.empty()) {
        ++input.left_out[reason];
        continue;
      }
      ++input.calls;
      joined.add(call);
    }
    for (const auto& [reason, count] : input.left_out) left_out[reason] += count;
    inputs.push_back(std::move(input));
  }
  if (joined.calls().empty()) {
    return Error{Code::invalid, left_out.empty() ? "the files hold no call" : "no call is left: " + in_words(left_out)};
  }
  SL_TRY(write_whole(o.out, suite_text(joined.calls())));
  progress("");
  show(o, inputs, joined, left_out);
  return exit_done;
}

}  // namespace

bool is_onnx(const std::string& path) { return std::filesystem::path(path).extension() == ".onnx"; }

Result<int> make_suite(const Options& o, const OnnxReader& read_onnx) {
  if (o.grid > 0 && !o.inputs.empty())
    return Error{Code::invalid, "--grid draws a suite and reads no file; give one of both"};
  if (o.grid == 0 && o.inputs.empty()) return Error{Code::invalid, "no file to read (or --grid N) is given"};
  SL_TRY(check_out(o));
  return o.grid > 0 ? draw(o) : join(o, read_onnx);
}

}  // namespace sl::tool
