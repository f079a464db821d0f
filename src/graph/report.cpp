#include "graph/report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"

namespace sl::graph {
namespace {

using Json = nlohmann::ordered_json;

Json node_json(const NodeReport& node) {
  Json out;
  out["op"] = node.op;
  out["name"] = node.name;
  out["signature"] = node.signature;
  out["verdict"] = name(node.verdict);
  out["action"] = name(node.action);
  out["rule"] = node.rule.empty() ? Json(nullptr) : Json(node.rule);
  out["reason"] = node.reason;
  out["speedup"] = node.speedup > 0 ? Json(node.speedup) : Json(nullptr);
  out["absorbed"] = node.absorbed;
  return out;
}

Json error_json(const ReplacementError& error) {
  Json failures = Json::array();
  for (const Failure& failure : error.failures) {
    failures.push_back(
        {{"op", failure.op}, {"name", failure.name}, {"signature", failure.signature}, {"reason", failure.reason}});
  }
  Json out;
  out["message"] = error.message;
  out["graph"] = name(error.state);
  out["undo_error"] = error.undo_error.empty() ? Json(nullptr) : Json(error.undo_error);
  out["failures"] = std::move(failures);
  return out;
}

}  // namespace

std::string_view name(Action action) {
  switch (action) {
    case Action::keep:
      return "keep";
    case Action::take:
      return "take";
    case Action::absorbed:
      return "absorbed";
    case Action::undone:
      return "undone";
    case Action::fail:
      break;
  }
  return "fail";
}

std::string_view name(GraphState state) {
  switch (state) {
    case GraphState::untouched:
      return "untouched";
    case GraphState::restored:
      return "restored";
    case GraphState::damaged:
      break;
  }
  return "damaged";
}

std::int64_t Report::count(Verdict verdict) const {
  return std::count_if(nodes.begin(), nodes.end(), [&](const NodeReport& n) { return n.verdict == verdict; });
}

std::int64_t Report::count(Action action) const {
  return std::count_if(nodes.begin(), nodes.end(), [&](const NodeReport& n) { return n.action == action; });
}

std::string to_json(const Report& report, const ReplacementError* error) {
  Json out;
  out["schema"] = 1;
  out["device"] = report.device;
  out["graph_nodes"] = report.graph_nodes;
  Json verdicts, actions;
  for (const Verdict verdict : {Verdict::optional, Verdict::required, Verdict::unsupported})
    verdicts[std::string(name(verdict))] = report.count(verdict);
  for (const Action action : {Action::keep, Action::take, Action::absorbed, Action::undone, Action::fail})
    actions[std::string(name(action))] = report.count(action);
  out["verdicts"] = std::move(verdicts);
  out["actions"] = std::move(actions);
  out["nodes"] = Json::array();
  for (const NodeReport& node : report.nodes) out["nodes"].push_back(node_json(node));
  out["warnings"] = report.warnings;
  out["times_s"] = {
      {"plan", report.times.plan}, {"rewrite", report.times.rewrite}, {"undo_log", report.times.undo_log}};
  out["error"] = error == nullptr ? Json(nullptr) : error_json(*error);
  return dump_json(out, true);
}

}  // namespace sl::graph
