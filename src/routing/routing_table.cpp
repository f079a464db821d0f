#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "routing/features.hpp"
#include "routing/routing.hpp"

namespace sl {
namespace {

using nlohmann::ordered_json;

ordered_json number_json(double value) {
  // Thresholds are nearly always whole numbers; 49 reads better than 49.0.
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  return json_real(value);
}

ordered_json conditions_json(const std::vector<Threshold>& conditions) {
  ordered_json out = ordered_json::object();
  for (const Threshold& threshold : conditions) {
    ordered_json& at = out[threshold.feature];
    if (!threshold.any_of.empty()) at = threshold.any_of;
    for (const double value : threshold.values) at.push_back(number_json(value));
    if (threshold.min) at["min"] = number_json(*threshold.min);
    if (threshold.max) at["max"] = number_json(*threshold.max);
  }
  return out;
}

ordered_json rule_json(const Rule& rule) {
  ordered_json out;
  out["name"] = rule.name;
  out["route"] = rule.take ? "take" : "keep";
  out["when"] = conditions_json(rule.when);
  if (!rule.schedules.empty()) out["schedules"] = rule.schedules;
  if (rule.evidence) {
    out["evidence"]["cases"] = rule.evidence->cases;
    out["evidence"]["min_speedup"] = json_real(rule.evidence->min_speedup);
    out["evidence"]["median_speedup"] = json_real(rule.evidence->median_speedup);
    out["evidence"]["baseline"] = rule.evidence->baseline;
    out["evidence"]["versions"] = rule.evidence->versions;
  }
  if (!rule.note.empty()) out["note"] = rule.note;
  return out;
}

/// The first condition that the problem misses; nullopt = it meets them all.
std::optional<std::string> first_missed(const std::vector<Threshold>& conditions, const ConvProblem& problem) {
  for (const Threshold& threshold : conditions)
    if (auto how = missed(threshold, problem)) return how;
  return std::nullopt;
}

}  // namespace

std::string RoutingTable::device_text() const {
  if (any_device_) return "any device";
  return device_name_ + " (capability " + std::to_string(capability_) + ")";
}

bool RoutingTable::matches(const DeviceInfo& device) const {
  if (any_device_) return true;
  return (device.backend == "cuda" || device.backend == "host") && device.name == device_name_ &&
         device.capability == capability_;
}

Route RoutingTable::decide(const ConvProblem& problem, const DeviceInfo& device) const {
  Route route;
  route.table = origin_;
  route.rule = "default: keep";
  if (!matches(device)) {
    route.reason = "the table is for " + device_text() + ", the device is " + device.name;
    return route;
  }
  if (auto how = first_missed(measured_, problem)) {
    route.rule = "outside the measured range: keep";
    route.reason = *std::move(how);
    return route;
  }
  for (const Rule& rule : rules_) {
    if (first_missed(rule.when, problem)) continue;
    route.take = rule.take;
    route.rule = rule.name;
    route.schedules = rule.schedules;
    return route;
  }
  route.reason = "no rule of the table matches";
  return route;
}

std::string RoutingTable::to_json() const {
  ordered_json out;
  out["schema"] = 1;
  if (any_device_) {
    out["device"] = "any";
  } else {
    out["device"]["name"] = device_name_;
    out["device"]["capability"] = capability_;
  }
  if (!note_.empty()) out["note"] = note_;
  if (!measured_.empty()) out["measured"] = conditions_json(measured_);
  out["rules"] = ordered_json::array();
  for (const Rule& rule : rules_) out["rules"].push_back(rule_json(rule));
  return dump_json(out, true);
}

RoutingTable RoutingTable::take_everything(std::string origin) {
  RoutingTable table;
  table.origin_ = std::move(origin);
  table.any_device_ = true;
  Rule rule;
  rule.name = "everything";
  rule.take = true;
  table.rules_.push_back(std::move(rule));
  return table;
}

}  // namespace sl
