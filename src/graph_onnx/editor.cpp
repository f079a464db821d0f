// Reading a model into links, and looking at it.
#include "graph_onnx/editor.hpp"

#include <utility>

#include "graph_onnx/check.hpp"
#include "graph_onnx/shapes.hpp"

namespace sl::graph {
namespace {

const TensorType unknown_type;

TensorType type_of(const onnx::TypeProto& type) {
  TensorType out;
  if (!type.has_tensor_type()) return out;
  out.element = type.tensor_type().elem_type();
  out.ranked = type.tensor_type().has_shape();
  for (const auto& dim : type.tensor_type().shape().dim())
    out.dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : -1);
  return out;
}

TensorType type_of(const onnx::TensorProto& tensor) {
  return {tensor.data_type(), true, {tensor.dims().begin(), tensor.dims().end()}};
}

std::string key_of(const onnx::NodeProto& node) {
  const bool core = node.domain().empty() || node.domain() == "ai.onnx";
  return core ? node.op_type() : node.domain() + "::" + node.op_type();
}

std::string called(const onnx::NodeProto& node) {
  return key_of(node) + (node.name().empty() ? "" : " \"" + node.name() + "\"");
}

}  // namespace

std::string TensorType::text() const {
  std::string out = element == 0 ? "unknown type" : element_name(element);
  if (!ranked) return out + " of unknown shape";
  out += " [";
  for (std::size_t i = 0; i < dims.size(); ++i)
    out += (i == 0 ? "" : ", ") + (dims[i] < 0 ? std::string("?") : std::to_string(dims[i]));
  return out + "]";
}

Result<std::unique_ptr<OnnxEditor>> OnnxEditor::open(onnx::ModelProto& model, std::optional<std::int64_t> batch) {
  std::unique_ptr<OnnxEditor> editor(new OnnxEditor(model));
  SL_ASSIGN(const onnx::ModelProto shapes, with_shapes(model, batch));
  SL_TRY(editor->read_graph(*model.mutable_graph(), shapes.graph()));
  return editor;
}

const TensorType& OnnxEditor::type(Value value) const {
  const auto index = static_cast<std::size_t>(value);
  return index < values_.size() ? values_[index].type : unknown_type;
}

const onnx::TensorProto* OnnxEditor::constant(Value value) const {
  const auto index = static_cast<std::size_t>(value);
  return index < values_.size() ? values_[index].constant : nullptr;
}

std::optional<Node> OnnxEditor::constant_node(Value value) const {
  const auto found = constant_nodes_.find(static_cast<std::uint64_t>(value));
  return found == constant_nodes_.end() ? std::nullopt : std::optional<Node>(found->second);
}

const Value* OnnxEditor::find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->find(name); found != scope->end()) return &found->second;
  }
  return nullptr;
}

void OnnxEditor::note(Value value, const std::string& name, std::size_t graph) {
  ValueInfo info;
  info.graph = graph;
  if (const auto type = types_.back().find(name); type != types_.back().end()) info.type = type_of(*type->second);
  const auto index = static_cast<std::size_t>(value);
  values_.resize(std::max(values_.size(), index + 1));
  values_[index] = std::move(info);
}

Result<Value> OnnxEditor::define(const std::string& name, std::size_t graph) {
  if (name.empty()) return Error{Code::invalid, "a graph input or initialiser has no name"};
  const Value value = links_.add_value(name);
  if (!scopes_.back().emplace(name, value).second)
    return Error{Code::invalid, "\"" + name + "\" is defined twice in one graph"};
  note(value, name, graph);
  return value;
}

Status OnnxEditor::read_graph(onnx::GraphProto& graph, const onnx::GraphProto& shapes) {
  const std::size_t index = graphs_.size();
  graphs_.push_back({&graph, 0});
  scopes_.emplace_back();
  types_.emplace_back();
  const auto add_types = [&](const auto& infos) {
    for (const onnx::ValueInfoProto& info : infos) types_.back()[info.name()] = &info.type();
  };
  add_types(shapes.value_info());
  add_types(shapes.input());
  add_types(shapes.output());
  SL_TRY(read_values(graph, index));
  for (int i = 0; i < graph.node_size(); ++i) SL_TRY(read_node(*graph.mutable_node(i), shapes.node(i), index));
  graphs_[index].first_output = links_.graph_outputs();
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const Value* value = find(output.name());
    if (value == nullptr)
      return Error{Code::invalid, "graph output \"" + output.name() + "\" is made by no node of the graph"};
    links_.add_output(*value);
  }
  scopes_.pop_back();
  types_.pop_back();
  return {};
}

