// Shapes of every value, from a copy of the model: the model itself gains no value_info.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>

#include "core/result.hpp"

namespace sl::graph {

/// A copy without the data of large tensors, in which ONNX's shape inference has filled value_info. Its graphs are
/// nested as the model's. `batch`: what stands for the first dimension of a graph input that has no fixed one, and for
/// the symbol that names it. The model is unchanged on return.
Result<onnx::ModelProto> with_shapes(onnx::ModelProto& model, std::optional<std::int64_t> batch);

}  // namespace sl::graph
