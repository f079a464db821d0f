// Writing the edits into the model: everything that may fail first, then what cannot.
#include <algorithm>
#include <utility>

#include "graph_onnx/editor.hpp"

namespace sl::graph {
namespace {

constexpr const char* our_domain = "ai.sluice";
constexpr std::int64_t our_version = 1;

void set_attribute(onnx::AttributeProto& to, const Attribute& from) {
  to.set_name(from.name);
  switch (from.kind) {
    case Attribute::Kind::integer:
      to.set_type(onnx::AttributeProto::INT);
      to.set_i(from.integer);
      return;
    case Attribute::Kind::real:
      to.set_type(onnx::AttributeProto::FLOAT);
      to.set_f(static_cast<float>(from.real));
      return;
    case Attribute::Kind::text:
      to.set_type(onnx::AttributeProto::STRING);
      to.set_s(from.text);
      return;
    case Attribute::Kind::integers:
      to.set_type(onnx::AttributeProto::INTS);
      for (const std::int64_t value : from.integers) to.add_ints(value);
      return;
    case Attribute::Kind::reals:
      to.set_type(onnx::AttributeProto::FLOATS);
      for (const double value : from.reals) to.add_floats(static_cast<float>(value));
      return;
  }
}

/// Removes the entries of a repeated field that `gone` names, keeping the order of the others. Allocates nothing.
template <class Field, class Gone>
void remove_if(Field& field, const Gone& gone) noexcept {
  int kept = 0;
  for (int i = 0; i < field.size(); ++i) {
    if (gone(field.Get(i))) continue;
    if (i != kept) field.SwapElements(i, kept);
    ++kept;
  }
  if (kept < field.size()) field.DeleteSubrange(kept, field.size() - kept);
}

}  // namespace

/// What commit() is about to do to each graph that changes.
struct OnnxEditor::Edits {
  struct GraphEdit {
    std::size_t graph = 0;
    std::vector<onnx::NodeProto*> order;        ///< all nodes; new ones are owned by `made` until they are in
    std::vector<onnx::NodeProto*> old, erased;  ///< `old`: room for what is there now
  };
  struct Rename {
    std::string* name;
    std::string to;
  };
  struct Made {
    Node node{};
    std::unique_ptr<onnx::NodeProto> proto;
  };
  std::vector<Made> made;
  std::vector<GraphEdit> graphs;
  std::vector<Rename> renames;
  std::vector<std::pair<std::size_t, std::string>> orphans;  ///< (graph, value), sorted
};

Status OnnxEditor::make_edits(Edits& edits) const {
  std::unordered_map<std::uint64_t, onnx::NodeProto*> made;
  std::vector<bool> changed(graphs_.size(), false);
  for (const std::uint64_t id : links_.inserted()) {
    const Node node{id};
    NodeView view;
    if (!links_.view(node, view).ok()) continue;  // inserted, and erased again by a later replacement
    std::unique_ptr<onnx::NodeProto> proto = make_proto(node, view);
    made.emplace(id, proto.get());
    edits.made.push_back({node, std::move(proto)});
    changed[graph_of(node)] = true;
  }
  for (const std::uint64_t id : links_.erased()) changed[graph_of(Node{id})] = true;
  find_orphans(edits);
  for (const auto& [graph, name] : edits.orphans) changed[graph] = true;  // of an outer graph, it may be all

  std::vector<std::size_t> place(graphs_.size(), 0);
  for (std::size_t i = 0; i < graphs_.size(); ++i) {
    if (!changed[i]) continue;
    place[i] = edits.graphs.size();
    edits.graphs.push_back(
        {i, {}, std::vector<onnx::NodeProto*>(static_cast<std::size_t>(graphs_[i].proto->node_size())), {}});
  }
  std::vector<Node> order;
  SL_TRY(links_.nodes(order));
  NodeView view;
  for (const Node node : order) {
    const std::size_t graph = graph_of(node);
    const auto fresh = made.find(static_cast<std::uint64_t>(node));
    onnx::NodeProto* proto = fresh == made.end() ? nodes_[static_cast<std::size_t>(node)].proto : fresh->second;
    if (changed[graph]) edits.graphs[place[graph]].order.push_back(proto);
    if (fresh != made.end()) continue;
    SL_TRY(links_.view(node, view));
    for (std::size_t i = 0; i < view.inputs.size(); ++i) {  // most keep their name: the new value takes it over
      if (view.inputs[i] == no_value) continue;
      const std::string& name = links_.final_name(view.inputs[i]);
      std::string& now = *proto->mutable_input(static_cast<int>(i));
      if (now != name) edits.renames.push_back({&now, name});
    }
  }
  for (const std::uint64_t id : links_.erased()) {
    onnx::NodeProto* proto = nodes_[id].proto;
    if (proto != nullptr) edits.graphs[place[graph_of(Node{id})]].erased.push_back(proto);
  }
  return check_outputs();
}

std::unique_ptr<onnx::NodeProto> OnnxEditor::make_proto(Node node, const NodeView& view) const {
  auto proto = std::make_unique<onnx::NodeProto>();
  const std::size_t colon = view.op.rfind("::");
  if (colon != std::string::npos) proto->set_domain(view.op.substr(0, colon));
  proto->set_op_type(colon == std::string::npos ? view.op : view.op.substr(colon + 2));
  if (!view.name.empty()) proto->set_name(view.name);
  for (const Value value : view.inputs) proto->add_input(value == no_value ? "" : links_.final_name(value));
  for (const Value value : view.outputs) proto->add_output(links_.final_name(value));
  for (const Attribute& attribute : links_.attributes(node)) set_attribute(*proto->add_attribute(), attribute);
  return proto;
}

Status OnnxEditor::check_outputs() const {
  for (const GraphInfo& graph : graphs_) {
    for (int j = 0; j < graph.proto->output_size(); ++j) {
      const Value value = links_.graph_output(graph.first_output + static_cast<std::size_t>(j));
      if (links_.final_name(value) != graph.proto->output(j).name())
        return Error{Code::invalid, "graph output \"" + graph.proto->output(j).name() + "\" would be called \"" +
                                        links_.final_name(value) + "\""};
    }
  }
  return {};
}

/// What only erased nodes read or made: initialisers, and value_info of names that are gone.
void OnnxEditor::find_orphans(Edits& edits) const {
  std::vector<bool> taken_over(values_.size(), false);
  for (const Edits::Made& made : edits.made) {
    for (const Value old : links_.replaced_by(made.node)) {
      if (old != no_value && static_cast<std::size_t>(old) < taken_over.size())
        taken_over[static_cast<std::size_t>(old)] = true;
    }
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Value value{i};
    const bool gone = links_.is_erased(value) && !taken_over[i];
    if (gone) edits.orphans.emplace_back(values_[i].graph, links_.value_name(value));
  }
  for (const std::uint64_t id : links_.erased()) {
    for (const Value value : links_.operands_of_erased(Node{id})) {
      const auto i = static_cast<std::size_t>(value);
      if (value == no_value || i >= values_.size() || values_[i].constant == nullptr || links_.is_used(value)) continue;
      if (links_.is_erased(value) || values_[i].input) continue;  // an input keeps its default
      edits.orphans.emplace_back(values_[i].graph, links_.value_name(value));
    }
  }
  std::sort(edits.orphans.begin(), edits.orphans.end());
}

void OnnxEditor::apply(Edits& edits) noexcept {
  for (Edits::Rename& rename : edits.renames) rename.name->swap(rename.to);
  for (Edits::GraphEdit& edit : edits.graphs) {
    onnx::GraphProto& graph = *graphs_[edit.graph].proto;
    auto& nodes = *graph.mutable_node();
    nodes.ExtractSubrange(0, nodes.size(), edit.old.data());
    for (onnx::NodeProto* node : edit.order) nodes.AddAllocated(node);
    for (onnx::NodeProto* node : edit.erased) delete node;
    const auto gone = [&](std::string_view name) {
      return std::binary_search(edits.orphans.begin(), edits.orphans.end(), std::make_pair(edit.graph, name),
                                [](const auto& a, const auto& b) {
                                  return a.first != b.first ? a.first < b.first
                                                            : std::string_view(a.second) < std::string_view(b.second);
                                });
    };
    const auto orphan = [&](const auto& entry) { return gone(entry.name()); };
    remove_if(*graph.mutable_value_info(), orphan);
    remove_if(*graph.mutable_initializer(), orphan);
    remove_if(*graph.mutable_quantization_annotation(),
              [&](const onnx::TensorAnnotation& entry) { return gone(entry.tensor_name()); });
  }
  for (const std::uint64_t id : links_.erased()) nodes_[id].proto = nullptr;
  // The graphs own the new ones now.
  for (Edits::Made& made : edits.made) nodes_[static_cast<std::size_t>(made.node)].proto = made.proto.release();
}

Status OnnxEditor::commit() {
  if (links_.inserted().empty() && links_.erased().empty()) return {};
  for (const onnx::OperatorSetIdProto& set : model_.opset_import()) {
    if (set.domain() == our_domain && set.version() != our_version)
      return Error{Code::invalid, std::string("the model imports ") + our_domain + " version " +
                                      std::to_string(set.version()) + "; this library writes " +
                                      std::to_string(our_version)};
  }
  Edits edits;
  SL_TRY(make_edits(edits));
  bool ours = false, imported = false;
  for (const Edits::Made& made : edits.made) ours = ours || made.proto->domain() == our_domain;
  for (const onnx::OperatorSetIdProto& set : model_.opset_import()) imported = imported || set.domain() == our_domain;
  for (const Edits::GraphEdit& edit : edits.graphs)
    graphs_[edit.graph].proto->mutable_node()->Reserve(static_cast<int>(std::max(edit.order.size(), edit.old.size())));
  if (ours && !imported) {
    auto set = std::make_unique<onnx::OperatorSetIdProto>();
    set->set_domain(our_domain);
    set->set_version(our_version);
    model_.mutable_opset_import()->Reserve(model_.opset_import_size() + 1);
    model_.mutable_opset_import()->AddAllocated(set.release());
  }
  apply(edits);
  return links_.commit();
}

}  // namespace sl::graph
