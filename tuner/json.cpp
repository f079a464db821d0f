// The JSON form of a record. Keys are a promise to scripts: add, never rename or remove.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "tuner/record.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// JSON has no infinity: the largest double stands for it.
Json finite(double value) { return std::isfinite(value) ? value : std::numeric_limits<double>::max(); }

Json time_or_null(double us) { return us > 0 ? Json(us) : Json(nullptr); }

Json median_or_null(const std::optional<Spread>& spread) { return spread ? Json(spread->median) : Json(nullptr); }

Json spread_or_null(const std::optional<Spread>& spread) {
  return spread ? Json::array({spread->low, spread->high}) : Json(nullptr);
}

Json candidates(const Decision& decision) {
  Json list = Json::array();
  for (const auto& c : decision.candidates) {
    list.push_back({{"schedule", c.schedule},
                    {"config", c.config},
                    {"outcome", c.outcome},
                    {"median_us", time_or_null(c.median_us)},
                    {"low_us", time_or_null(c.low_us)},
                    {"high_us", time_or_null(c.high_us)},
                    {"registers", c.registers},
                    {"spill_bytes", c.spill_bytes},
                    {"smem", c.smem},
                    {"error_over_bound", finite(c.error_over_bound)},
                    {"predicted", c.predicted > 0 ? Json(c.predicted) : Json(nullptr)}});
  }
  return list;
}

Json refusals(const Decision& decision) {
  Json list = Json::array();
  for (const auto& r : decision.refusals) list.push_back({{"schedule", r.schedule}, {"reason", r.reason}});
  return list;
}

}  // namespace

std::string record_json(const Record& r) {
  const Decision& d = r.decision;
  const bool measured = r.measured.has_value();
  const std::optional<Spread> none;
  const auto& time = measured ? r.measured->time : none;
  const auto& copy = measured ? r.measured->copy : none;
  const Json out = {
      {"problem", r.problem.descriptor()},
      {"signature", r.problem.to_string()},
      {"dtype", name(r.problem.dtype)},
      {"tag", name(r.problem.layout)},
      {"device", r.device.name},
      {"capability", r.device.capability},
      {"policy", text_or_null(r.policy)},
      {"regular", r.regular == Regular::yes},
      {"verdict", name(d.verdict)},
      {"route", d.route},
      {"rule", text_or_null(d.rule)},
      {"table", text_or_null(d.table)},
      {"searched", d.searched},
      {"reason", text_or_null(d.reason)},
      {"schedule", text_or_null(d.schedule)},
      {"config", text_or_null(d.config)},
      {"origin", name(d.origin)},
      {"heuristic", text_or_null(d.heuristic)},
      {"match", name(d.match)},
      {"arch_note", text_or_null(d.arch_note)},
      {"candidates", candidates(d)},
      {"refusals", refusals(d)},
      {"noise_floor", d.noise_floor},
      {"error_over_bound", measured ? finite(r.measured->error_over_bound) : Json(nullptr)},
      {"outputs", r.problem.y_elements()},
      {"outputs_checked", measured ? r.measured->checked : 0},
      {"outputs_wrong", measured ? r.measured->wrong : 0},
      {"first_wrong", measured ? text_or_null(r.measured->first_wrong) : Json(nullptr)},
      {"time_us", median_or_null(time)},
      {"time_spread_us", spread_or_null(time)},
      {"copy_us", median_or_null(copy)},
      {"copy_spread_us", spread_or_null(copy)},
      {"counters",
       {{"compiles", r.counters.compiles},
        {"binary_hits", r.counters.binary_hits},
        {"decision_hits", r.counters.decision_hits},
        {"tunings", r.counters.tunings},
        {"launches", r.counters.launches}}},
  };
  return dump_json(out, true);
}

}  // namespace sl::tool
