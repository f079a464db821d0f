#include "graph/memory_graph.hpp"

#include <algorithm>
#include <utility>

namespace sl::graph {
namespace {

Error no_such(const char* what, std::uint64_t id) {
  return {Code::invalid, std::string("there is no ") + what + " " + std::to_string(id)};
}

template <class T>
void reserve_for(std::vector<T>& vector, std::size_t more) {
  if (vector.capacity() - vector.size() < more) vector.reserve(vector.size() + std::max(vector.size(), more));
}

}  // namespace

// ---- building ----

Value MemoryGraph::add_value(std::string name, std::string data) {
  ValueSlot slot;
  slot.name = std::move(name);
  slot.data = std::move(data);
  values_.push_back(std::move(slot));
  return Value{values_.size() - 1};
}

Node MemoryGraph::add_node(std::string op, std::string name, const std::vector<Value>& inputs,
                           std::vector<std::string> outputs, std::vector<Attribute> attributes) {
  NodeSlot slot = make_slot(std::move(op), std::move(name), std::move(attributes), inputs.size(), outputs.size());
  reserve_for(nodes_, 1);
  make_room(outputs.size(), inputs.size());
  const Index node = append(std::move(slot), inputs, outputs);
  link_node(node, none);
  return Node{node};
}

void MemoryGraph::add_output(Value value) {
  make_room(0, 1);
  reserve_for(outputs_, 1);
  uses_.push_back({{Use::Kind::graph_output, Node{}, outputs_.size()}, value, none, none});
  outputs_.push_back(uses_.size() - 1);
  link_use(uses_.size() - 1, value, none);
}

const std::vector<Attribute>& MemoryGraph::attributes(Node node) const { return nodes_[at(node)].attributes; }

const std::string& MemoryGraph::final_name(Value value) const {
  const ValueSlot& slot = values_[at(value)];
  if (slot.producer == none) return slot.name;
  const NodeSlot& node = nodes_[slot.producer];
  for (std::size_t i = 0; i < node.replaces.size(); ++i) {
    if (node.outputs[i] != value || node.replaces[i] == no_value) continue;
    if (values_[at(node.replaces[i])].erased) return final_name(node.replaces[i]);
  }
  return slot.name;
}

std::vector<Value> MemoryGraph::operands_of_erased(Node node) const {
  std::vector<Value> values;
  for (const Index use : nodes_[at(node)].operands) values.push_back(use == none ? no_value : uses_[use].value);
  return values;
}

// ---- looking ----

Status MemoryGraph::nodes(std::vector<Node>& out) const {
  for (Index i = first_node_; i != none; i = nodes_[i].next) out.push_back(Node{i});
  return {};
}

Result<std::string_view> MemoryGraph::op(Node node) const {
  if (!is_node(node)) return no_such("node", at(node));
  return std::string_view(nodes_[at(node)].op);
}

Status MemoryGraph::view(Node node, NodeView& out) const {
  if (!is_node(node)) return no_such("node", at(node));
  const NodeSlot& slot = nodes_[at(node)];
  out.op = slot.op;
  out.name = slot.name;
  out.inputs.clear();
  for (const Index use : slot.operands) out.inputs.push_back(use == none ? no_value : uses_[use].value);
  out.outputs = slot.outputs;
  return {};
}

Status MemoryGraph::uses(Value value, std::vector<Use>& out) const {
  if (!is_value(value)) return no_such("value", at(value));
  for (Index i = values_[at(value)].first_use; i != none; i = uses_[i].next) out.push_back(uses_[i].use);
  return {};
}

MemoryGraph::Index MemoryGraph::use_slot(const Use& use) const {
  if (use.kind == Use::Kind::graph_output) return use.index < outputs_.size() ? outputs_[use.index] : none;
  if (!is_node(use.user) || use.index >= nodes_[at(use.user)].operands.size()) return none;
  return nodes_[at(use.user)].operands[use.index];
}

// ---- links ----

void MemoryGraph::make_room(std::size_t values, std::size_t uses) {
  reserve_for(values_, values);
  reserve_for(uses_, uses);
}

MemoryGraph::NodeSlot MemoryGraph::make_slot(std::string op, std::string name, std::vector<Attribute> attributes,
                                             std::size_t inputs, std::size_t outputs) const {
  NodeSlot slot;
  slot.op = std::move(op);
  slot.name = std::move(name);
  slot.attributes = std::move(attributes);
  slot.operands.reserve(inputs);
  slot.outputs.reserve(outputs);
  return slot;
}

/// Room for everything was made before: nothing here allocates.
MemoryGraph::Index MemoryGraph::append(NodeSlot&& made, const std::vector<Value>& inputs,
                                       std::vector<std::string>& output_names) noexcept {
  nodes_.push_back(std::move(made));
  const Index node = nodes_.size() - 1;
  NodeSlot& slot = nodes_.back();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == no_value) {
      slot.operands.push_back(none);
      continue;
    }
    uses_.push_back({{Use::Kind::operand, Node{node}, i}, inputs[i], none, none});
    slot.operands.push_back(uses_.size() - 1);
    link_use(uses_.size() - 1, inputs[i], none);
  }
  for (std::string& name : output_names) {
    ValueSlot value;
    value.name = std::move(name);
    value.producer = node;
    values_.push_back(std::move(value));
    slot.outputs.push_back(Value{values_.size() - 1});
  }
  return node;
}

