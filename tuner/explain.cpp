// `sluice explain`: the decision record of one call; nothing is compiled, timed or run.
#include <algorithm>
#include <cstdio>
#include <iterator>

#include "dispatch/decide.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/record.hpp"

namespace sl::tool {
namespace {

// The candidates of the schedules that the route prefers, in its order; all where it names none that can run.
CandidateSet preferred_of(const CandidateSet& set, const std::vector<std::string>& preferred) {
  CandidateSet some;
  for (const auto& schedule : preferred) {
    std::copy_if(set.candidates.begin(), set.candidates.end(), std::back_inserter(some.candidates),
                 [&](const Candidate& c) { return c.schedule->name == schedule; });
  }
  return some.candidates.empty() ? set : some;
}

// The choice without timings: what policy immediate would take.
void choose(Decision& d, const ConvProblem& problem, const DeviceInfo& device, const CandidateSet& set,
            const Heuristic* heuristic) {
  if (set.candidates.empty()) return;
  const Ranking ranked = ranking(heuristic, problem, device, set, set);
  const Candidate& best = set.candidates[ranked.order.front()];
  d.schedule = std::string(best.schedule->name);
  d.config = best.config.to_string();
  d.origin = Origin::heuristic;
  d.schedule_digest = best.schedule->digest();
  d.candidates = untimed_rows(set);
  add_predictions(ranked, set, d.candidates);
  if (heuristic != nullptr) d.heuristic = heuristic->origin();
}

// A device that is not here: preflight, routing and candidates are functions of its description alone.
Result<Decision> decide(const ConvProblem& problem, const DeviceInfo& device, Regular regular, bool force,
                        const Environment& environment, const Log& log) {
  SL_ASSIGN(const auto tables, find_routing_table(device, environment.routing_table, log));
  SL_ASSIGN(const auto heuristics, find_heuristic(device, environment.heuristic));
  SL_ASSIGN(const auto passed, find_sanitized(environment.sanitized));
  const auto pre = look(problem, device, regular, environment, passed.get());
  const auto route = tables.table->decide(problem, device);
  Decision d;
  d.problem = problem.to_string();
  d.device = device.name;
  d.verdict = pre.verdict;
  d.reason = pre.reason;
  d.searched = tables.searched;
  d.rule = route.rule;
  d.table = route.table;
  d.candidate_set = pre.set.digest();
  if (pre.verdict == Verdict::unsupported) {
    d.route = regular == Regular::yes ? "keep" : "reject";
    d.rule.clear();
    d.table.clear();
  } else {
    d.route = route.take || force || pre.verdict == Verdict::required ? "take" : "keep";
  }
  if (d.route == "take") {
    choose(d, problem, device, preferred_of(pre.set, route.schedules), heuristics.heuristic.get());
  }
  complete(d, pre);
  return d;
}

Error unknown_device(const std::string& device) {
  std::string known;
  for (const auto& stem : described_devices()) known += ", " + stem;
  return {Code::invalid, "--device " + device + ": not a device; use cuda, cuda:N, host" + known};
}

Result<int> explain(const Options& options) {
  Record record;
  SL_ASSIGN(record.problem, problem_of(options));
  record.regular = regular_of(options);
  SL_ASSIGN(const auto environment, environment_of(options));
  const Log log(stderr_sink(options.verbose), options.verbose ? LogLevel::debug : LogLevel::warning);

  if (is_described(options.device)) {
    SL_ASSIGN(record.device, described_device(options.device));
    SL_ASSIGN(record.decision, decide(record.problem, record.device, record.regular, options.force, environment, log));
  } else {
    if (!options.device.empty() && !parse_device_name(options.device).ok()) return unknown_device(options.device);
    SessionOptions asked;
    asked.device = options.device;
    asked.emulate = options.emulate;
    asked.force = options.force;
    SL_ASSIGN(asked.policy, policy_of(options));
    SL_ASSIGN(const auto session, open_session(environment, asked, log));
    record.device = session->device->info();
    record.policy = name(session->options.policy);
    SL_ASSIGN(record.decision, session->dispatcher->explain(record.problem, record.regular, true));
    complete(record.decision,
             look(record.problem, record.device, record.regular, environment, session->options.sanitized.get()));
    record.counters = counters_of(*session);
  }
  std::fputs((options.json ? record_json(record) : record_text(record)).c_str(), stdout);
  if (record.decision.route == "reject") {
    return Error{Code::unsupported, record.decision.reason};
  }
  return exit_done;
}

}  // namespace

int explain_command(const Options& options) {
  const auto code = explain(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
