// `sluice tune` and `sluice merge`: decision tables made ahead of time, on one GPU, several, or a fleet.
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "dispatch/decide.hpp"
#include "routing/decision_json.hpp"
#include "store/posix_io.hpp"
#include "tuner/calls.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/session.hpp"
#include "tuner/tables.hpp"
#include "tuning/tuner.hpp"

extern char** environ;

namespace sl::tool {
namespace {

struct Tally {
  std::size_t tuned = 0, there = 0, cannot = 0, failed = 0, left = 0, rows = 0;
};

void show(const Tally& t, const std::string& out, bool json) {
  progress("");
  if (json) {
    const nlohmann::ordered_json object = {{"out", out},         {"tuned", t.tuned},   {"already_there", t.there},
                                           {"cannot", t.cannot}, {"failed", t.failed}, {"left", t.left},
                                           {"decisions", t.rows}};
    std::fputs(dump_json(object, true).c_str(), stdout);
    return;
  }
  const auto count = [](std::size_t n, const char* what) { return std::to_string(n) + " " + what; };
  std::fputs((field("calls", count(t.tuned, "tuned, ") + count(t.there, "already there, ") +
                                 count(t.cannot, "that no schedule can run, ") + count(t.failed, "failed, ") +
                                 count(t.left, "left")) +
              field("decisions", std::to_string(t.rows)) + field("written", out))
                 .c_str(),
             stdout);
}

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
                          const Log& log) {
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
  const TuneOptions& options = session.options.tune;
  TuneResult result = tune(*session.device, *session.binaries, problem, looked.set, options, log);
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

Result<int> tune_here(const Options& o, const std::vector<ConvProblem>& calls) {
  SL_ASSIGN(auto environment, environment_of(o));
  if (o.tune_ms > 0) environment.tune_budget_ms = o.tune_ms;
  const Log log(stderr_sink(o.verbose), o.verbose ? LogLevel::debug : LogLevel::warning);
  SessionOptions asked;
  asked.device = o.device;
  asked.force = true;  // a table of winners; whether to take a call is routing's to say
  SL_ASSIGN(const auto session, open_session(environment, asked, log));
  const DeviceInfo& device = session->device->info();
  SL_ASSIGN(auto table, open_table(o.out, device));

  Tally tally;
  LongWork work(calls.size(), o.budget);
  for (const ConvProblem& problem : calls) {
    if (work.out_of_budget()) {
      ++tally.left;
      continue;
    }
    work.step(problem.descriptor());
    const Preflight looked =
        preflight(problem, device, Regular::yes, forced(environment), environment.disabled_schedules);
    if (looked.set.candidates.empty() || problem.empty()) {
      ++tally.cannot;
    } else if (applies(table, problem, *session, looked.set)) {
      ++tally.there;
    } else if (const auto decision = tune_one(*session, problem, looked, o.only_missing, log); decision.ok()) {
      SL_TRY(table.add(decision_json(*decision)));
      ++tally.tuned;
    } else {
      ++tally.failed;
      warn(problem.to_string() + ": " + decision.error().message);
    }
  }
  SL_TRY(table.finish());
  tally.rows = table.rows().size();
  show(tally, o.out, o.json);
  return tally.failed > 0 ? exit_device : exit_done;
}

std::string part_of(const std::string& out, std::size_t job) { return out + ".job" + std::to_string(job); }

/// This command again, for one job: its share of the calls, its GPU, its file.
std::vector<std::string> job_arguments(const Options& o, const Shard& mine, std::size_t job, std::size_t jobs) {
  std::vector<std::string> words = {"sluice", "tune"};
  const auto add = [&words](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, value});
  };
  const auto list = [](const auto& values, auto text) {
    std::string joined;
    for (const auto& value : values) joined += (joined.empty() ? "" : ",") + text(value);
    return joined;
  };
  const auto same = [](const std::string& text) { return text; };
  for (const std::string& suite : o.suites) add("--suite", suite);
  add("--out", part_of(o.out, job));
  add("--batch", list(o.batches, [](std::int64_t n) { return std::to_string(n); }));
  add("--dt", list(o.dtypes, same));
  add("--tag", list(o.tags, same));
  add("--shard", std::to_string((mine.index - 1) + mine.count * job + 1) + "/" + std::to_string(mine.count * jobs));
  if (o.sample > 0) add("--sample", std::to_string(o.sample));
  add("--seed", std::to_string(o.seed));
  if (o.budget > 0) add("--budget", std::to_string(o.budget));
  if (o.tune_ms > 0) add("--tune-ms", std::to_string(o.tune_ms));
  if (o.only_missing) words.emplace_back("--only-missing");
  add("--device", o.device == "host" ? o.device : "cuda:" + std::to_string(job));
  add("--cache-dir", o.cache_dir);
  add("--parent", std::to_string(::getpid()));
  words.emplace_back("--json");
  return words;
}

