// `sluice tune` and `sluice merge`: decision tables made ahead of time, on one GPU, several, or a fleet.
#include "tuner/tune.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <set>

#include "core/json_reader.hpp"
#include "dispatch/decide.hpp"
#include "routing/decision_json.hpp"
#include "tuner/calls.hpp"
#include "tuner/child.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/session.hpp"
#include "tuner/tables.hpp"
#include "tuner/worker.hpp"
#include "tuning/tuner.hpp"

namespace sl::tool {
namespace {

/// Whether a larger budget would choose among more candidates than this decision had time for.
bool starved(const Decision& decision, double budget_ms) { return decision.partial && budget_ms > decision.budget_ms; }

/// A row of the table that still applies: the same device, driver, schedules and candidates.
bool applies(const RowFile& table, const ConvProblem& problem, const Session& session, const CandidateSet& set) {
  const RowFile::Json* const row = table.find(problem.to_string());
  if (row == nullptr) return false;
  const auto decision = decision_from_json(row->dump());
  return decision.ok() && !starved(*decision, session.options.tune.budget.time_ms) &&
         match_level(*decision, problem, session.device->info(), session.device->driver(), set) == Match::exact;
}

/// The winner of one call. Status is an error where nothing could run.
Result<Decision> tune_one(Session& session, const ConvProblem& problem, const Preflight& looked, bool only_missing,
                          const Worker* worker, const Log& log) {
  const DeviceInfo& device = session.device->info();
  // What the device's heuristic would have said of each candidate, beside what was measured.
  const Ranking predicted = ranking(session.options.heuristic.get(), problem, device, looked.set, looked.set);
  if (only_missing) {
    auto found = session.decisions->find(problem, device, session.device->driver(), looked.set);
    if (found && found->match == Match::exact && !starved(found->decision, session.options.tune.budget.time_ms)) {
      found->decision.problem = problem.to_string();
      add_predictions(predicted, looked.set, found->decision.candidates);
      return std::move(found->decision);
    }
  }
  TuneOptions options = session.options.tune;
  if (worker != nullptr) worker->prepare(options, problem, looked.set, *session.device);
  TuneResult result = tune(*session.device, *session.binaries, problem, looked.set, options, log);
  if (worker != nullptr) worker->over(*session.device);
  if (result.winner < 0) return Error{result.failure, result.decision.reason};
  result.decision.verdict = looked.verdict;
  result.decision.route = "take";
  result.decision.budget_ms = options.budget.time_ms;
  result.decision.partial = partial(result.decision.candidates);
  add_predictions(predicted, looked.set, result.decision.candidates);
  if (const Status saved = session.decisions->save(problem, device, result.decision); !saved.ok()) {
    log.write(LogLevel::debug, saved.error().message);
  }
  return std::move(result.decision);
}

/// What the sanitizers have not passed is not tried in this process: which schedules that left out.
class Untested {
 public:
  void add(const CandidateSet& set) {
    for (const Candidate& candidate : set.with_untested) {
      if (!has_schedule(set.candidates, candidate.schedule)) names_.insert(candidate.schedule->name);
    }
  }
  void say() const {
    if (names_.empty()) return;
    std::string list;
    for (const std::string_view one : names_) list += (list.empty() ? "" : ", ") + std::string(one);
    warn("not tried, since this build of it has not passed the sanitizers: " + list +
         "; --isolate tries it in a child");
  }