void MemoryGraph::link_use(Index use, Value value, Index before) noexcept {
  UseSlot& slot = uses_[use];
  ValueSlot& list = values_[at(value)];
  slot.value = value;
  slot.next = before;
  slot.previous = before == none ? list.last_use : uses_[before].previous;
  (slot.previous == none ? list.first_use : uses_[slot.previous].next) = use;
  (slot.next == none ? list.last_use : uses_[slot.next].previous) = use;
}

void MemoryGraph::unlink_use(Index use) noexcept {
  const UseSlot& slot = uses_[use];
  ValueSlot& list = values_[at(slot.value)];
  (slot.previous == none ? list.first_use : uses_[slot.previous].next) = slot.next;
  (slot.next == none ? list.last_use : uses_[slot.next].previous) = slot.previous;
}

void MemoryGraph::link_node(Index node, Index before) noexcept {
  nodes_[node].next = before;
  nodes_[node].previous = before == none ? last_node_ : nodes_[before].previous;
  relink_node(node);
}

void MemoryGraph::relink_node(Index node) noexcept {
  const NodeSlot& slot = nodes_[node];
  (slot.previous == none ? first_node_ : nodes_[slot.previous].next) = node;
  (slot.next == none ? last_node_ : nodes_[slot.next].previous) = node;
}

void MemoryGraph::unlink_node(Index node) noexcept {
  const NodeSlot& slot = nodes_[node];
  (slot.previous == none ? first_node_ : nodes_[slot.previous].next) = slot.next;
  (slot.next == none ? last_node_ : nodes_[slot.next].previous) = slot.previous;
}

// ---- editing: all that may fail comes first ----

Result<Node> MemoryGraph::insert(Node before, const NewNode& made) {
  if (!is_node(before)) return no_such("node", at(before));
  for (const Value input : made.inputs) {
    if (input != no_value && !is_value(input)) return no_such("value", at(input));
  }
  std::vector<std::string> names;
  for (const Value old : made.replaces) {
    if (old != no_value && !is_value(old)) return no_such("value", at(old));
    names.push_back(old == no_value ? "" : values_[at(old)].name + "'");
  }
  NodeSlot slot = make_slot(made.op, made.name, made.attributes, made.inputs.size(), names.size());
  slot.replaces = made.replaces;
  reserve_for(nodes_, 1);
  reserve_for(inserted_, 1);
  make_room(names.size(), made.inputs.size());
  const Index node = append(std::move(slot), made.inputs, names);
  link_node(node, at(before));
  inserted_.push_back(node);
  return Node{node};
}

Result<Place> MemoryGraph::rewire(const Use& use, Value from, Value to) {
  const Index slot = use_slot(use);
  if (slot == none || uses_[slot].value != from)
    return Error{Code::invalid, "value " + std::to_string(at(from)) + " has no such use"};
  if (!is_value(to)) return no_such("value", at(to));
  const Place place = uses_[slot].next;
  unlink_use(slot);
  link_use(slot, to, none);
  return place;
}

Status MemoryGraph::erase(Node node) {
  if (!is_node(node)) return no_such("node", at(node));
  NodeSlot& slot = nodes_[at(node)];
  for (const Value output : slot.outputs) {
    if (values_[at(output)].first_use != none)
      return Error{Code::invalid, "node " + std::to_string(at(node)) + " \"" + slot.name + "\" is still used"};
  }
  reserve_for(erased_, 1);
  erased_.push_back(at(node));
  for (const Index use : slot.operands) {
    if (use != none) unlink_use(use);
  }
  for (const Value output : slot.outputs) values_[at(output)].erased = true;
  unlink_node(at(node));
  slot.erased = true;
  return {};
}

Status MemoryGraph::undo_insert(Node node) {
  if (inserted_.empty() || inserted_.back() != at(node) || at(node) + 1 != nodes_.size())
    return no_such("latest insertion of node", at(node));
  NodeSlot& slot = nodes_.back();
  unlink_node(at(node));
  for (auto use = slot.operands.rbegin(); use != slot.operands.rend(); ++use) {
    if (*use == none) continue;
    unlink_use(*use);
    uses_.pop_back();
  }
  values_.resize(values_.size() - slot.outputs.size());
  nodes_.pop_back();
  inserted_.pop_back();
  return {};
}

