// `sluice bench`: every call of a suite, tuned, checked and timed beside cuDNN and a copy of the same bytes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "tuner/bench_row.hpp"
#include "tuner/calls.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/probes.hpp"
#include "tuner/results.hpp"
#include "tuner/session.hpp"

namespace sl::tool {
namespace {

/// cuDNN, or why the rows go without.
struct Cudnn {
  std::unique_ptr<cudnn::Rival> rival;
  std::string none;
};

/// Where somebody asked for cuDNN by name, its absence is an Error; else the rows have the copy and the base schedule.
Result<Cudnn> open_cudnn(Session& session, const Environment& environment, const Options& o) {
  Cudnn out;
  if (o.rivals == "none") {
    out.none = "not asked for";
    return out;
  }
  const bool demanded = o.rivals == "cudnn" || !o.cudnn_library.empty();
  if (!demanded && session.device->info().backend == "host") {
    out.none = "it computes on GPUs only";
    return out;
  }
  const auto library = cudnn::load_library(o.cudnn_library, environment);
  auto rival = library.ok() ? cudnn::Rival::open(*session.device, *library)
                            : Result<std::unique_ptr<cudnn::Rival>>(library.error());
  if (rival.ok()) {
    out.rival = std::move(rival).value();
    return out;
  }
  if (demanded) return rival.error();
  out.none = rival.error().message;
  warn("rows have the copy and the base schedule only: " + out.none);
  return out;
}

/// Whether call `index` of `count` is one of `sample`, spread evenly.
bool drawn(std::size_t index, std::size_t count, std::size_t sample) {
  return sample > 0 && index * sample / count != (index + 1) * sample / count;
}

/// What is said at the end.
struct Tally {
  std::size_t timed = 0, failed = 0, there = 0, left = 0;
  double log_over_copy = 0, log_over_floor = 0;
  std::size_t compared = 0, sampled = 0;  // against cuDNN; with every engine tried
  double log_speedup = 0, log_lost = 0;
  std::map<std::string, std::size_t> verdicts;
  bool wrong = false;

  void add(const ResultsRow& row) {
    add_engines(row);
    if (!row.error.empty()) {
      ++failed;
      wrong |= row.error.starts_with("wrong");
      return;
    }
    ++timed;
    log_over_copy += std::log(row.time->median / row.copy_us);
    log_over_floor += std::log(row.time->median / row.floor_us);
    if (row.verdict.empty()) return;
    ++compared;
    ++verdicts[row.verdict];
    log_speedup += std::log(fastest_rival(row) / row.time->median);
  }
  double over_copy() const { return mean(log_over_copy, timed); }
  double over_floor() const { return mean(log_over_floor, timed); }
  double speedup() const { return mean(log_speedup, compared); }
  double lost() const { return mean(log_lost, sampled); }

  static double fastest_rival(const ResultsRow& row) {
    double best = 0;
    for (const RivalRow& rival : row.rivals.value_or(std::vector<RivalRow>())) {
      if (rival.time && (best == 0 || rival.time->median < best)) best = rival.time->median;
    }
    return best;
  }

 private:
  static double mean(double logs, std::size_t count) {
    return count == 0 ? 0 : std::exp(logs / static_cast<double>(count));
  }

