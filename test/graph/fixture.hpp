// Graphs of convolutions in memory, the planner that reads them, and an editor that fails where it is told to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "graph/conv_decider.hpp"
#include "graph/memory_graph.hpp"
#include "graph/pass.hpp"

namespace sl::test {

using namespace sl::graph;

constexpr const char* taken_text = "g144mb32ic144ih56oc144oh56kh3ph1 dt=f16";         ///< by the H200's shipped table
constexpr const char* kept_text = "mb1ic64ih8oc64oh8kh3ph1 dt=f16";                   ///< served, and in no table
constexpr const char* impossible_text = "g4mb1ic4ih1iw600000000oc4kh1kw3pw1 dt=f16";  ///< no schedule can

/// Node attribute "problem" holds a convolution's text.
Attribute problem_attribute(const std::string& text);

/// A chain of layers: Conv, Relu, Add with the layer's input, Conv with weights that all layers share, ...; every third
/// convolution is a graph output too. `problem(i)` is the i-th convolution's text.
std::unique_ptr<MemoryGraph> make_chain(std::size_t convolutions,
                                        const std::function<std::string(std::size_t)>& problem);

Target make_target(const std::string& described = "h200");

/// Planner for "Conv" nodes of a MemoryGraph; a Relu that alone reads the result is absorbed. `graph` is what holds the
/// attributes: the pass may see it through another editor.
Planner conv_planner(const MemoryGraph& graph, std::shared_ptr<ConvDecider> decider);

/// Everything that a pass over one graph needs.
struct Ready {
  explicit Ready(const MemoryGraph& graph, const std::string& device = "h200", bool force = false);
  PlannerRegistry planners;
  std::shared_ptr<ConvDecider> decider;
  PassOptions options;
};

enum class Fault { none, error, exception, alien_exception };

/// Passes calls on, and fails the chosen one instead of making it. Calls are counted from 0, looking, editing and
/// undoing alike.
class FaultyEditor final : public GraphEditor {
 public:
  explicit FaultyEditor(GraphEditor& inner) : inner_(inner) {}
  std::int64_t fail_at = -1;       ///< number of the call
  std::int64_t fail_undo_at = -1;  ///< number among the undo calls
  Fault fault = Fault::error;
  mutable std::int64_t calls = 0, undos = 0;
  bool fail_commit = false;

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
  Status step() const;
  Status undo_step() const;
  GraphEditor& inner_;
};

/// Raises a fault: an Error, or an exception.
Status raise(Fault);

}  // namespace sl::test
