#include "tuner/suite_onnx.hpp"

#include <algorithm>
#include <utility>

#include "graph_onnx/model.hpp"

namespace sl::tool {
namespace {

Status add(const std::vector<graph::OnnxCall>& calls, const std::string& network, bool batch_is_made,
           const SuiteDefaults& defaults, Suite& suite) {
  SuiteDefaults made = defaults;
  made.batches_win = defaults.batches_win && !batch_is_made;
  for (const graph::OnnxCall& call : calls) {
    if (!call.reason.empty()) {
      ++suite.left_out[call.reason];
      continue;
    }
    const Stated stated = {{call.problem.n}, {call.problem.dtype}, {call.problem.layout}};
    SL_ASSIGN(const auto problems, expand(call.problem, stated, made));
    for (const ConvProblem& problem : problems) suite.calls.push_back({problem, 1, {network}});
  }
  return {};
}

}  // namespace

Result<Suite> read_onnx_suite(const std::string& path, const SuiteDefaults& defaults) {
  SL_ASSIGN(graph::OnnxModel model, graph::OnnxModel::load(path));
  SL_ASSIGN(const auto calls, model.calls({}));
  Suite suite;
  suite.kind = Suite::Kind::onnx;
  const std::string network = std::filesystem::path(path).stem().string();
  const bool open = std::any_of(calls.begin(), calls.end(), [](const auto& call) { return call.open_batch; });
  if (!open || !defaults.batches_win) {
    SL_TRY(add(calls, network, false, defaults, suite));
    return suite;
  }
  // The model says itself what a batch makes of each convolution: it need not be the batch.
  for (const std::int64_t n : defaults.batches) {
    SL_ASSIGN(const auto made, model.calls(n));
    SL_TRY(add(made, network, true, defaults, suite));
  }
  return suite;
}

}  // namespace sl::tool