  /// What trusting the heuristics costs cuDNN, of the calls for which every engine was tried.
  void add_engines(const ResultsRow& row) {
    for (const RivalRow& rival : row.rivals.value_or(std::vector<RivalRow>())) {
      if (!rival.every_engine || !rival.time || !(rival.chosen.best_heuristic_us() > 0)) continue;
      ++sampled;
      log_lost += std::log(rival.chosen.best_heuristic_us() / rival.chosen.attempts[rival.chosen.best].us);
    }
  }
};

std::string tally_json(const Tally& t, const std::string& out, const Cudnn& cudnn) {
  nlohmann::ordered_json json = {{"out", out},
                                 {"timed", t.timed},
                                 {"failed", t.failed},
                                 {"already_there", t.there},
                                 {"left", t.left},
                                 {"time_over_copy", t.over_copy()},
                                 {"time_over_floor", t.over_floor()},
                                 {"cudnn", nullptr},
                                 {"cudnn_problem", nullptr},
                                 {"cudnn_libraries", cudnn::mapped()},
                                 {"compared", t.compared},
                                 {"verdicts", t.verdicts},
                                 {"speedup", t.speedup()},
                                 {"every_engine", {{"calls", t.sampled}, {"heuristic_over_best", t.lost()}}}};
  if (cudnn.rival) {
    json["cudnn"] = cudnn.rival->library().version_text();
  } else {
    json["cudnn_problem"] = cudnn.none;
  }
  return dump_json(json, true);
}

std::string tally_text(const Tally& t, const std::string& out, const Cudnn& cudnn) {
  std::string text =
      field("calls", std::to_string(t.timed) + " timed, " + std::to_string(t.failed) + " failed, " +
                         std::to_string(t.there) + " already there, " + std::to_string(t.left) + " left");
  if (t.timed > 0) {
    text += field("time / copy", number(t.over_copy()) + " (geometric mean)");
    text += field("time / floor", number(t.over_floor()) + " (geometric mean)");
  }
  text += field("cuDNN", cudnn.rival ? cudnn.rival->library().version_text() : "none: " + cudnn.none);
  for (const std::string& path : cudnn::mapped()) text += field("mapped", path);
  if (t.compared > 0) {
    std::string counts;
    for (const auto& [verdict, count] : t.verdicts) counts += ", " + std::to_string(count) + " " + verdict;
    text += field("against it", number(t.speedup()) + " times as fast (geometric mean of " +
                                    std::to_string(t.compared) + ")" + counts);
  }
  if (t.sampled > 0) {
    text += field("all engines", "the best that its heuristics name takes " + number(t.lost()) +
                                     " of the time of the best engine (geometric mean of " + std::to_string(t.sampled) +
                                     ")");
  }
  return text + field("written", out);
}

void line_of(const ResultsRow& row, std::size_t index, std::size_t count) {
  std::string text = std::to_string(index) + "/" + std::to_string(count) + "  " + row.problem.to_string() + "  ";
  if (row.error.empty()) {
    text += duration(row.time->median) + "  " + number(row.time->median / row.copy_us) + " x copy  " + row.schedule +
            " " + row.config;
  } else {
    text += styled(Style::bad, row.error);
  }
  if (!row.verdict.empty()) {
    text += "  " + number(Tally::fastest_rival(row) / row.time->median) + " x cuDNN, " + row.verdict;
  }
  std::printf("%s\n", text.c_str());
}

RivalRow not_tried(const std::string& why) {
  RivalRow row;
  row.name = "cudnn";
  row.chosen.error = "not tried: " + why;
  return row;
}

BenchOptions bench_options(const Options& o, const Peaks& peaks, cudnn::Rival* rival) {
  BenchOptions bench;
  bench.how.seed = o.seed;
  bench.how.rounds = std::max(1, o.iterations);
  bench.how.check = o.check;
  bench.how.warm = o.warm;
  bench.peaks = peaks;
  bench.every_schedule = o.every_schedule;
  bench.rival = rival;
  bench.cudnn.limit = static_cast<std::size_t>(o.cudnn_limit);
  bench.cudnn.workspace_bytes = static_cast<std::uint64_t>(o.cudnn_workspace_mb) << 20;
  return bench;
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
  SL_ASSIGN(const Cudnn cudnn, open_cudnn(*session, environment, o));
  progress("measuring the peaks");
  const DeviceInfo& device = session->device->info();
  ResultsHeader header{device.name,
                       device.capability,
                       session->device->driver(),
                       SLUICE_VERSION,
                       o.commit,
                       o.warm,
                       cudnn.rival ? cudnn.rival->library().version : 0,
                       {}};
  SL_ASSIGN(header.peaks, measure_peaks(*session));
  SL_ASSIGN(auto results, open_results(o.out, header));

  BenchOptions how = bench_options(o, header.peaks, cudnn.rival.get());
  std::vector<std::size_t> open;
  Tally tally;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (has_time(results, calls[i], cudnn.rival != nullptr)) {
      ++tally.there;
    } else {
      open.push_back(i);
    }
  }
  LongWork work(open.size(), o.budget);
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (work.out_of_budget()) {
      tally.left = open.size() - i;
      break;
    }
    const ConvProblem& call = calls[open[i]];
    work.step(call.descriptor());
    how.cudnn.every_engine =
        o.cudnn_engines == "all" || drawn(open[i], calls.size(), static_cast<std::size_t>(o.cudnn_sample));
    // What took the device away once may do so again: then the call is timed without cuDNN.
    const bool lost = lost_device(results, call);
    how.rival = lost ? nullptr : cudnn.rival.get();
    ResultsRow row = bench_row(*session, call, how);
    if (lost) row.rivals = {not_tried("the device was gone after it was")};
    SL_TRY(results.add(results_row(row)));
    tally.add(row);
    progress("");
    if (!o.json) line_of(row, i + 1, open.size());
    // After a fault nothing runs in this process. The rows so far stand in the part file; the same command goes on.
    if (row.error.empty()) continue;
    if (const Status alive = session->device->synchronize(nullptr); !alive.ok()) {
      row.device_lost = true;
      SL_TRY(results.add(results_row(row)));
      return alive.error();
    }
  }
  SL_TRY(results.finish());
  std::fputs((o.json ? tally_json(tally, o.out, cudnn) : tally_text(tally, o.out, cudnn)).c_str(), stdout);
  return tally.wrong ? exit_wrong : exit_done;
}

}  // namespace

int bench_command(const Options& options) {
  const auto code = bench(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
