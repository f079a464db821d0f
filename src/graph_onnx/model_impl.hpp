// What an OnnxModel holds; for this room alone.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "graph_onnx/model.hpp"

namespace sl::graph {

struct OnnxModel::Impl {
  std::string origin;
  onnx::ModelProto proto;
};

}  // namespace sl::graph
