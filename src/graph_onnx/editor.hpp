// An ONNX model as a graph that the pass can edit.
#pragma once

#include <onnx/onnx_pb.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/memory_graph.hpp"

namespace sl::graph {

/// Element type and shape of a value, as far as known.
struct TensorType {
  int element = 0;  ///< onnx::TensorProto::DataType; 0 = unknown
  bool ranked = false;
  std::vector<std::int64_t> dims;  ///< -1 = not fixed
  std::string text() const;        ///< "float16 [?, 3, 224, 224]"
};

/// Edits are made in a graph of links beside the model; the model changes in commit() alone, and then completely. So
/// undo cannot fail to restore it. Nested graphs (of If, Loop, Scan) are edited too; their nodes come before the node
/// that holds them. Model-local functions are not looked into.
class OnnxEditor final : public GraphEditor {
 public:
  /// `model` must have passed check_model() and outlive this. Names that nothing defines before they are read, and
  /// names that are defined twice, are errors.
  static Result<std::unique_ptr<OnnxEditor>> open(onnx::ModelProto& model, std::optional<std::int64_t> batch);

  const onnx::NodeProto& proto(Node node) const { return *nodes_[static_cast<std::size_t>(node)].proto; }
  /// Which (nested) graph holds the node.
  std::size_t graph_of(Node node) const { return nodes_[static_cast<std::size_t>(node)].graph; }
  const TensorType& type(Value) const;
  /// The data of an initialiser or of a Constant node; null where the value is computed, or may be overridden by a
  /// caller.
  const onnx::TensorProto* constant(Value) const;
  /// The Constant node that makes the value; nullopt where none does.
  std::optional<Node> constant_node(Value) const;
  const std::string& value_name(Value value) const { return links_.value_name(value); }

  Status nodes(std::vector<Node>& out) const override { return links_.nodes(out); }
  Result<std::string_view> op(Node node) const override { return links_.op(node); }
  Status view(Node node, NodeView& out) const override { return links_.view(node, out); }
  Status uses(Value value, std::vector<Use>& out) const override { return links_.uses(value, out); }
  Result<Node> insert(Node before, const NewNode&) override;
  Result<Place> rewire(const Use& use, Value from, Value to) override { return links_.rewire(use, from, to); }
  /// A node that holds nested graphs cannot be erased.
  Status erase(Node) override;
  Status undo_insert(Node) override;
  Status undo_rewire(const Use& use, Value from, Value to, Place place) override {
    return links_.undo_rewire(use, from, to, place);
  }
  Status undo_erase(Node node) override { return links_.undo_erase(node); }
  /// Writes the edits into the model: nodes in order, names kept, initialisers and value_info that only erased nodes
  /// read removed.
  Status commit() override;

 private:
  struct NodeInfo {
    std::size_t graph = 0;
    onnx::NodeProto* proto = nullptr;  ///< null for an inserted one
  };
  struct ValueInfo {
    TensorType type;
    const onnx::TensorProto* constant = nullptr;
    std::size_t graph = 0;
    bool input = false;  ///< of its graph; it may have a default as well
  };
  struct GraphInfo {
    onnx::GraphProto* proto = nullptr;
    std::size_t first_output = 0;  ///< among the links' graph outputs
  };
  using Scope = std::unordered_map<std::string, Value>;

  explicit OnnxEditor(onnx::ModelProto& model) : model_(model) {}
  Status read_graph(onnx::GraphProto&, const onnx::GraphProto& shapes);
  Status read_values(onnx::GraphProto&, std::size_t graph);
  Status read_node(onnx::NodeProto&, const onnx::NodeProto& shapes, std::size_t graph);
  Result<Value> define(const std::string& name, std::size_t graph);
  void note(Value, const std::string& name, std::size_t graph);
  const Value* find(const std::string& name) const;

  struct Edits;
  Status make_edits(Edits&) const;
  std::unique_ptr<onnx::NodeProto> make_proto(Node, const NodeView&) const;
  Status check_outputs() const;
  void find_orphans(Edits&) const;
  void apply(Edits&) noexcept;

  onnx::ModelProto& model_;
  MemoryGraph links_;
  std::vector<NodeInfo> nodes_;    ///< by node
  std::vector<ValueInfo> values_;  ///< by value; inserted nodes' are not in it
  std::vector<GraphInfo> graphs_;
  std::unordered_map<std::uint64_t, Node> constant_nodes_;
  // while reading
  std::vector<Scope> scopes_;
  std::vector<std::unordered_map<std::string, const onnx::TypeProto*>> types_;
};

}  // namespace sl::graph
