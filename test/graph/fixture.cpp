#include "fixture.hpp"

#include <map>
#include <stdexcept>

namespace sl::test {

Attribute problem_attribute(const std::string& text) { return Attribute::of("problem", text); }

std::unique_ptr<MemoryGraph> make_chain(std::size_t convolutions,
                                        const std::function<std::string(std::size_t)>& problem) {
  auto graph = std::make_unique<MemoryGraph>();
  graph->set_metadata("made by a test");
  Value x = graph->add_value("input");
  const Value shared = graph->add_value("weights", "shared by every layer");
  for (std::size_t i = 0; i < convolutions; ++i) {
    const std::string id = std::to_string(i);
    const Value bias = i % 2 == 0 ? graph->add_value("bias" + id, "b" + id) : no_value;
    const Node conv = graph->add_node("Conv", "conv" + id, {x, shared, bias}, {"y" + id},
                                      {problem_attribute(problem(i)), Attribute::of("group", std::int64_t{144})});
    const Value y = graph->output(conv, 0);
    if (i % 3 == 0) graph->add_output(y);  // read by the outside too: nothing may be absorbed
    const Node act = graph->add_node("Relu", "relu" + id, {y}, {"r" + id});
    const Node add = graph->add_node("Add", "", {graph->output(act, 0), x}, {"z" + id});
    x = graph->output(add, 0);
  }
  graph->add_output(x);
  return graph;
}

Target make_target(const std::string& described) {
  static std::map<std::string, Target> known;  // tables are parsed once: tests make thousands of passes
  Target& target = known[described];
  if (target.table == nullptr) {
    target.device = described_device(described).value();
    target.table = find_routing_table(target.device, "", Log()).value().table;
  }
  return target;
}

Planner conv_planner(const MemoryGraph& graph, std::shared_ptr<ConvDecider> decider) {
  Planner planner;
  planner.plan = [&graph, decider](const GraphEditor& editor, Node node) -> Result<NodePlan> {
    NodeView view;
    SL_TRY(editor.view(node, view));
    SL_ASSIGN(const ConvProblem problem, parse(graph.attributes(node).front().text));
    std::vector<ConvCall> calls;
    std::vector<Use> uses;
    SL_TRY(editor.uses(view.outputs[0], uses));
    if (uses.size() == 1 && uses[0].kind == Use::Kind::operand) {
      SL_ASSIGN(const std::string_view op, editor.op(uses[0].user));
      if (op == "Relu") {
        ConvProblem folded = problem;
        folded.activation = Activation::relu;
        calls.push_back({folded, {uses[0].user}, {}});
      }
    }
    calls.push_back({problem, {}, {}});
    return decider->decide(std::move(calls));
  };
  planner.lower = [&graph](const GraphEditor& editor, Node node, const NodePlan& plan) -> Result<NewNode> {
    NodeView view;
    SL_TRY(editor.view(node, view));
    NewNode made;
    made.op = "ai.sluice::Conv2d";
    made.name = view.name;
    made.inputs = view.inputs;
    made.replaces = view.outputs;
    if (!plan.absorbs.empty()) {
      NodeView last;
      SL_TRY(editor.view(plan.absorbs.back(), last));
      made.replaces = last.outputs;
    }
    made.attributes = graph.attributes(node);
    made.attributes.push_back(Attribute::of("absorbed", static_cast<std::int64_t>(plan.absorbs.size())));
    return made;
  };
  return planner;
}

Ready::Ready(const MemoryGraph& graph, const std::string& device, bool force) {
  Target target = make_target(device);
  target.force_take = force;
  decider = std::make_shared<ConvDecider>(target);
  if (!planners.add("Conv", conv_planner(graph, decider)).ok()) std::abort();
  options.planners = &planners;
  options.device = target.device;
}

Status raise(Fault fault) {
  switch (fault) {
    case Fault::none:
      break;
    case Fault::error:
      return Error{Code::device, "injected"};
    case Fault::exception:
      throw std::runtime_error("injected exception");
    case Fault::alien_exception:
      throw 42;  // NOLINT a callback of someone else may throw anything
  }
  return {};
}

Status FaultyEditor::step() const { return calls++ == fail_at ? raise(fault) : Status(); }
Status FaultyEditor::undo_step() const {
  ++calls;
  return undos++ == fail_undo_at ? raise(fault) : Status();
}

Status FaultyEditor::nodes(std::vector<Node>& out) const {
  SL_TRY(step());
  return inner_.nodes(out);
}
Result<std::string_view> FaultyEditor::op(Node node) const {
  SL_TRY(step());
  return inner_.op(node);
}
Status FaultyEditor::view(Node node, NodeView& out) const {
  SL_TRY(step());
  return inner_.view(node, out);
}
Status FaultyEditor::uses(Value value, std::vector<Use>& out) const {
  SL_TRY(step());
  return inner_.uses(value, out);
}
Result<Node> FaultyEditor::insert(Node before, const NewNode& node) {
  SL_TRY(step());
  return inner_.insert(before, node);
}
Result<Place> FaultyEditor::rewire(const Use& use, Value from, Value to) {
  SL_TRY(step());
  return inner_.rewire(use, from, to);
}
Status FaultyEditor::erase(Node node) {
  SL_TRY(step());
  return inner_.erase(node);
}
Status FaultyEditor::undo_insert(Node node) {
  SL_TRY(undo_step());
  return inner_.undo_insert(node);
}
Status FaultyEditor::undo_rewire(const Use& use, Value from, Value to, Place place) {
  SL_TRY(undo_step());
  return inner_.undo_rewire(use, from, to, place);
}
Status FaultyEditor::undo_erase(Node node) {
  SL_TRY(undo_step());
  return inner_.undo_erase(node);
}
Status FaultyEditor::commit() {
  SL_TRY(step());
  if (fail_commit) return Error{Code::environment, "disk full"};
  return inner_.commit();
}

}  // namespace sl::test
