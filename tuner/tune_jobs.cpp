// `sluice tune --jobs`: a process on every GPU, and their tables joined.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "tuner/calls.hpp"
#include "tuner/child.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/tables.hpp"
#include "tuner/tune.hpp"

namespace sl::tool {
namespace {

std::string part_of(const std::string& out, std::size_t job) { return out + ".job" + std::to_string(job); }

/// This command again, for one job: its share of the calls, its GPU, its file.
Options job_options(const Options& o, const Shard& mine, std::size_t job, std::size_t jobs) {
  Options its = o;
  its.jobs = 1;
  its.out = part_of(o.out, job);
  its.shard = std::to_string((mine.index - 1) + mine.count * job + 1) + "/" + std::to_string(mine.count * jobs);
  if (o.device != "host") its.device = "cuda:" + std::to_string(job);
  its.parent = ::getpid();
  its.json = true;
  return its;
}

/// Adds a job's report to the tally, waits for its end, and returns its exit code.
int finish(const Child& job, TuneTally& tally) {
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(job.report.get(), block, sizeof block)) != 0;) {
    if (got > 0) text.append(block, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  const int status = wait_for(job);
  const auto report = nlohmann::json::parse(text, nullptr, false);
  if (report.is_object()) tally.add(report);  // nothing where the job failed before its end
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(exit_environment);
}

}  // namespace

Result<int> tune_in_jobs(const Options& o, const std::vector<ConvProblem>& calls, std::size_t jobs) {
  SL_ASSIGN(const Shard mine, parse_shard(o.shard));
  std::vector<JobShare> shares(jobs);
  for (std::size_t job = 0; job < jobs; ++job) shares[job].part = part_of(o.out, job);
  for (std::size_t i = 0; i < calls.size(); ++i) shares[i % jobs].problems.push_back(calls[i].to_string());
  SL_TRY(share_table(o.out, shares));
  std::vector<Child> children;
  for (std::size_t job = 0; job < jobs; ++job) {
    SL_ASSIGN(Child child, start_child(tune_words(job_options(o, mine, job, jobs))));
    children.push_back(std::move(child));
  }
  int worst = exit_done;
  TuneTally tally;
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

}  // namespace sl::tool
