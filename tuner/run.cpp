// `sluice run`: one call, end to end, on random data.
#include <atomic>
#include <cstdio>
#include <optional>

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

// An OPTIONAL call whose kernels failed is kept for a library's caller, who has a convolution of its own. Here it is a
// failure: the same call as REQUIRED tells its kind.
std::optional<Error> failure_behind(Session& session, const Plan& plan, const Record& record) {
  const bool failed = session.dispatcher->counters().fallbacks > 0;
  if (plan.entry.kind != PlanEntry::Kind::kept || !failed) return std::nullopt;
  auto again = session.dispatcher->prepare(record.problem, nullptr, Regular::no);
  if (!again.ok()) {
    Error error = std::move(again).error();
    constexpr std::string_view asked = "REQUIRED ";  // the user's call was not
    if (error.message.starts_with(asked)) error.message.erase(0, asked.size());
    return error;
  }
  return Error{Code::environment, "kept after a failure: " + plan.decision.reason};
}

Preflight preflight_of(const Session& session, const Record& record) {
  return look(record.problem, record.device, record.regular, session.environment, session.options.sanitized.get());
}

// Without a compiler every candidate fails for one reason, which is said once.
Error explained(Error error, const Session& session, const Record& record) {
  const auto compiler = session.compiler->identity();
  if (compiler.available || error.code == Code::pinned_miss) return error;
  if (preflight_of(session, record).verdict == Verdict::unsupported) return error;
  return {Code::environment,
          record.problem.to_string() + ": not in the binary store, and there is no compiler: " + compiler.why_not};
}

Result<std::shared_ptr<const Plan>> prepare(Session& session, const Record& record) {
  progress("deciding (compiles and tunes where nothing is cached)");
  auto plan = session.dispatcher->prepare(record.problem, nullptr, record.regular);
  if (!plan.ok() || session.options.policy != Policy::background) return plan;
  session.dispatcher->wait_idle();  // the base kernel served; the tuned one is what is worth a report
  return session.dispatcher->prepare(record.problem, nullptr, record.regular);
}

MeasureOptions measure_options(const Options& options) {
  MeasureOptions how;
  how.seed = options.seed;
  how.fill = options.integer_data ? Fill::integer : Fill::random;
  how.check = options.check;
  how.rounds = options.iterations;
  return how;
}

SessionOptions session_options(const Options& options, std::optional<Policy> policy) {
  SessionOptions asked;
  asked.device = options.device;
  asked.emulate = options.emulate;
  asked.force = options.force;
  asked.require_cache = options.require_cache;
  asked.policy = policy;
  return asked;
}

Result<int> run(const Options& options) {
  Record record;
  SL_ASSIGN(record.problem, problem_of(options));
  record.regular = regular_of(options);
  SL_ASSIGN(const auto environment, environment_of(options));
  SL_ASSIGN(const auto policy, policy_of(options));

  std::atomic<bool> muted = false;
  const Log log(
      [&muted, sink = stderr_sink(options.verbose)](LogLevel level, std::string_view message) {
        if (!muted) sink(level, message);
      },
      options.verbose ? LogLevel::debug : LogLevel::info);
  progress("opening the device");
  SL_ASSIGN(const auto session, open_session(environment, session_options(options, policy), log));
  record.device = session->device->info();
  record.policy = name(session->options.policy);
  muted = !session->compiler->identity().available && !options.verbose;

  const auto prepared = prepare(*session, record);
  if (!prepared.ok()) {
    return show_failure(*session, record, explained(prepared.error(), *session, record), options.json);
  }
  const Plan& plan = *prepared.value();
  record.decision = plan.decision;
  if (const auto failure = failure_behind(*session, plan, record)) {
    return fail(explained(*failure, *session, record));
  }
  if (plan.entry.kind == PlanEntry::Kind::plan) {
    progress("running and checking");
    SL_ASSIGN(record.measured, measure(*session, plan, measure_options(options)));
    warn_of_wrong_candidates(record.decision);
  }
  complete(record.decision, preflight_of(*session, record));
  record.counters = counters_of(*session);
  show(record, options.json);
  if (record.measured && record.measured->wrong > 0) {
    return Error{Code::wrong_result, "wrong result of " + record.decision.schedule + " " + record.decision.config +
                                         " for " + record.problem.to_string() + ": " + record.measured->first_wrong};
  }
  return exit_done;
}

}  // namespace

int run_command(const Options& options) {
  const auto code = run(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
