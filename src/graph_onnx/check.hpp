// What must hold of a model before it is looked at any closer: files come from anywhere.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/result.hpp"

namespace sl::graph {

/// A readable version, a graph, known opset imports, tensors whose data is as large as their dims say. Names the field.
Status check_model(const onnx::ModelProto&);

/// The product of the dims; an error where one is negative or the product is 2^62 or more.
Result<std::int64_t> element_count(const onnx::TensorProto&);

/// "f32", "float64", ...: how messages name an element type.
std::string element_name(int onnx_type);

/// Whether any tensor's data is in a file beside the model.
bool has_external_data(const onnx::ModelProto&);

}  // namespace sl::graph
