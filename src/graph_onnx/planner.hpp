// The planner of ONNX Conv nodes, and the pass over a model.
#pragma once

#include "graph/pass.hpp"
#include "graph_onnx/editor.hpp"
#include "graph_onnx/model.hpp"

namespace sl::graph {

/// `seen`: the editor that the pass edits through, where it is another one before `editor` (tests put one there that
/// fails).
Outcome replace_convolutions(OnnxEditor& editor, const OnnxOptions&, GraphEditor* seen = nullptr);

}  // namespace sl::graph
