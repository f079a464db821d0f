// The convolution calls that a model makes.
#include <utility>

#include "graph/guard.hpp"
#include "graph_onnx/conv.hpp"
#include "graph_onnx/model_impl.hpp"

namespace sl::graph {
namespace {

/// What every such node shares of a reason: without this node's shapes.
std::string shared_part(const std::string& reason) {
  const std::size_t colon = reason.find(": ");
  return colon == std::string::npos ? reason : reason.substr(colon + 2);
}

Result<OnnxCall> read_call(const OnnxEditor& editor, Node node) {
  OnnxCall call;
  NodeView view;
  SL_TRY(editor.view(node, view));
  call.node = view.name;
  if (view.op != "Conv") {
    call.reason = view.op.find("Conv") == std::string::npos ? "no convolution" : "op " + view.op;
    return call;
  }
  Result<OnnxConv> conv = read_conv(editor, node);
  if (!conv.ok()) return Error{conv.error().code, "Conv \"" + view.name + "\": " + conv.error().message};
  call.reason = shared_part(conv->reason);
  call.open_batch = conv->open_batch;
  call.problem = conv->problem;
  if (!call.reason.empty()) return call;
  SL_ASSIGN(const OnnxActivation behind, activation_behind(editor, node));
  call.problem.activation = behind.activation;
  call.problem.alpha = behind.alpha;
  call.problem.beta = behind.beta;
  return call;
}

Result<std::vector<OnnxCall>> read_calls(onnx::ModelProto& model, std::optional<std::int64_t> batch) {
  SL_ASSIGN(const std::unique_ptr<OnnxEditor> editor, OnnxEditor::open(model, batch));
  std::vector<Node> nodes;
  SL_TRY(editor->nodes(nodes));
  std::vector<OnnxCall> calls;
  calls.reserve(nodes.size());
  for (const Node node : nodes) {
    SL_ASSIGN(OnnxCall call, read_call(*editor, node));
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace

Result<std::vector<OnnxCall>> OnnxModel::calls(std::optional<std::int64_t> batch) {
  Result<std::vector<OnnxCall>> calls = guarded([&] { return read_calls(impl_->proto, batch); });
  if (!calls.ok()) return Error{calls.error().code, impl_->origin + ": " + calls.error().message};
  return calls;
}

}  // namespace sl::graph
