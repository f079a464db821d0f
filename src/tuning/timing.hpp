// The one timing core: the tuner, `sluice run`, `sluice bench` and Google Benchmark all call it.
//
// Protocol: graph replays that rotate over enough buffer sets to leave L2 (at least 4 x L2 bytes, at most 64 sets),
// candidates interleaved (A B C A B C ...), median of the replays, spread as the 10th and 90th percentile. Calibration
// replays, which choose the calls a recording, come first; they also bring the clock up, and are never samples.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "device/device.hpp"

namespace sl {

/// Samples::error (and a candidate's outcome) of what the deadline left no time for.
inline constexpr std::string_view skipped_budget = "skipped: budget";
/// A candidate's outcome where there was time to compile it, and none for more: what another batch may use.
inline constexpr std::string_view skipped_compiled = "skipped: budget, compiled";
/// Whether an outcome is either: there was no time, which says nothing of the candidate.
constexpr bool ran_out_of_time(std::string_view outcome) {
  return outcome == skipped_budget || outcome == skipped_compiled;
}

struct TimingOptions {
  int rounds = 9;           ///< replays a candidate
  double target_us = 1000;  ///< device time of one replay (calls a recording are chosen to reach it)
  /// Host time, from the call on, after which nothing further is calibrated, and no round starts that is expected to
  /// end later; 0 = none. The first workload that works is measured once all the same, and so are the first `certain`.
  double deadline_us = 0;
  int certain = 1;
  double abandon_factor =
      3.0;  ///< a candidate whose first replay is this much slower than the best is not timed further; 0 = never
  std::function<void(std::size_t workload)> before =
      {};  ///< called before anything of a workload is recorded or replayed
  std::function<std::chrono::steady_clock::time_point()> now = &std::chrono::steady_clock::now;  ///< a seam for tests
};

struct Samples {
  std::vector<double> us;  ///< time of one call, a replay each
  bool abandoned = false;
  std::string error;  ///< why there are none
  double median() const;
  double percentile(double p) const;  ///< p in 0..1, interpolated; 0 where there are no samples
  /// 95 % confidence interval of the median, whatever the distribution: the two order statistics that hold it. Fewer
  /// than six samples do not allow one; then it is the whole range. {0, 0} where there are none.
  std::pair<double, double> median_interval() const;
};

/// Something to time: enqueues one call that uses buffer set `set` (0 <= set < sets).
using Workload = std::function<Status(int set, Stream)>;

/// Times all workloads interleaved on `stream`. One Samples a workload, in order; a workload that fails has an error
/// and harms no other.
std::vector<Samples> time_interleaved(Device&, Stream, const std::vector<Workload>&, int sets, const TimingOptions&);

/// Relative noise of the measurement: differences between two medians below it are nothing. Three standard errors of
/// such a difference, from the spread (10th to 90th percentile, as if normal) and number of replays, of the incumbent
/// (the first with samples) or of the fastest, whichever is noisier: 0.7 of the spread at nine replays. At least 1 %,
/// and at least 5 % where fewer than three replays say anything about spread; at most 50 %.
double noise_floor(const std::vector<Samples>&);

/// Index of the winner, -1 where nothing has samples: the smallest median, unless an earlier one is within `margin`
/// (relative) of it. Then no difference was measured, and the earliest keeps winning however the noise falls. Abandoned
/// ones count only where nothing else is left.
int fastest(const std::vector<Samples>&, double margin);

enum class Comparison { faster, same, slower, ambiguous };
std::string_view name(Comparison);

/// Whether `ours` is faster than `theirs`, from the two confidence intervals of the medians: "same" where their ratio
/// lies within `equal` of 1 for certain, else faster or slower where it lies on one side of 1 for certain, else
/// ambiguous (also where one has no samples).
Comparison compare_medians(const Samples& ours, const Samples& theirs, double equal = 0.02);

/// How many buffer sets of `bytes_per_set` leave L2, within `scratch_bytes`: at least 1, at most 64.
int rotating_sets(const DeviceInfo&, std::int64_t bytes_per_set, std::uint64_t scratch_bytes);

}  // namespace sl
