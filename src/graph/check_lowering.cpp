#include "graph/check_lowering.hpp"

#include <algorithm>
#include <string>

namespace sl::graph {

Status check_lowering(const GraphEditor& editor, Node node, const std::vector<Node>& absorbs, const NewNode& made) {
  std::vector<Value> gone;
  NodeView view;
  SL_TRY(editor.view(node, view));
  gone = view.outputs;
  for (const Node absorbed : absorbs) {
    SL_TRY(editor.view(absorbed, view));
    gone.insert(gone.end(), view.outputs.begin(), view.outputs.end());
  }
  const auto goes = [&](Value value) { return std::find(gone.begin(), gone.end(), value) != gone.end(); };
  const auto wrong = [](const char* what, Value value, const char* why) {
    return Error{Code::invalid, std::string("the new node ") + what + " value " +
                                    std::to_string(static_cast<std::uint64_t>(value)) + ", which " + why};
  };
  for (const Value value : made.replaces) {
    if (value != no_value && !goes(value)) return wrong("replaces", value, "no node that it stands for makes");
  }
  for (const Value value : made.inputs) {
    if (value != no_value && goes(value)) return wrong("reads", value, "a node that it stands for makes");
  }
  return {};
}

}  // namespace sl::graph
