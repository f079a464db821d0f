// A caller's graph, reached through the callbacks of the C ABI.
#pragma once

#include <vector>

#include "graph/editor.hpp"
#include "sluice/sluice.h"

struct sluice_id_list {
  std::vector<std::uint64_t> ids;
};
struct sluice_use_list {
  std::vector<sl::graph::Use> uses;
};

namespace sl::capi {

/// Forgets what an earlier callback of this thread said.
void forget_callback_error() noexcept;
/// ok, or the error of a callback that answered `status`, with what it said through sluice_graph_error().
Status callback_status(const char* callback, sluice_status status);

/// Checks that every required callback is there.
Status check_editor(const sluice_graph_editor&);

/// A NewNode from the caller's struct; what cannot be read is an error that names the field.
Result<graph::NewNode> read_new_node(const sluice_new_node&);

/// A NewNode as the C ABI shows it; `node` must outlive this.
class NewNodeView {
 public:
  explicit NewNodeView(const graph::NewNode& node);
  NewNodeView(const NewNodeView&) = delete;
  NewNodeView& operator=(const NewNodeView&) = delete;
  sluice_new_node* get() { return &view_; }

 private:
  std::vector<sluice_value> inputs_, replaces_;
  std::vector<sluice_attribute> attributes_;
  sluice_new_node view_ = SLUICE_NEW_NODE_INIT;
};

class CallbackEditor final : public graph::GraphEditor {
 public:
  explicit CallbackEditor(const sluice_graph_editor& calls) : calls_(calls) {}

  Status nodes(std::vector<graph::Node>& out) const override;
  Result<std::string_view> op(graph::Node) const override;
  Status view(graph::Node, graph::NodeView& out) const override;
  Status uses(graph::Value, std::vector<graph::Use>& out) const override;
  Result<graph::Node> insert(graph::Node before, const graph::NewNode&) override;
  Result<graph::Place> rewire(const graph::Use&, graph::Value from, graph::Value to) override;
  Status erase(graph::Node) override;
  Status undo_insert(graph::Node) override;
  Status undo_rewire(const graph::Use&, graph::Value from, graph::Value to, graph::Place) override;
  Status undo_erase(graph::Node) override;
  Status commit() override;

 private:
  sluice_graph_editor calls_;
  mutable sluice_id_list ids_;  ///< reused from call to call
  mutable sluice_use_list use_list_;
};

}  // namespace sl::capi
