// `sluice fit`: tuned calls in, a heuristic out.
#include "routing/fit.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/json_reader.hpp"
#include "tuner/calls.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/networks.hpp"
#include "tuner/print.hpp"
#include "tuner/row_file.hpp"
#include "tuner/tuned.hpp"

namespace sl::tool {
namespace {

nlohmann::ordered_json quality_json(const FitQuality& q, Predicts predicts) {
  if (predicts == Predicts::winner) {
    return {{"calls", q.quality.calls},
            {"winner_missed", q.quality.picked},
            {"default_winner_missed", q.quality.default_order}};
  }
  return {{"calls", q.quality.calls},
          {"time_over_best", q.quality.picked},
          {"worst", q.quality.worst},
          {"worst_call", q.worst_call},
          {"default_time_over_best", q.quality.default_order},
          {"default_worst", q.quality.default_worst},
          {"default_worst_call", q.default_worst_call}};
}

std::string quality_text(const FitQuality& q, Predicts predicts) {
  const std::string calls = std::to_string(q.quality.calls) + " picks; ";
  if (predicts == Predicts::winner) {
    return calls + number(100 * q.quality.picked) +
           " % not the winning schedule (schedules' own order: " + number(100 * q.quality.default_order) + " %)";
  }
  return calls + "time / best " + number(q.quality.picked) + ", worst " + number(q.quality.worst) +
         " (schedules' own order: " + number(q.quality.default_order) + ", worst " + number(q.quality.default_worst) +
         ")" + (q.worst_call.empty() ? "" : "\n           worst " + q.worst_call);
}

/// "learned from 120 calls; 3 left out where not every candidate was timed".
std::string calls_text(const TunedFile& tuned) {
  std::string text = std::to_string(tuned.calls.size());
  const auto add = [&text](std::size_t count, const char* what) {
    if (count > 0) text += ", " + std::to_string(count) + " " + what;
  };
  add(tuned.incomplete, "left out as not every candidate was timed");
  add(tuned.stale, "left out as this build has no such winner");
  add(tuned.failed, "that failed");
  add(tuned.duplicates, "in several places");
  return text;
}

HeuristicEvidence evidence_of(const Fitted& fitted, const TunedFile& tuned) {
  const auto rounded = [](double value) { return std::round(1000 * value) / 1000; };
  HeuristicEvidence evidence;
  evidence.calls = static_cast<std::int64_t>(tuned.calls.size());
  evidence.left_out = fitted.left_out_by;
  evidence.groups = fitted.groups;
  evidence.quality = fitted.left_out.quality;
  for (double* value : {&evidence.quality.picked, &evidence.quality.default_order, &evidence.quality.worst,
                        &evidence.quality.default_worst}) {
    *value = rounded(*value);
  }
  evidence.versions = tuned.versions;
  return evidence;
}

void show(const Fitted& fitted, const TunedFile& tuned, const Options& o) {
  const Predicts predicts = fitted.heuristic.predicts();
  if (o.json) {
    const nlohmann::ordered_json object = {{"out", o.out},
                                           {"predicts", name(predicts)},
                                           {"calls", tuned.calls.size()},
                                           {"incomplete", tuned.incomplete},
                                           {"stale", tuned.stale},
                                           {"failed", tuned.failed},
                                           {"duplicates", tuned.duplicates},
                                           {"schedules", fitted.heuristic.schedules().size()},
                                           {"branches", fitted.branches},
                                           {"left_out_by", fitted.left_out_by},
                                           {"groups", fitted.groups},
                                           {"fitted_to", quality_json(fitted.own, predicts)},
                                           {"left_out", quality_json(fitted.left_out, predicts)}};
    std::fputs(dump_json(object, true).c_str(), stdout);
    return;
  }
  std::fputs((field("calls", calls_text(tuned)) +
              field("model", std::to_string(fitted.heuristic.schedules().size()) + " schedules, " +
                                 std::to_string(fitted.branches) + " branches") +
              field("own calls", quality_text(fitted.own, predicts)) +
              field("left out", quality_text(fitted.left_out, predicts)) +
              field("", std::to_string(fitted.groups) + " times, by " + fitted.left_out_by) + field("written", o.out))
                 .c_str(),
             stdout);
}

Result<int> fit_tables(const Options& o) {
  SL_ASSIGN(const Environment environment, environment_of(o));
  SL_ASSIGN(auto passed, find_sanitized(environment.sanitized));
  SL_ASSIGN(TunedFile tuned, read_tuned(o.inputs, std::move(passed)));
  SL_TRY(name_networks(o.suites, tuned.calls));
  std::optional<LongWork> work;
  FitOptions options;
  options.step = [&work](const std::string& left_out, std::size_t of) {
    if (!work) work.emplace(of, 0);
    work->step("without " + left_out);
  };
  SL_ASSIGN(Fitted fitted, fit(tuned.calls, tuned.device, options));
  progress("");
  fitted.heuristic.describe(evidence_of(fitted, tuned),
                            "Made by `sluice fit` from " + std::to_string(tuned.calls.size()) + " tuned calls.");
  const std::string text = fitted.heuristic.to_json();
  // What was learned must read back, or nothing is written.
  SL_ASSIGN(const Heuristic checked, Heuristic::from_json(text, o.out));
  (void)checked;
  SL_TRY(write_whole(o.out, text));
  const PickQuality& unseen = fitted.left_out.quality;
  if (unseen.picked >= unseen.default_order) {
    warn("on calls left out the model picked no better than the schedules' own order: ship no such model");
  }
  show(fitted, tuned, o);
  return exit_done;
}

}  // namespace

int fit_command(const Options& options) {
  const auto code = fit_tables(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
