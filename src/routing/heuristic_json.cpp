// A heuristic from JSON and back. What is not understood is an error that names the file, the place, the value and what
// would be right.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/json_reader.hpp"
#include "routing/branch_feature.hpp"
#include "routing/heuristic.hpp"

namespace sl {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t schema_version = 1;

ordered_json node_json(const Tree& tree, std::size_t at) {
  const TreeNode& node = tree[at];
  ordered_json out;
  if (node.feature.empty()) {
    out["value"] = json_real(node.value);
    out["cases"] = node.cases;
    return out;
  }
  out["feature"] = node.feature;
  node.is.empty() ? out["at_most"] = json_real(node.at_most) : out["is"] = node.is;
  out["yes"] = node_json(tree, node.yes);
  out["no"] = node_json(tree, node.no);
  return out;
}

/// The depth of a document is bounded by parse_json(), so this may recur.
Status read_node(const JsonView& view, bool of_candidate, Tree& tree) {
  JsonFields fields(view);
  const std::size_t at = tree.size();
  TreeNode& node = tree.emplace_back();
  if (!fields.has("feature")) {
    node.value = fields.number("value");
    node.cases = fields.integer("cases", 1, 1'000'000'000);
    SL_TRY(fields.finish());
    if (node.value < 0) return view.error("has a value below 0: smaller is better, 0 or more is right");
    return {};
  }
  node.feature = fields.text("feature");
  const auto feature = BranchFeature::find(node.feature, of_candidate);
  if (!fields.failed() && !feature) {
    return view.error("there is no feature \"" + node.feature +
                      "\" here; there are: " + branch_feature_list(of_candidate));
  }
  const NameFeature* words = feature ? feature->words() : nullptr;
  if (words != nullptr) {
    node.is = fields.text("is");
  } else {
    node.at_most = fields.number("at_most");
  }
  const auto yes = fields.value("yes", true), no = fields.value("no", true);
  SL_TRY(fields.finish());
  if (words != nullptr && !words->known(node.is)) {
    return view.error("is \"" + node.is + "\": one of " + std::string(words->meaning) + " would be right");
  }
  for (const bool side : {true, false}) {
    const std::size_t next = tree.size();
    side ? tree[at].yes = next : tree[at].no = next;
    SL_TRY(read_node(side ? *yes : *no, of_candidate, tree));
  }
  return {};
}

Result<ScheduleTrees> read_schedule(const JsonView& view, Predicts predicts) {
  JsonFields fields(view);
  ScheduleTrees out;
  out.name = fields.text("name");
  out.build = fields.digest("build");
  const auto schedule = fields.value("schedule", true);
  const auto config = fields.value("config", false);
  SL_TRY(fields.finish());
  if (find_schedule(out.name) == nullptr) {
    std::string known;
    for (const Schedule* one : all_schedules()) known += (known.empty() ? "" : ", ") + std::string(one->name);
    return view.error("name is \"" + out.name + "\", a schedule would be right: " + known);
  }
  if (config && predicts == Predicts::winner) {
    return config->error("a model of winners says nothing of configurations; remove it");
  }
  SL_TRY(read_node(*schedule, false, out.schedule));
  if (config) SL_TRY(read_node(*config, true, out.config));
  return out;
}

ordered_json evidence_json(const HeuristicEvidence& evidence, Predicts predicts) {
  ordered_json out;
  out["calls"] = evidence.calls;
  out["left_out"] = evidence.left_out;
  out["groups"] = evidence.groups;
  out["tested"] = evidence.quality.calls;
  out["picked"] = json_real(evidence.quality.picked);
  out["default_order"] = json_real(evidence.quality.default_order);
  if (predicts == Predicts::time) {
    out["worst"] = json_real(evidence.quality.worst);
    out["default_worst"] = json_real(evidence.quality.default_worst);
  }
  out["versions"] = evidence.versions;
  return out;
}

Result<HeuristicEvidence> read_evidence(const JsonView& view, Predicts predicts) {
  constexpr std::int64_t most = 1'000'000'000;
  JsonFields fields(view);
  HeuristicEvidence out;
  out.calls = fields.integer("calls", 1, most);
  out.left_out = fields.text("left_out");
  out.groups = fields.integer("groups", 2, most);
  out.quality.calls = fields.integer("tested", 1, most);
  out.quality.picked = fields.number("picked");
  out.quality.default_order = fields.number("default_order");
  if (predicts == Predicts::time) {
    out.quality.worst = fields.number("worst");
    out.quality.default_worst = fields.number("default_worst");
  }
  out.versions = fields.text("versions");
  SL_TRY(fields.finish());
  return out;
}

}  // namespace

Result<Heuristic> Heuristic::from_json(std::string_view text, std::string_view origin) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, origin));
  const JsonView root(document, origin);
  JsonFields fields(root);
  SL_TRY(fields.schema(schema_version));

  Heuristic out;
  out.origin_ = origin;
  const auto device = fields.value("device", true);
  out.note_ = fields.text("note", "");
  const std::string predicts = fields.text("predicts");
  const auto evidence = fields.value("evidence", true);
  const auto schedules = fields.value("schedules", true);
  SL_TRY(fields.finish());
  if (predicts != name(Predicts::time) && predicts != name(Predicts::winner))
    return root.error("predicts is \"" + predicts + "\", \"time\" or \"winner\" would be right");
  out.predicts_ = predicts == name(Predicts::time) ? Predicts::time : Predicts::winner;

  JsonFields names(*device);
  out.device_name_ = names.text("name");
  out.capability_ = static_cast<int>(names.integer("capability", 50, 9990));
  SL_TRY(names.finish());
  SL_ASSIGN(out.evidence_, read_evidence(*evidence, out.predicts_));
  SL_ASSIGN(const std::vector<JsonView> items, schedules->items());
  std::set<std::string> seen;
  for (const JsonView& item : items) {
    SL_ASSIGN(ScheduleTrees trees, read_schedule(item, out.predicts_));
    if (!seen.insert(trees.name).second) return item.error("schedule " + trees.name + " was there before; each once");
    out.schedules_.push_back(std::move(trees));
  }
  if (out.schedules_.empty()) return schedules->error("is empty; at least one schedule would be right");
  return out;
}

std::string Heuristic::to_json() const {
  ordered_json out;
  out["schema"] = schema_version;
  out["device"]["name"] = device_name_;
  out["device"]["capability"] = capability_;
  if (!note_.empty()) out["note"] = note_;
  out["predicts"] = name(predicts_);
  out["evidence"] = evidence_json(evidence_, predicts_);
  out["schedules"] = ordered_json::array();
  for (const ScheduleTrees& trees : schedules_) {
    ordered_json one;
    one["name"] = trees.name;
    one["build"] = trees.build.hex();
    one["schedule"] = node_json(trees.schedule, 0);
    if (!trees.config.empty()) one["config"] = node_json(trees.config, 0);
    out["schedules"].push_back(std::move(one));
  }
  return dump_json(out, true);
}

}  // namespace sl
