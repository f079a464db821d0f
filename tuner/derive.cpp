// `sluice derive`: measured rows in, a routing table out.
#include "routing/derive.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/measured.hpp"
#include "tuner/networks.hpp"
#include "tuner/print.hpp"
#include "tuner/row_file.hpp"

namespace sl::tool {
namespace {

double speedup(std::span<const MeasuredCall> calls, std::span<const DerivedRule> rules) {
  double sum = 0, count = 0;
  std::vector<bool> seen(calls.size());
  for (const DerivedRule& rule : rules) {
    for (const std::size_t i : rule.cases) {
      if (seen[i]) continue;
      seen[i] = true;
      sum += std::log(calls[i].baseline_us / calls[i].time_us);
      ++count;
    }
  }
  return count == 0 ? 0 : std::exp(sum / count);
}

nlohmann::ordered_json regret_json(const Regret& r) {
  return {{"calls", r.calls},
          {"taken", r.taken},
          {"slower", r.slower},
          {"time_over_oracle", r.over_oracle},
          {"keeping_over_oracle", r.baseline_over},
          {"worst", r.worst}};
}

std::string regret_text(const Regret& r) {
  return std::to_string(r.taken) + " of " + std::to_string(r.calls) + " taken, " + std::to_string(r.slower) +
         " slower; time / best choice " + number(r.over_oracle) + " (keeping all: " + number(r.baseline_over) + ")" +
         (r.worst.empty() ? "" : "\n           worst " + r.worst);
}

Result<int> derive(const Options& o) {
  SL_ASSIGN(MeasuredFile measured, read_measured(o.inputs));
  SL_TRY(name_networks(o.suites, measured.calls));
  const std::vector<MeasuredCall>& calls = measured.calls;
  DeriveOptions options;
  options.margin = o.margin;
  options.min_cases = o.min_cases;
  const std::vector<DerivedRule> rules = derive_rules(calls, options);
  if (rules.empty()) return Error{Code::invalid, "no call was faster by the margin: the table would keep everything"};
  DeviceInfo device;
  device.name = measured.gpu;
  device.capability = measured.capability;
  const std::string note = "Made by `sluice derive` from " + std::to_string(calls.size()) + " measured calls, margin " +
                           number(100 * o.margin) + " %. A call outside every rule is kept.";
  const std::string table = derived_table(calls, rules, device, measured.baseline, measured.versions, note);
  // What was derived must read back, or nothing is written.
  SL_ASSIGN(const RoutingTable checked, RoutingTable::from_json(table, o.out));
  (void)checked;
  SL_TRY(write_whole(o.out, table));
  const Regret own = regret_of(rules, calls, o.noise);
  const LeftOutRegret unseen = cross_validate(calls, options, o.noise);
  if (o.json) {
    const nlohmann::ordered_json object = {{"out", o.out},
                                           {"rules", rules.size()},
                                           {"failed", measured.failed},
                                           {"speedup", speedup(calls, rules)},
                                           {"derived_from", regret_json(own)},
                                           {"left_out", regret_json(unseen.regret)},
                                           {"left_out_by", unseen.by},
                                           {"groups", unseen.turns}};
    std::fputs(dump_json(object, true).c_str(), stdout);
    return exit_done;
  }
  Grid grid({"calls", "least", "median", "rule"});
  for (const DerivedRule& rule : rules) {
    grid.row({std::to_string(rule.cases.size()), number(rule.min_speedup), number(rule.median_speedup), rule.name});
  }
  std::fputs(grid.text().c_str(), stdout);
  std::fputs(("\n" + field("speed-up", number(speedup(calls, rules)) + " of what is taken (geometric mean)") +
              field("own calls", regret_text(own)) + field("left out", regret_text(unseen.regret)) +
              field("", std::to_string(unseen.turns) + " times, by " + unseen.by) + field("written", o.out))
                 .c_str(),
             stdout);
  return exit_done;
}

}  // namespace

int derive_command(const Options& options) {
  const auto code = derive(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