Status MemoryGraph::undo_rewire(const Use& use, Value from, Value to, Place place) {
  const Index slot = use_slot(use);
  if (slot == none || uses_[slot].value != to) return no_such("rewired use of value", at(to));
  unlink_use(slot);
  link_use(slot, from, place);
  return {};
}

Status MemoryGraph::undo_erase(Node node) {
  if (erased_.empty() || erased_.back() != at(node)) return no_such("latest erasure of node", at(node));
  erased_.pop_back();
  NodeSlot& slot = nodes_[at(node)];
  slot.erased = false;
  relink_node(at(node));
  for (const Value output : slot.outputs) values_[at(output)].erased = false;
  for (auto use = slot.operands.rbegin(); use != slot.operands.rend(); ++use) {
    if (*use != none) link_use(*use, uses_[*use].value, uses_[*use].next);
  }
  return {};
}

Status MemoryGraph::commit() {
  for (const Index node : inserted_) {
    NodeSlot& slot = nodes_[node];
    for (std::size_t i = 0; i < slot.replaces.size(); ++i) {
      if (slot.replaces[i] == no_value || !values_[at(slot.replaces[i])].erased) continue;
      values_[at(slot.outputs[i])].name.swap(values_[at(slot.replaces[i])].name);
    }
    slot.replaces.clear();
  }
  inserted_.clear();
  for (const Index node : erased_) {
    NodeSlot empty;
    empty.erased = true;
    for (const Value output : nodes_[node].outputs) {
      values_[at(output)].name.clear();
      values_[at(output)].data.clear();
    }
    nodes_[node] = std::move(empty);
  }
  erased_.clear();
  return {};
}

// ---- for tests ----

std::string MemoryGraph::dump() const {
  std::string text = "metadata " + metadata_ + "\nslots " + std::to_string(nodes_.size()) + " " +
                     std::to_string(values_.size()) + " " + std::to_string(uses_.size()) + " pending " +
                     std::to_string(inserted_.size()) + " " + std::to_string(erased_.size()) + "\n";
  for (Index i = first_node_; i != none; i = nodes_[i].next) {
    const NodeSlot& node = nodes_[i];
    text += "node " + std::to_string(i) + " " + node.op + " \"" + node.name + "\" (";
    for (const Index use : node.operands) text += use == none ? "-," : std::to_string(at(uses_[use].value)) + ",";
    text += ") -> (";
    for (const Value output : node.outputs) text += std::to_string(at(output)) + ",";
    text += ")";
    for (const Attribute& attribute : node.attributes) {
      text += " " + attribute.name + "=" + attribute.text + "," + std::to_string(attribute.integer) + "," +
              std::to_string(attribute.real);
      for (const std::int64_t value : attribute.integers) text += " " + std::to_string(value);
      for (const double value : attribute.reals) text += " " + std::to_string(value);
    }
    text += "\n";
  }
  for (Index i = 0; i < values_.size(); ++i) {
    const ValueSlot& value = values_[i];
    text += "value " + std::to_string(i) + " \"" + value.name + "\" of " + std::to_string(value.producer) +
            (value.erased ? " erased" : "") + " data=" + value.data + " uses:";
    for (Index use = value.first_use; use != none; use = uses_[use].next) {
      const Use& one = uses_[use].use;
      text += one.kind == Use::Kind::graph_output ? " out" : " " + std::to_string(at(one.user));
      text += "." + std::to_string(one.index);
    }
    text += "\n";
  }
  for (const Index use : outputs_) text += "output " + std::to_string(at(uses_[use].value)) + "\n";
  return text;
}

Status MemoryGraph::check() const {
  const auto broken = [](const char* what, Index i) {
    return Error{Code::internal, std::string(what) + " " + std::to_string(i)};
  };
  Index previous = none;
  for (Index i = first_node_; i != none; previous = i, i = nodes_[i].next) {
    if (nodes_[i].previous != previous) return broken("order is broken at node", i);
    if (nodes_[i].erased) return broken("order holds erased node", i);
    for (const Index use : nodes_[i].operands) {
      if (use != none && values_[at(uses_[use].value)].erased) return broken("an erased value is read by node", i);
    }
  }
  if (last_node_ != previous) return broken("order ends wrongly at node", last_node_);
  for (Index v = 0; v < values_.size(); ++v) {
    previous = none;
    for (Index i = values_[v].first_use; i != none; previous = i, i = uses_[i].next) {
      if (uses_[i].previous != previous) return broken("uses are broken of value", v);
      if (at(uses_[i].value) != v) return broken("a use is in the wrong list: of value", v);
      if (use_slot(uses_[i].use) != i) return broken("a use's node does not know it: of value", v);
    }
    if (values_[v].last_use != previous) return broken("uses end wrongly of value", v);
    if (values_[v].erased && values_[v].first_use != none) return broken("an erased value is used: value", v);
  }
  return {};
}

}  // namespace sl::graph