Status OnnxEditor::read_values(onnx::GraphProto& graph, std::size_t index) {
  for (const onnx::ValueInfoProto& input : graph.input()) {
    SL_ASSIGN(const Value value, define(input.name(), index));
    values_[static_cast<std::size_t>(value)].input = true;
  }
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const auto input = scopes_.back().find(tensor.name());
    if (input != scopes_.back().end()) {  // a default that the caller may override: its data is not constant
      if (values_[static_cast<std::size_t>(input->second)].constant != nullptr)
        return Error{Code::invalid, "\"" + tensor.name() + "\" is defined twice in one graph"};
      if (model_.ir_version() >= 4) continue;
      values_[static_cast<std::size_t>(input->second)].constant =
          &tensor;  // before that, every initialiser was an input
      continue;
    }
    SL_ASSIGN(const Value value, define(tensor.name(), index));
    ValueInfo& info = values_[static_cast<std::size_t>(value)];
    info.constant = &tensor;
    info.type = type_of(tensor);
  }
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
    SL_ASSIGN(const Value ignored, define(tensor.values().name(), index));
    (void)ignored;
  }
  return {};
}

Status OnnxEditor::read_node(onnx::NodeProto& node, const onnx::NodeProto& shapes, std::size_t graph) {
  if (node.op_type().empty()) return Error{Code::invalid, "node \"" + node.name() + "\" has no op_type"};
  for (int i = 0; i < node.attribute_size(); ++i) {
    onnx::AttributeProto& attribute = *node.mutable_attribute(i);
    if (attribute.has_g()) SL_TRY(read_graph(*attribute.mutable_g(), shapes.attribute(i).g()));
    for (int j = 0; j < attribute.graphs_size(); ++j)
      SL_TRY(read_graph(*attribute.mutable_graphs(j), shapes.attribute(i).graphs(j)));
  }
  std::vector<Value> inputs;
  for (const std::string& name : node.input()) {
    const Value* value = name.empty() ? &no_value : find(name);
    if (value == nullptr)
      return Error{Code::invalid, called(node) + " reads \"" + name +
                                      "\", which nothing before it defines: an initialiser is missing, the nodes are "
                                      "not in order, or they form a cycle"};
    inputs.push_back(*value);
  }
  std::vector<std::string> outputs(node.output().begin(), node.output().end());
  const Node made = links_.add_node(key_of(node), node.name(), inputs, std::move(outputs));
  nodes_.push_back({graph, &node});
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    const Value value = links_.output(made, static_cast<std::size_t>(i));
    note(value, name, graph);
    if (!name.empty() && !scopes_.back().emplace(name, value).second)
      return Error{Code::invalid, called(node) + " makes \"" + name + "\", which is defined already"};
  }
  if (key_of(node) == "Constant" && node.output_size() == 1) {
    const Value value = links_.output(made, 0);
    constant_nodes_.emplace(static_cast<std::uint64_t>(value), made);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == "value" && attribute.has_t())
        values_[static_cast<std::size_t>(value)].constant = &attribute.t();
    }
  }
  return {};
}

Result<Node> OnnxEditor::insert(Node before, const NewNode& node) {
  if (nodes_.size() == nodes_.capacity()) nodes_.reserve(2 * nodes_.size() + 1);
  SL_ASSIGN(const Node made, links_.insert(before, node));
  nodes_.push_back({nodes_[static_cast<std::size_t>(before)].graph, nullptr});
  return made;
}

Status OnnxEditor::erase(Node node) {
  SL_ASSIGN(const std::string_view op, links_.op(node));
  if (const onnx::NodeProto* proto = nodes_[static_cast<std::size_t>(node)].proto; proto != nullptr) {
    for (const onnx::AttributeProto& attribute : proto->attribute()) {
      if (attribute.has_g() || attribute.graphs_size() > 0)
        return Error{Code::invalid, std::string(op) + " holds nested graphs and cannot be replaced"};
    }
  }
  return links_.erase(node);
}

Status OnnxEditor::undo_insert(Node node) {
  SL_TRY(links_.undo_insert(node));
  nodes_.pop_back();
  return {};
}

}  // namespace sl::graph