/// A process of this program and the pipe that its report comes through.
struct Job {
  pid_t pid = 0;
  Fd report;
};

Result<Job> start(std::vector<std::string> words) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{Code::environment, "cannot start a job: " + error_text(errno)};
  Job job;
  job.report = Fd(ends[0]);
  const Fd theirs(ends[1]);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), 1);
  const int failed = posix_spawn(&job.pid, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return Error{Code::environment, "cannot start a job: " + error_text(failed)};
  return job;
}

/// Adds a job's report to the tally, waits for its end, and returns its exit code.
int finish(Job& job, Tally& tally) {
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(job.report.get(), block, sizeof block)) != 0;) {
    if (got > 0) text.append(block, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (::waitpid(job.pid, &status, 0) < 0 && errno == EINTR) {
  }
  const auto report = nlohmann::json::parse(text, nullptr, false);
  if (report.is_object()) {  // nothing where the job failed before its end
    tally.tuned += report.at("tuned").get<std::size_t>();
    tally.there += report.at("already_there").get<std::size_t>();
    tally.cannot += report.at("cannot").get<std::size_t>();
    tally.failed += report.at("failed").get<std::size_t>();
    tally.left += report.at("left").get<std::size_t>();
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(exit_environment);
}

/// One process a GPU; their tables and what stands at --out already become the table.
Result<int> tune_in_jobs(const Options& o, const std::vector<ConvProblem>& calls, std::size_t jobs) {
  SL_ASSIGN(const Shard mine, parse_shard(o.shard));
  std::vector<JobShare> shares(jobs);
  for (std::size_t job = 0; job < jobs; ++job) shares[job].part = part_of(o.out, job);
  for (std::size_t i = 0; i < calls.size(); ++i) shares[i % jobs].problems.push_back(calls[i].to_string());
  SL_TRY(share_table(o.out, shares));
  std::vector<Job> children;
  for (std::size_t job = 0; job < jobs; ++job) {
    SL_ASSIGN(Job child, start(job_arguments(o, mine, job, jobs)));
    children.push_back(std::move(child));
  }
  int worst = exit_done;
  Tally tally;
  std::vector<std::string> parts;
  for (std::size_t job = 0; job < jobs; ++job) {
    const int code = finish(children[job], tally);
    worst = std::max(worst, code);
    if (std::filesystem::exists(shares[job].part)) parts.push_back(shares[job].part);
    if (code != exit_done) warn("job " + std::to_string(job + 1) + " ended with exit code " + std::to_string(code));
  }
  if (parts.empty()) return worst;
  SL_ASSIGN(const Merged merged, join_shares(parts, o.out));
  for (const std::string& part : parts) std::filesystem::remove(part);
  tally.rows = merged.rows;
  show(tally, o.out, o.json);
  return worst;
}

/// A job must not go on alone, holding a GPU, where whoever waits for it was killed.
Status end_with(int parent) {
  if (parent == 0) return {};
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent) return {};
  return Error{Code::environment, "the process that started this job is gone"};
}

Result<int> tune_all(const Options& o) {
  SL_TRY(end_with(o.parent));
  SL_ASSIGN(const auto calls, calls_of(o));
  std::size_t jobs = static_cast<std::size_t>(std::max(1, o.jobs));
  if (o.jobs == 0) {  // every GPU
    SL_ASSIGN(const auto environment, environment_of(o));
    const auto count = cuda_device_count(environment);
    jobs = o.device.empty() && count.ok() ? static_cast<std::size_t>(std::max(1, *count)) : 1;
  }
  if (jobs == 1) return tune_here(o, calls);
  return tune_in_jobs(o, calls, jobs);
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

int tune_command(const Options& options) { return finished(tune_all(options)); }
int merge_command(const Options& options) { return finished(merge(options)); }

}  // namespace sl::tool
