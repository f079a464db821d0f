#include "graph_onnx/shapes.hpp"

#include <onnx/shape_inference/implementation.h>

#include <set>
#include <string>
#include <vector>

#include "graph_onnx/child.hpp"

namespace sl::graph {
namespace {

constexpr std::size_t large = 4096;  // bytes; shapes, axes and the like, which inference reads, are smaller

/// Takes the large tensors' data out of a model, and puts it back.
class WithoutData {
 public:
  explicit WithoutData(onnx::GraphProto& graph) { collect(graph); }
  ~WithoutData() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i]->mutable_raw_data()->swap(data_[i]);
  }
  WithoutData(const WithoutData&) = delete;
  WithoutData& operator=(const WithoutData&) = delete;

 private:
  void collect(onnx::GraphProto& graph) {
    for (onnx::TensorProto& tensor : *graph.mutable_initializer()) take(tensor);
    for (onnx::NodeProto& node : *graph.mutable_node()) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_t()) take(*attribute.mutable_t());
        if (attribute.has_g()) collect(*attribute.mutable_g());
        for (onnx::GraphProto& nested : *attribute.mutable_graphs()) collect(nested);
      }
    }
  }
  void take(onnx::TensorProto& tensor) {
    if (!tensor.has_raw_data() || tensor.raw_data().size() <= large) return;
    tensors_.push_back(&tensor);
    data_.emplace_back();
    tensor.mutable_raw_data()->swap(data_.back());
  }
  std::vector<onnx::TensorProto*> tensors_;
  std::vector<std::string> data_;
};

bool fixed(const onnx::TensorShapeProto::Dimension& dim) { return dim.has_dim_value() && dim.dim_value() > 0; }

template <class Infos>
void set_symbols(Infos& infos, const std::set<std::string>& symbols, std::int64_t batch) {
  for (onnx::ValueInfoProto& info : infos) {
    if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) continue;
    for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (dim.has_dim_param() && symbols.count(dim.dim_param()) != 0) dim.set_dim_value(batch);
    }
  }
}

void set_batch(onnx::GraphProto& graph, std::int64_t batch) {
  std::set<std::string> symbols;
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    if (!input.type().has_tensor_type() || input.type().tensor_type().shape().dim_size() == 0) continue;
    auto& dim = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0);
    if (fixed(dim)) continue;
    if (dim.has_dim_param() && !dim.dim_param().empty()) symbols.insert(dim.dim_param());
    dim.set_dim_value(batch);
  }
  set_symbols(*graph.mutable_input(), symbols, batch);
  set_symbols(*graph.mutable_output(), symbols, batch);
  set_symbols(*graph.mutable_value_info(), symbols, batch);
}

}  // namespace

Result<onnx::ModelProto> with_shapes(onnx::ModelProto& model, std::optional<std::int64_t> batch) {
  onnx::ModelProto copy;
  {
    const WithoutData lighter(*model.mutable_graph());
    copy = model;
  }
  if (batch) set_batch(*copy.mutable_graph(), *batch);
  // Makes libonnx's table of operators here, once, and not in every child.
  (void)onnx::OpSchemaRegistry::Schema("Conv", 11, "");
  SL_ASSIGN(const std::string inferred, in_child([&copy](std::string& answer) {
              onnx::ShapeInferenceOptions options{false, 0, true};  // what cannot be inferred stays unknown
              onnx::shape_inference::InferShapes(copy, onnx::OpSchemaRegistry::Instance(), options);
              return copy.SerializeToString(&answer);
            }));
  if (!copy.ParseFromString(inferred)) return Error{Code::internal, "shape inference gave no model"};
  return copy;
}

}  // namespace sl::graph
