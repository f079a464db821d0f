// A graph in memory: the editor that tests and fuzzing use, and an example of how undo can be exact.
#pragma once

#include <string>
#include <vector>

#include "graph/editor.hpp"

namespace sl::graph {

/// Nodes in a doubly linked order, each value with a doubly linked list of its uses. What is unlinked keeps its own
/// links, so that undoing in reverse order puts it back where it was, without memory and in constant time.
class MemoryGraph final : public GraphEditor {
 public:
  /// A value that no node makes: a graph input, or an initialiser where `data` is not empty.
  Value add_value(std::string name, std::string data = {});
  /// Appends a node; `outputs` names its output values, an empty name is an output that is left out.
  Node add_node(std::string op, std::string name, const std::vector<Value>& inputs, std::vector<std::string> outputs,
                std::vector<Attribute> attributes = {});
  void add_output(Value);
  void set_metadata(std::string text) { metadata_ = std::move(text); }

  const std::vector<Attribute>& attributes(Node) const;
  const std::string& value_name(Value value) const { return values_[at(value)].name; }
  /// The name that a value will have once the edits so far are committed.
  const std::string& final_name(Value) const;
  /// Nodes inserted and erased since the last commit, in that order.
  const std::vector<std::uint64_t>& inserted() const { return inserted_; }
  const std::vector<std::uint64_t>& erased() const { return erased_; }
  /// What an inserted node stands for, and what an erased node read. Until the next commit.
  const std::vector<Value>& replaced_by(Node node) const { return nodes_[at(node)].replaces; }
  std::vector<Value> operands_of_erased(Node) const;
  bool is_erased(Value value) const { return values_[at(value)].erased; }
  bool is_used(Value value) const { return values_[at(value)].first_use != none; }
  Value graph_output(std::size_t i) const { return uses_[outputs_[i]].value; }
  std::size_t graph_outputs() const { return outputs_.size(); }
  std::size_t value_count() const { return values_.size(); }
  Value output(Node node, std::size_t i) const { return nodes_[at(node)].outputs[i]; }

  /// Everything that the graph holds, order of nodes and of uses and forgotten slots included: equal texts, equal
  /// graphs.
  std::string dump() const;
  /// Whether all links agree: order both ways, every use in exactly the list of the value that it reads, and none of an
  /// erased value. An error names the first that does not.
  Status check() const;

  Status nodes(std::vector<Node>& out) const override;
  Result<std::string_view> op(Node) const override;
  Status view(Node, NodeView& out) const override;
  Status uses(Value, std::vector<Use>& out) const override;
  Result<Node> insert(Node before, const NewNode&) override;
  Result<Place> rewire(const Use&, Value from, Value to) override;
  Status erase(Node) override;
  Status undo_insert(Node) override;
  Status undo_rewire(const Use&, Value from, Value to, Place) override;
  Status undo_erase(Node) override;
  Status commit() override;

 private:
  using Index = std::uint64_t;
  static constexpr Index none = ~Index{0};

  struct UseSlot {
    Use use;
    Value value{};  ///< what it reads
    Index next = none, previous = none;
  };
  struct ValueSlot {
    std::string name, data;
    Index producer = none;
    Index first_use = none, last_use = none;
    bool erased = false;
  };
  struct NodeSlot {
    std::string op, name;
    std::vector<Attribute> attributes;
    std::vector<Index> operands;  ///< use slots; none for an input that is left out
    std::vector<Value> outputs, replaces;
    Index next = none, previous = none;
    bool erased = false;
  };

  static Index at(Value value) { return static_cast<Index>(value); }
  static Index at(Node node) { return static_cast<Index>(node); }
  bool is_node(Node node) const { return at(node) < nodes_.size() && !nodes_[at(node)].erased; }
  bool is_value(Value value) const { return at(value) < values_.size() && !values_[at(value)].erased; }
  Index use_slot(const Use&) const;  ///< none where there is no such use

  void make_room(std::size_t values, std::size_t uses);
  NodeSlot make_slot(std::string op, std::string name, std::vector<Attribute>, std::size_t inputs,
                     std::size_t outputs) const;
  Index append(NodeSlot&&, const std::vector<Value>& inputs, std::vector<std::string>& output_names) noexcept;
  void link_use(Index use, Value, Index before) noexcept;
  void unlink_use(Index use) noexcept;
  void link_node(Index node, Index before) noexcept;
  void unlink_node(Index node) noexcept;
  void relink_node(Index node) noexcept;

  std::vector<NodeSlot> nodes_;
  std::vector<ValueSlot> values_;
  std::vector<UseSlot> uses_;
  std::vector<Index> outputs_;            ///< use slots of the graph's outputs
  std::vector<Index> erased_, inserted_;  ///< nodes, since the last commit
  std::string metadata_;
  Index first_node_ = none, last_node_ = none;
};

}  // namespace sl::graph
