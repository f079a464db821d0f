#include "graph_onnx/check.hpp"

#include <algorithm>
#include <functional>

namespace sl::graph {
namespace {

/// Bytes of an element in raw_data; 0 where the type has none that is checked here.
std::int64_t element_bytes(int type) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32:
      return 4;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
      return 2;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64:
      return 8;
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL:
      return 1;
    default:
      return 0;
  }
}

/// Elements in the typed field that belongs to the type; -1 where it is none that is checked here.
std::int64_t typed_elements(const onnx::TensorProto& tensor) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      return tensor.float_data_size();
    case onnx::TensorProto::DOUBLE:
      return tensor.double_data_size();
    case onnx::TensorProto::INT64:
      return tensor.int64_data_size();
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL:
      return tensor.int32_data_size();
    default:
      return -1;
  }
}

Status check_tensor(const onnx::TensorProto& tensor, const char* what) {
  const auto wrong = [&](const std::string& message) {
    return Error{Code::invalid, std::string(what) + " \"" + tensor.name() + "\": " + message};
  };
  const Result<std::int64_t> count = element_count(tensor);
  if (!count.ok()) return wrong(count.error().message);
  if (!onnx::TensorProto::DataType_IsValid(tensor.data_type()) || tensor.data_type() == 0)
    return wrong("data_type is " + std::to_string(tensor.data_type()) + ", which is no element type");
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL || tensor.has_segment()) return {};
  const std::int64_t bytes = element_bytes(tensor.data_type());
  if (tensor.has_raw_data()) {
    const auto has = static_cast<std::int64_t>(tensor.raw_data().size());
    if (bytes != 0 && has / bytes == *count && has % bytes == 0) return {};
    return bytes == 0 ? Status()
                      : wrong("holds " + std::to_string(has) + " bytes, must hold " + std::to_string(*count) + " x " +
                              std::to_string(bytes));
  }
  const std::int64_t has = typed_elements(tensor);
  if (has < 0 || has == *count) return {};
  return wrong("holds " + std::to_string(has) + " elements, must hold " + std::to_string(*count));
}

/// Every graph, nested ones included, outermost first.
Status each_graph(const onnx::GraphProto& graph, const std::function<Status(const onnx::GraphProto&)>& visit) {
  SL_TRY(visit(graph));
  for (const onnx::NodeProto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) SL_TRY(each_graph(attribute.g(), visit));
      for (const onnx::GraphProto& nested : attribute.graphs()) SL_TRY(each_graph(nested, visit));
    }
  }
  return {};
}

/// Divisors in the shape inference of libonnx, which dies of a zero.
Status check_divisors(const onnx::NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const bool strides = attribute.name() == "strides", block = attribute.name() == "blocksize";
    bool fine = !block || attribute.i() >= 1;
    for (const std::int64_t stride : attribute.ints()) fine = fine && (!strides || stride >= 1);
    if (!fine)
      return Error{Code::invalid,
                   node.op_type() + " \"" + node.name() + "\": " + attribute.name() + ": must be 1 or more"};
  }
  return {};
}

Status check_graph(const onnx::GraphProto& graph) {
  for (const onnx::TensorProto& tensor : graph.initializer()) SL_TRY(check_tensor(tensor, "initialiser"));
  for (const onnx::NodeProto& node : graph.node()) {
    SL_TRY(check_divisors(node));
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_t()) SL_TRY(check_tensor(attribute.t(), "constant"));
    }
  }
  return {};
}

bool external(const onnx::TensorProto& tensor) { return tensor.data_location() == onnx::TensorProto::EXTERNAL; }

}  // namespace

Result<std::int64_t> element_count(const onnx::TensorProto& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t dim : tensor.dims()) {
    if (dim < 0) return Error{Code::invalid, "a dimension is " + std::to_string(dim) + ", must not be negative"};
    if (__builtin_mul_overflow(count, dim, &count) || count >= std::int64_t{1} << 62)
      return Error{Code::invalid, "its dimensions multiply to 2^62 elements or more"};
  }
  return count;
}

std::string element_name(int type) {
  std::string name = onnx::TensorProto::DataType_IsValid(type)
                         ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(type))
                         : "type " + std::to_string(type);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

Status check_model(const onnx::ModelProto& model) {
  if (!model.has_ir_version() || model.ir_version() < 3 || model.ir_version() > 1000)
    return Error{Code::invalid, "ir_version is " + std::to_string(model.ir_version()) +
                                    ", must be 3 or more: not an ONNX model, or cut short"};
  if (!model.has_graph()) return Error{Code::invalid, "the model has no graph: not an ONNX model, or cut short"};
  bool core = false;
  for (const onnx::OperatorSetIdProto& set : model.opset_import()) {
    if (set.version() < 1 || set.version() > 100000)
      return Error{Code::invalid, "opset_import \"" + set.domain() + "\": version is " + std::to_string(set.version()) +
                                      ", must be 1 or more"};
    core = core || set.domain().empty() || set.domain() == "ai.onnx";
  }
  if (!core) return Error{Code::invalid, "opset_import has no entry for ONNX's own operators"};
  return each_graph(model.graph(), check_graph);
}

bool has_external_data(const onnx::ModelProto& model) {
  bool found = false;
  (void)each_graph(model.graph(), [&](const onnx::GraphProto& graph) -> Status {
    found = found || std::any_of(graph.initializer().begin(), graph.initializer().end(), external);
    for (const onnx::NodeProto& node : graph.node()) {
      for (const onnx::AttributeProto& attribute : node.attribute())
        found = found || (attribute.has_t() && external(attribute.t()));
    }
    return {};
  });
  return found;
}

}  // namespace sl::graph