 private:
  std::set<std::string_view> names_;
};

/// The child of --isolate.
Result<int> tune_for_parent(const Options& o, const std::vector<ConvProblem>& calls) {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  SL_ASSIGN(WorkerOrders orders, WorkerOrders::from_json(text));
  const Worker worker(std::move(orders));
  return tune_here(o, calls, &worker);
}

Result<int> tune_all(const Options& o) {
  SL_TRY(end_with(o.parent));
  SL_ASSIGN(const auto calls, calls_of(o));
  if (o.worker) return tune_for_parent(o, calls);
  std::size_t jobs = static_cast<std::size_t>(std::max(1, o.jobs));
  if (o.jobs == 0) {  // every GPU
    SL_ASSIGN(const auto environment, environment_of(o));
    const auto count = cuda_device_count(environment);
    jobs = o.device.empty() && count.ok() ? static_cast<std::size_t>(std::max(1, *count)) : 1;
  }
  if (jobs > 1) return tune_in_jobs(o, calls, jobs);
  return o.isolate ? tune_isolated(o, calls) : tune_here(o, calls, nullptr);
}

Result<int> merge(const Options& o) {
  SL_ASSIGN(const Merged merged, merge_tables(o.inputs, o.out));
  if (o.json) {
    const nlohmann::ordered_json object = {
        {"out", o.out}, {"tables", o.inputs.size()}, {"decisions", merged.rows}, {"duplicates", merged.duplicates}};
    std::fputs(dump_json(object, true).c_str(), stdout);
  } else {
    std::printf("%s", (field("decisions", std::to_string(merged.rows) + " of " + std::to_string(o.inputs.size()) +
                                              " tables, " + std::to_string(merged.duplicates) + " in several") +
                       field("written", o.out))
                          .c_str());
  }
  return exit_done;
}

int finished(const Result<int>& code) { return code.ok() ? *code : fail(code.error()); }

}  // namespace

nlohmann::ordered_json TuneTally::json(const std::string& out) const {
  return {{"out", out},       {"tuned", tuned},     {"already_there", there}, {"cannot", cannot},
          {"failed", failed}, {"crashed", crashed}, {"left", left},           {"decisions", rows}};
}

void TuneTally::add(const nlohmann::json& report) {
  const std::pair<const char*, std::size_t*> counts[] = {
      {"tuned", &tuned},     {"already_there", &there}, {"cannot", &cannot}, {"failed", &failed},
      {"crashed", &crashed}, {"left", &left},           {"decisions", &rows}};
  for (const auto& [key, count] : counts) *count += report.at(key).get<std::size_t>();
}

void show(const TuneTally& t, const std::string& out, bool json) {
  progress("");
  if (json) {
    std::fputs(dump_json(t.json(out), true).c_str(), stdout);
    return;
  }
  const auto count = [](std::size_t n, const char* what) { return std::to_string(n) + " " + what; };
  std::string text = field("calls", count(t.tuned, "tuned, ") + count(t.there, "already there, ") +
                                        count(t.cannot, "that no schedule can run, ") + count(t.failed, "failed, ") +
                                        count(t.left, "left"));
  if (t.crashed > 0) text += field("crashed", count(t.crashed, "candidates, each in a child process"));
  std::fputs((text + field("decisions", std::to_string(t.rows)) + field("written", out)).c_str(), stdout);
}

std::vector<std::string> tune_words(const Options& o) {
  std::vector<std::string> words = {"sluice", "tune"};
  const auto add = [&words](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  const auto flag = [&words](const char* word, bool given) {
    if (given) words.emplace_back(word);
  };
  const auto list = [](const auto& values, auto text) {
    std::string joined;
    for (const auto& value : values) joined += (joined.empty() ? "" : ",") + text(value);
    return joined;
  };
  const auto same = [](const std::string& text) { return text; };
  for (const std::string& suite : o.suites) add("--suite", suite);
  add("--out", o.out);
  add("--batch", list(o.batches, [](std::int64_t n) { return std::to_string(n); }));
  add("--dt", list(o.dtypes, same));
  add("--tag", list(o.tags, same));
  add("--shard", o.shard);
  if (o.sample > 0) add("--sample", std::to_string(o.sample));
  add("--seed", std::to_string(o.seed));
  if (o.budget > 0) add("--budget", std::to_string(o.budget));
  if (o.tune_ms > 0) add("--tune-ms", std::to_string(o.tune_ms));
  add("--device", o.device);
  add("--cache-dir", o.cache_dir);
  add("--patience", std::to_string(o.patience));
  if (o.parent != 0) add("--parent", std::to_string(o.parent));
  flag("--only-missing", o.only_missing);
  flag("--untested", o.untested);
  flag("--isolate", o.isolate);
  flag("--worker", o.worker);
  flag("--verbose", o.verbose);
  flag("--json", o.json);
  return words;
}

Result<int> tune_here(const Options& o, const std::vector<ConvProblem>& calls, const Worker* worker) {
  SL_ASSIGN(auto environment, environment_of(o));
  if (o.tune_ms > 0) environment.tune_budget_ms = o.tune_ms;
  if (worker != nullptr) environment.sanitized = "all";
  const Log log(stderr_sink(o.verbose), o.verbose ? LogLevel::debug : LogLevel::warning);
  SessionOptions asked;
  asked.device = o.device;
  asked.force = true;  // a table of winners; whether to take a call is routing's to say
  SL_ASSIGN(const auto session, open_session(environment, asked, log));
  const DeviceInfo& device = session->device->info();
  SL_ASSIGN(auto table, open_table(o.out, device));

  TuneTally tally;
  Untested untested;
  LongWork work(calls.size(), o.budget);
  std::size_t place = 0;
  for (const ConvProblem& problem : calls) {
    ++place;
    if (work.out_of_budget()) {
      ++tally.left;
      continue;
    }
    worker != nullptr ? worker->begin(problem, place) : work.at(place, problem.descriptor());
    const Preflight looked = look(problem, device, Regular::yes, environment, session->options.sanitized.get());
    untested.add(looked.set);
    if (looked.set.candidates.empty() || problem.empty()) {
      ++tally.cannot;
    } else if (applies(table, problem, *session, looked.set)) {
      ++tally.there;
    } else if (worker != nullptr && worker->skips(problem)) {
      ++tally.failed;
    } else if (const auto decision = tune_one(*session, problem, looked, o.only_missing, worker, log); decision.ok()) {
      SL_TRY(table.add(decision_json(*decision)));
      ++tally.tuned;
      if (worker != nullptr) worker->tuned();
    } else {
      ++tally.failed;
      warn(problem.to_string() + ": " + decision.error().message);
      if (worker != nullptr) worker->failed(problem);
    }
  }
  untested.say();
  SL_TRY(table.finish());
  tally.rows = table.rows().size();
  worker != nullptr ? worker->done(tally, o.out) : show(tally, o.out, o.json);
  return tally.failed > 0 ? exit_device : exit_done;
}

int tune_command(const Options& options) { return finished(tune_all(options)); }
int merge_command(const Options& options) { return finished(merge(options)); }

}  // namespace sl::tool
