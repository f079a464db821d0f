// libFuzzer over random graphs, random plans and random faults. The oracle: after an error the graph is byte-identical;
// without one it is exactly what a pass without faults makes that takes the nodes which the report says were taken.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "graph/fixture.hpp"

namespace sl::test {
namespace {

/// Numbers from the input; zeros when it is used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  unsigned next() { return at_ < size_ ? data_[at_++] : 0; }
  unsigned below(std::size_t limit) { return next() % static_cast<unsigned>(limit); }
  bool chance(unsigned of_256) { return next() < of_256; }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

/// What the planner will say and do of a node, drawn before the pass.
struct Script {
  bool servable = false, take = false, required = false;
  std::vector<Node> absorbs;
  enum class Lowering {
    right,
    one_output_less,
    strange_input,
    replaces_input,
    fails,
    throws
  } lowering = Lowering::right;
};

struct Scene {
  MemoryGraph graph;
  std::vector<Script> scripts;  ///< by node
  std::vector<bool> planned;    ///< whether its op has a planner; by node
};

constexpr const char* ops[] = {"Conv", "Relu", "Add", "Pair"};

std::unique_ptr<Scene> make_scene(Bytes bytes) {
  auto scene = std::make_unique<Scene>();
  MemoryGraph& graph = scene->graph;
  graph.set_metadata("fuzzed");
  std::vector<Value> values;
  const unsigned inputs = 1 + bytes.below(3), count = 1 + bytes.below(24);
  for (unsigned i = 0; i < inputs; ++i)
    values.push_back(graph.add_value("in" + std::to_string(i), i == 0 ? "" : "data"));
  std::vector<Node> nodes;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned op = bytes.below(4), operands = bytes.below(4);
    std::vector<Value> reads;
    for (unsigned j = 0; j < operands; ++j)
      reads.push_back(bytes.chance(24)
                          ? no_value
                          : values[values.size() - 1 - bytes.below(std::min<std::size_t>(values.size(), 6))]);
    std::vector<std::string> outputs(op == 3 ? 2 : 1, "v" + std::to_string(i));
    scene->planned.push_back(op == 0 || op == 3);
    nodes.push_back(graph.add_node(ops[op], "n" + std::to_string(i), std::move(reads), outputs,
                                   {Attribute::of("number", static_cast<std::int64_t>(i))}));
    for (std::size_t j = 0; j < outputs.size(); ++j) values.push_back(graph.output(nodes.back(), j));
    if (bytes.chance(40)) graph.add_output(values.back());
  }
  graph.add_output(values.back());
  scene->scripts.resize(count);
  std::vector<Use> uses;
  for (unsigned i = 0; i < count; ++i) {
    Script& script = scene->scripts[i];
    script.servable = bytes.chance(220);
    script.take = bytes.chance(200);
    script.required = bytes.chance(16);
    uses.clear();
    (void)graph.uses(graph.output(nodes[i], 0), uses);
    if (!uses.empty() && uses[0].kind == Use::Kind::operand && bytes.chance(128))
      script.absorbs.push_back(uses[0].user);
    if (bytes.chance(16)) script.absorbs.push_back(nodes[bytes.below(count)]);
    if (bytes.chance(48)) script.lowering = static_cast<Script::Lowering>(bytes.below(6));
  }
  return scene;
}

/// `only`: take exactly the nodes of these names' rows (the replay), else as scripted.
PlannerRegistry make_planners(Scene& scene, const Report* only) {
  Planner planner;
  const auto row = std::make_shared<std::size_t>(0);
  planner.plan = [&scene, only, row](const GraphEditor&, Node node) -> Result<NodePlan> {
    const Script& script = scene.scripts[static_cast<std::size_t>(node)];
    NodePlan plan;
    plan.signature = "node " + std::to_string(static_cast<std::uint64_t>(node));
    plan.servable = script.servable;
    plan.take = only == nullptr ? script.take : only->nodes[*row].action == Action::take;
    ++*row;
    plan.absorbs = script.absorbs;
    return plan;
  };
  planner.lower = [&scene](const GraphEditor& editor, Node node, const NodePlan& plan) -> Result<NewNode> {
    const Script& script = scene.scripts[static_cast<std::size_t>(node)];
    if (script.lowering == Script::Lowering::fails) return Error{Code::unsupported, "scripted"};
    if (script.lowering == Script::Lowering::throws) (void)raise(Fault::alien_exception);
    NodeView view, last;
    SL_TRY(editor.view(node, view));
    SL_TRY(editor.view(plan.absorbs.empty() ? node : plan.absorbs.back(), last));
    NewNode made;
    made.op = "new::" + view.op;
    made.name = view.name;
    made.inputs = view.inputs;
    made.replaces = last.outputs;
    if (script.lowering == Script::Lowering::one_output_less) made.replaces.pop_back();
    if (script.lowering == Script::Lowering::strange_input) made.inputs.push_back(Value{999});
    if (script.lowering == Script::Lowering::replaces_input && !view.inputs.empty()) made.replaces[0] = view.inputs[0];
    return made;
  };
  PlannerRegistry planners;
  if (!planners.add("Conv", planner).ok() || !planners.add("Pair", planner).ok()) std::abort();
  return planners;
}

PassOptions make_options(const Scene& scene, const PlannerRegistry& planners, bool replay) {
  PassOptions options;
  options.planners = &planners;
  options.device.name = "a device";
  options.device.capability = 90;
  options.regular = [&scene, replay](const GraphEditor&, Node node, const NodePlan&) -> Result<Regular> {
    return !replay && scene.scripts[static_cast<std::size_t>(node)].required ? Regular::no : Regular::yes;
  };
  return options;
}

[[noreturn]] void fail(const char* what, const std::string& a, const std::string& b = {}) {
  std::fprintf(stderr, "oracle: %s\n%s\n----\n%s\n", what, a.c_str(), b.c_str());
  std::abort();
}

void one(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const bool faulty = bytes.chance(160), undo_faulty = bytes.chance(16), commit_faulty = bytes.chance(16);
  const std::int64_t at = static_cast<std::int64_t>(bytes.next() + 256 * bytes.below(3));
  const auto kind = static_cast<Fault>(1 + bytes.below(3));
  const auto scene = make_scene(bytes);
  const std::string before = scene->graph.dump();
  if (const Status whole = scene->graph.check(); !whole.ok()) fail("broken at first", whole.error().message);

  FaultyEditor editor(scene->graph);
  editor.fault = kind;
  if (faulty) editor.fail_at = at;
  if (undo_faulty) editor.fail_undo_at = at % 8;
  editor.fail_commit = commit_faulty;
  const PlannerRegistry planners = make_planners(*scene, nullptr);
  const Outcome outcome = replace(editor, make_options(*scene, planners, false));

  if (outcome.error && outcome.error->state == GraphState::damaged) {
    if (editor.fail_undo_at < 0 || editor.undos <= editor.fail_undo_at)
      fail("damaged without a failed undo", outcome.error->message);
    return;
  }
  if (editor.fail_undo_at >= 0 && editor.undos > editor.fail_undo_at) fail("a failed undo was hidden", before);
  if (const Status whole = scene->graph.check(); !whole.ok()) fail("broken links", whole.error().message, before);
  if (outcome.error) {
    if (scene->graph.dump() != before) fail("not restored", before, scene->graph.dump());
    return;
  }
  for (std::size_t i = 0; i < scene->scripts.size(); ++i) {
    if (scene->scripts[i].required && scene->planned[i] && scene->graph.op(Node{i}).ok())
      fail("a REQUIRED node slipped through", before, scene->graph.dump());
  }
  const auto again = make_scene(bytes);
  const PlannerRegistry replayed = make_planners(*again, &outcome.report);
  const Outcome clean = replace(again->graph, make_options(*again, replayed, true));
  if (clean.error) fail("the replay failed", clean.error->message);
  if (again->graph.dump() != scene->graph.dump())
    fail("not what the report says", again->graph.dump(), scene->graph.dump());
}

}  // namespace
}  // namespace sl::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sl::test::one(data, size);
  return 0;
}
