// The slow path of one call: triage, winner, binary, kernel, publish.
#include <unistd.h>

#include <exception>
#include <utility>

#include "dispatch/impl.hpp"

namespace sl {
namespace {

PlanEntry plan_of(const ConvProblem& problem, const LaunchShape& shape, const LoadedKernel& loaded) {
  return {PlanEntry::Kind::plan, loaded.kernel.get(), shape.geometry, extents(problem), shape.params};
}

}  // namespace

bool Dispatcher::Impl::forked() const { return getpid() != owner; }

Error Dispatcher::Impl::rejected(const ConvProblem& problem, const std::string& reason) const {
  return {Code::unsupported, "REQUIRED call " + signature(problem, device->info()) + " cannot be served: " + reason};
}

Triage Dispatcher::Impl::triage_of(const ConvProblem& problem, Regular regular) const {
  Triage result = triage(problem, device->info(), regular, rules, false);
  if (result.outcome == Triage::Outcome::take && kernels.size() >= options.max_kernels && !winners.find(result.key)) {
    result = triage(problem, device->info(), regular, rules, true);
  }
  return result;
}

Answer Dispatcher::Impl::kept(const ConvProblem& problem, Regular regular, Decision record, std::string reason,
                              bool publish) {
  Answer answer;
  answer.entry.kind = PlanEntry::Kind::kept;
  answer.entry.bytes = extents(problem);
  record.route = name(Triage::Outcome::keep);
  record.reason = std::move(reason);
  answer.record = std::move(record);
  if (publish) plans.publish(plan_key(problem, regular), answer.entry);
  return answer;
}

Result<Answer> Dispatcher::Impl::fail(const ConvProblem& problem, Regular regular, const Triage& triage, Error error,
                                      int before) {
  if (error.code == Code::pinned_miss) return error;  // fails closed, whatever the caller could do instead
  const int count = failures.record(triage.key, error.message, before);
  if (regular == Regular::no) {
    return Error{error.code == Code::wrong_result ? Code::unsupported : error.code,
                 "REQUIRED call " + signature(problem, device->info()) + " failed: " + error.message};
  }
  counters.fallbacks.fetch_add(1, std::memory_order_relaxed);
  log.warn_once(triage.key.hex(), "kept " + signature(problem, device->info()) + ": " + error.message);
  std::string reason =
      error.message + " (failure " + std::to_string(count) + " of at most " + std::to_string(max_failures) + ")";
  return kept(problem, regular, triage.record, std::move(reason), count >= max_failures);
}

Result<Answer> Dispatcher::Impl::served(const ConvProblem& problem, const Triage& triage, const WinnerPtr& winner) {
  // The winner was chosen for the batch bucket; where it cannot take this very batch, the first candidate that can
  // and that tuning did not find broken does; never under policy pinned.
  auto shape = launch_shape(problem, winner->candidate, device->info());
  const Candidate* candidate = &winner->candidate;
  if (!shape.ok() && options.policy == Policy::pinned) return Error{Code::pinned_miss, shape.error().message};
  for (std::size_t i = 0; !shape.ok() && i < triage.set.candidates.size(); ++i) {
    if (found_broken(winner->decision.candidates, triage.set.candidates[i])) continue;
    if (auto other = launch_shape(problem, triage.set.candidates[i], device->info()); other.ok()) {
      candidate = &triage.set.candidates[i];
      shape = std::move(other);
    }
  }
  if (!shape.ok()) return std::move(shape).error();
  SL_ASSIGN(const LoadedKernel* loaded, kernels.get(*shape));
  Answer answer;
  answer.entry = plan_of(problem, *shape, *loaded);
  answer.record = joined(triage.record, *winner);
  answer.record.schedule = candidate->schedule->name;
  answer.record.config = candidate->config.to_string();
  answer.record.schedule_digest = candidate->schedule->digest();
  answer.record.compiler = loaded->compiler;
  if (loaded->arch.starts_with("compute_"))
    answer.record.arch_note = "device newer than the compiler: PTX of " + loaded->arch;
  return answer;
}

Result<Answer> Dispatcher::Impl::refused(const ConvProblem& problem, Regular regular, const Triage& triage,
                                         const std::string& why) {
  if (regular == Regular::yes) return kept(problem, regular, triage.record, why, true);
  plans.publish(plan_key(problem, regular), PlanEntry{});  // whatever was served until now
  return rejected(problem, why);
}

Result<Answer> Dispatcher::Impl::take_known(const ConvProblem& problem, Regular regular, const Triage& triage) {
  const WinnerPtr winner = winners.find(triage.key);
  if (winner && !winner->condemned.empty()) return refused(problem, regular, triage, winner->condemned);
  if (winner) {
    const auto shape = launch_shape(problem, winner->candidate, device->info());
    if (shape.ok() && kernels.loaded(*shape) != nullptr) {
      Result<Answer> answer = served(problem, triage, winner);
      if (answer.ok()) plans.publish(plan_key(problem, regular), answer->entry);
      return answer;
    }
  }
  counters.not_prepared.fetch_add(1, std::memory_order_relaxed);
  return Error{Code::not_prepared, "the stream is capturing and " + signature(problem, device->info()) +
                                       " was never prepared: call prepare before the capture begins"};
}

std::optional<PlanEntry> Dispatcher::Impl::as_its_bucket(const ConvProblem& problem, Regular regular) {
  if (forked() || !validate(problem).ok()) return std::nullopt;  // the long way says so
  const std::optional<Buckets::Served> served = buckets.find(problem, regular);
  if (!served) return std::nullopt;
  const Route route = rules.table->decide(problem, device->info());  // a rule may look at the very batch
  const bool routed_alike = route.take == served->route.take && route.rule == served->route.rule &&
                            route.schedules == served->route.schedules;
  if (!routed_alike) return std::nullopt;
  const WinnerPtr winner = winners.find(served->decision);
  if (!winner || winner->provisional || !winner->condemned.empty()) return std::nullopt;
  const auto shape = launch_shape(problem, winner->candidate, device->info());
  const LoadedKernel* const loaded = shape.ok() ? kernels.loaded(*shape) : nullptr;
  if (loaded == nullptr) return std::nullopt;
  recorder.note(problem);
  const PlanEntry entry = plan_of(problem, *shape, *loaded);
  plans.publish(plan_key(problem, regular), entry);
  return entry;
}

Result<Answer> Dispatcher::Impl::take(const ConvProblem& problem, Regular regular, const Triage& triage) {
  std::string failure;
  if (regular == Regular::yes && failures.count(triage.key, &failure) >= max_failures) {
    return kept(problem, regular, triage.record,
                "gave up after " + std::to_string(max_failures) + " failures: " + failure, true);
  }
  while (true) {
    SL_ASSIGN(const WinnerPtr winner, winners.get(triage.key, [&] { return decider.decide(triage); }));
    if (!winner->condemned.empty()) return refused(problem, regular, triage, winner->condemned);
    SL_ASSIGN(Answer answer, served(problem, triage, winner));
    Background::Watch watch = Background::Watch::settled;
    if (winner->provisional) watch = background.watch(triage, {problem, regular});
    if (watch != Background::Watch::full) plans.publish(plan_key(problem, regular), answer.entry);
    // A background tuning that ended in between has published its winner before this base plan: publish it again.
    const WinnerPtr now = winners.find(triage.key);
    if (!winner->provisional || !now || now->provisional) {
      failures.forget(triage.key);
      if (!winner->provisional && triage.tuned_for == problem.batch_bucket()) {
        buckets.note(problem, regular, {triage.route, triage.key});
      }
      return answer;
    }
  }
}

Result<Answer> Dispatcher::Impl::answer(const ConvProblem& problem, Regular regular, Caller caller) {
  if (forked()) {
    return Error{Code::environment, "this process was forked from the one that made the context: make a new context"};
  }
  SL_TRY(validate(problem));
  if (caller.has_stream) recorder.note(problem);  // a call, whatever becomes of it; explaining is none
  const Triage triage = triage_of(problem, regular);
  if (triage.outcome == Triage::Outcome::keep) {
    return kept(problem, regular, triage.record, triage.record.reason, true);
  }
  if (triage.outcome == Triage::Outcome::reject) return rejected(problem, triage.record.reason);
  if (caller.has_stream && device->capturing(caller.stream)) return take_known(problem, regular, triage);
  const int before = failures.count(triage.key);
  Error error;
  try {
    Result<Answer> answer = take(problem, regular, triage);
    if (answer.ok()) return answer;
    error = std::move(answer).error();
  } catch (const std::bad_alloc&) {
    error = {Code::out_of_memory, "out of memory"};
  } catch (const std::exception& exception) {
    error = {Code::internal, exception.what()};
  }
  return fail(problem, regular, triage, std::move(error), before);
}

Result<Decision> Dispatcher::Impl::explain(const ConvProblem& problem, Regular regular, bool dry) {
  SL_TRY(validate(problem));
  if (problem.empty()) {
    Decision record;
    record.problem = problem.to_string();
    record.device = device->info().name;
    record.verdict = regular == Regular::yes ? Verdict::optional : Verdict::required;
    record.route = name(Triage::Outcome::take);
    record.rule = "empty";
    record.reason = "n = 0: nothing to compute, nothing is launched";
    return record;
  }
  Triage triage = triage_of(problem, regular);
  if (triage.outcome != Triage::Outcome::take) return std::move(triage.record);
  if (!dry) {
    SL_ASSIGN(Answer result, answer(problem, regular, {}));
    return std::move(result.record);
  }
  return dry_record(regular, triage);
}

Decision Dispatcher::Impl::dry_record(Regular regular, const Triage& triage) {
  Decision record;
  if (const WinnerPtr winner = winners.find(triage.key)) {
    record = joined(triage.record, *winner);
    if (!winner->condemned.empty()) {
      record.route = name(regular == Regular::yes ? Triage::Outcome::keep : Triage::Outcome::reject);
    }
  } else if (const std::optional<Winner> recalled = decider.recall(triage)) {
    record = joined(triage.record, *recalled);
  } else if (options.policy == Policy::pinned) {
    record = triage.record;
    record.reason = "policy pinned: the decision table has no decision for this call";
    record.candidates = untimed_rows(triage.set);
  } else {
    const Winner guess = decider.heuristic(triage);
    record = joined(triage.record, guess);
    if (!guess.condemned.empty()) {
      record.route = name(regular == Regular::yes ? Triage::Outcome::keep : Triage::Outcome::reject);
    } else if (options.policy != Policy::immediate) {
      record.reason = "not decided yet: the heuristic's choice";
    }
  }
  std::string failure;
  if (const int count = failures.count(triage.key, &failure); count > 0) {
    record.reason = "failed " + std::to_string(count) + " times: " + failure;
    if (count >= max_failures && regular == Regular::yes) record.route = name(Triage::Outcome::keep);
  }
  return record;
}

Winner Dispatcher::Impl::tuned_later(const Triage& triage) {
  if (std::optional<Winner> known = decider.recall(triage)) return std::move(*known);
  bool wrong = false;
  Result<Winner> winner = decider.tuned(triage, &wrong);
  if (winner.ok()) return std::move(winner).value();
  const std::string failed =
      "background tuning of " + signature(triage.tuned_for, device->info()) + " failed: " + winner.error().message;
  // Asking again and again would tune for ever. Without time or memory, say, the base kernel goes on serving; but what
  // computes wrong results, or was served beside what does, does not.
  Winner base = decider.base(triage);
  base.decision.reason = failed;
  if (wrong) {
    base.condemned = failed;
    base.decision.schedule.clear();
    base.decision.config.clear();
    log.warn_once(triage.key.hex(), failed +
                                        "; the call is served no more. A plan prepared for it before now holds the "
                                        "base kernel: destroy it and prepare again");
  } else {
    log.warn_once(triage.key.hex(), failed + "; the base kernel stays");
  }
  return base;
}

void Dispatcher::Impl::tune_in_background(const Triage& triage) try {
  winners.put(triage.key, std::make_shared<const Winner>(tuned_later(triage)));
} catch (const std::exception& error) {
  log.warn_once(triage.key.hex(), error.what());
}

void Dispatcher::Impl::publish_winner(const Triage& triage, const std::vector<Target>& targets) try {
  const WinnerPtr winner = winners.find(triage.key);
  if (!winner || winner->provisional) return;
  for (const Target& target : targets) {
    if (!winner->condemned.empty()) {
      static_cast<void>(refused(target.problem, target.regular, triage, winner->condemned));
      continue;
    }
    Result<Answer> answer = served(target.problem, triage, winner);
    if (answer.ok()) {
      plans.publish(plan_key(target.problem, target.regular), answer->entry);
      continue;
    }
    const std::string& why = answer.error().message;
    if (found_broken(winner->decision.candidates, decider.base(triage).candidate)) {
      static_cast<void>(refused(target.problem, target.regular, triage, why));
      log.warn_once(triage.key.hex(), "tuning found the base kernel broken, and its winner cannot be had: " + why);
    } else {
      log.warn_once(triage.key.hex(), "the base kernel stays: " + why);
    }
  }
} catch (const std::exception& error) {
  log.warn_once(triage.key.hex(), error.what());
}

}  // namespace sl
