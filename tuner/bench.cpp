// `sluice bench`: every call of a suite, tuned, checked and timed beside a copy of the same bytes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "routing/routing.hpp"
#include "tuner/calls.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/measure.hpp"
#include "tuner/print.hpp"
#include "tuner/probes.hpp"
#include "tuner/results.hpp"
#include "tuner/session.hpp"

namespace sl::tool {
namespace {

/// What the winner's binary says of itself.
void describe(const Decision& decision, ResultsRow& row) {
  row.schedule = decision.schedule;
  row.config = decision.config;
  for (const auto& c : decision.candidates) {
    if (c.schedule == decision.schedule && c.config == decision.config) {
      row.registers = c.registers;
      row.smem = c.smem;
    }
  }
}

ResultsRow bench_one(Session& session, const ConvProblem& problem, const MeasureOptions& how, const Peaks& peaks) {
  ResultsRow row;
  row.problem = problem;
  const auto plan = session.dispatcher->prepare(problem, nullptr, Regular::yes);
  if (!plan.ok()) {
    row.error = plan.error().message;
    return row;
  }
  const Plan& p = **plan;
  if (p.entry.kind != PlanEntry::Kind::plan) {
    row.error = "kept: " + p.decision.reason;
    return row;
  }
  describe(p.decision, row);
  const auto measured = measure(session, p, how);
  if (!measured.ok()) {
    row.error = measured.error().message;
  } else if (measured->wrong > 0) {
    row.error = "wrong: " + measured->first_wrong;
  } else if (!measured->time || !measured->copy) {
    row.error = "no time";
  } else {
    row.time_us = measured->time->median;
    row.low_us = measured->time->low;
    row.high_us = measured->time->high;
    row.copy_us = measured->copy->median;
    row.floor_us = std::max(row.copy_us, arithmetic_floor_us(problem, peaks));
    row.error_over_bound = measured->error_over_bound;
  }
  return row;
}

/// What is said at the end.
struct Tally {
  std::size_t timed = 0, failed = 0, there = 0, left = 0;
  double log_over_copy = 0, log_over_floor = 0;
  bool wrong = false;

  void add(const ResultsRow& row) {
    if (!row.error.empty()) {
      ++failed;
      wrong |= row.error.starts_with("wrong");
      return;
    }
    ++timed;
    log_over_copy += std::log(row.time_us / row.copy_us);
    log_over_floor += std::log(row.time_us / row.floor_us);
  }
  double over_copy() const { return timed == 0 ? 0 : std::exp(log_over_copy / static_cast<double>(timed)); }
  double over_floor() const { return timed == 0 ? 0 : std::exp(log_over_floor / static_cast<double>(timed)); }
};

std::string tally_json(const Tally& t, const std::string& out) {
  const nlohmann::ordered_json json = {{"out", out},
                                       {"timed", t.timed},
                                       {"failed", t.failed},
                                       {"already_there", t.there},
                                       {"left", t.left},
                                       {"time_over_copy", t.over_copy()},
                                       {"time_over_floor", t.over_floor()}};
  return json.dump(2) + "\n";
}

std::string tally_text(const Tally& t, const std::string& out) {
  std::string text =
      field("calls", std::to_string(t.timed) + " timed, " + std::to_string(t.failed) + " failed, " +
                         std::to_string(t.there) + " already there, " + std::to_string(t.left) + " left");
  if (t.timed > 0) {
    text += field("time / copy", number(t.over_copy()) + " (geometric mean)");
    text += field("time / floor", number(t.over_floor()) + " (geometric mean)");
  }
  return text + field("written", out);
}

void line_of(const ResultsRow& row, std::size_t index, std::size_t count) {
  std::string text = std::to_string(index) + "/" + std::to_string(count) + "  " + row.problem.to_string() + "  ";
  text += row.error.empty() ? duration(row.time_us) + "  " + number(row.time_us / row.copy_us) + " x copy  " +
                                  row.schedule + " " + row.config
                            : styled(Style::bad, row.error);
  std::printf("%s\n", text.c_str());
}

Result<int> bench(const Options& o) {
  SL_ASSIGN(const auto calls, calls_of(o));
  SL_ASSIGN(const auto environment, environment_of(o));
  const Log log(stderr_sink(o.verbose), o.verbose ? LogLevel::debug : LogLevel::warning);
  SessionOptions asked;
  asked.device = o.device;
  asked.emulate = o.emulate;
  asked.force = true;  // routing is what results are for
  SL_ASSIGN(const auto session, open_session(environment, asked, log));
  progress("measuring the peaks");
  ResultsHeader header{session->device->info().name, session->device->driver(), o.commit, {}};
  SL_ASSIGN(header.peaks, measure_peaks(*session));
  SL_ASSIGN(auto results, open_results(o.out, header));

  MeasureOptions how;
  how.seed = o.seed;
  how.rounds = std::max(1, o.iterations);
  how.check = o.check;
  std::vector<const ConvProblem*> open;
  Tally tally;
  for (const ConvProblem& call : calls) {
    if (has_time(results, call)) {
      ++tally.there;
    } else {
      open.push_back(&call);
    }
  }
  LongWork work(open.size(), o.budget);
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (work.out_of_budget()) {
      tally.left = open.size() - i;
      break;
    }
    work.step(open[i]->descriptor());
    const ResultsRow row = bench_one(*session, *open[i], how, header.peaks);
    SL_TRY(results.add(results_row(row)));
    tally.add(row);
    progress("");
    if (!o.json) line_of(row, i + 1, open.size());
    // After a fault nothing runs in this process. The rows so far stand in the part file; the same command goes on.
    if (!row.error.empty()) SL_TRY(session->device->synchronize(nullptr));
  }
  SL_TRY(results.finish());
  std::fputs((o.json ? tally_json(tally, o.out) : tally_text(tally, o.out)).c_str(), stdout);
  return tally.wrong ? exit_wrong : exit_done;
}

}  // namespace

int bench_command(const Options& options) {
  const auto code = bench(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
