// `sluice run`: one call, end to end, on random data.
#include <cstdio>

#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/measure.hpp"
#include "tuner/print.hpp"
#include "tuner/record.hpp"

namespace sl::tool {
namespace {

void show(const Record& record, bool json) {
  progress("");
  std::fputs((json ? record_json(record) : record_text(record)).c_str(), stdout);
}

// A wrong candidate was dropped before its time counted, so the result stands; but someone should know.
void warn_of_wrong_candidates(const Decision& decision) {
  for (const auto& c : decision.candidates) {
    if (c.outcome.starts_with("wrong")) warn(c.schedule + " " + c.config + " was dropped: " + c.outcome);
  }
}

// What routing says of a call that cannot be prepared: the record is worth printing, the error decides the exit code.
int show_failure(Session& session, Record& record, const Error& error, bool json) {
  if (auto dry = session.dispatcher->explain(record.problem, record.regular, true); dry.ok()) {
    record.decision = std::move(dry).value();
    record.counters = counters_of(session);
    show(record, json);
  }
  return fail(error);
}

Result<int> run(const Options& options) {
  Record record;
  SL_ASSIGN(record.problem, problem_of(options));
  record.regular = regular_of(options);
  SL_ASSIGN(const auto environment, environment_of(options));
  SessionOptions asked;
  asked.device = options.device;
  asked.emulate = options.emulate;
  asked.force = options.force;
  asked.require_cache = options.require_cache;
  SL_ASSIGN(asked.policy, policy_of(options));

  const Log log(stderr_sink(options.verbose), options.verbose ? LogLevel::debug : LogLevel::info);
  progress("opening the device");
  SL_ASSIGN(const auto session, open_session(environment, asked, log));
  record.device = session->device->info();
  record.policy = name(session->options.policy);

  progress("deciding (compiles and tunes where nothing is cached)");
  auto prepared = session->dispatcher->prepare(record.problem, nullptr, record.regular);
  if (prepared.ok() && session->options.policy == Policy::background) {
    session->dispatcher->wait_idle();  // the base kernel served; the tuned one is what is worth a report
    prepared = session->dispatcher->prepare(record.problem, nullptr, record.regular);
  }
  if (!prepared.ok()) return show_failure(*session, record, prepared.error(), options.json);
  const Plan& plan = *prepared.value();
  record.decision = plan.decision;

  if (plan.entry.kind == PlanEntry::Kind::plan) {
    progress("running and checking");
    MeasureOptions how;
    how.seed = options.seed;
    how.fill = options.integer_data ? Fill::integer : Fill::random;
    how.check = options.check;
    how.rounds = options.iterations;
    SL_ASSIGN(record.measured, measure(*session, plan, how));
    warn_of_wrong_candidates(record.decision);
  }
  complete(record.decision, preflight(record.problem, record.device, record.regular, forced(environment),
                                      environment.disabled_schedules));
  record.counters = counters_of(*session);
  show(record, options.json);
  if (record.measured && record.measured->wrong > 0) {
    complain("wrong result of " + record.decision.schedule + " " + record.decision.config + " for " +
             record.problem.to_string() + ": " + record.measured->first_wrong);
    return exit_wrong;
  }
  return exit_done;
}

}  // namespace

int run_command(const Options& options) {
  const auto code = run(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
