// First-use tuning of one problem: compile candidates in parallel, verify each (poison, redzones, against the reference
// and the first that passed), time the survivors interleaved, choose with a noise floor. docs/tuning-internals.md tells
// the whole of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "jit/binary_cache.hpp"
#include "routing/decision.hpp"
#include "tuning/timing.hpp"

namespace sl {

struct TuneBudget {
  /// From start to winner: compiling, making data, checking, timing, and checking the winner on the whole batch. A step
  /// is begun only where it is expected to end in time. What cannot be left out is done however long it takes: the
  /// first batch of compiles, checks until a candidate has computed the right result, the check and one sample of every
  /// schedule's first guess, and the winner's last check.
  double time_ms = 1000;
  std::uint64_t scratch_bytes = 1ULL << 30;
  int threads = 0;  ///< compile threads; 0 = min(cores, 16)
};

/// What a step is about to do with which candidates (places in the set): "compile" with several, "load", "check",
/// "time" with one, and "scratch", "copy" with none. What happens next, up to a crash, is theirs.
using TuneWatch = std::function<void(std::string_view step, std::span<const std::size_t> candidates)>;

/// A candidate that must not be tried again, and the outcome that its row has: it took a process with it.
struct LeftOut {
  std::string schedule, config;
  std::string outcome;
};

struct TuneOptions {
  TuneBudget budget;
  TuneWatch watch = {};         ///< told before every step that runs foreign code; empty = nobody watches
  bool overlap = true;          ///< compile on another thread, while what is there is checked; not where one watches
  bool compile_singly = false;  ///< one candidate a "compile" step, so that a compiler that crashes names its cause
  std::vector<LeftOut> left_out = {};  ///< others may be in it
  TimingOptions timing;
  std::uint64_t seed = 0;  ///< 0 = fresh
  /// Bytes that the host makes, moves or looks at in a millisecond, cautiously: what steps are expected to take.
  double host_bytes_per_ms = 1e6;
  bool time_copy = true;    ///< also time the same-bytes copy (Decision::baseline_us)
  double hysteresis = 0.0;  ///< extra margin an earlier candidate in the list keeps, on top of the noise floor
  std::int64_t verify_outputs = 20000;  ///< outputs checked against the double reference per candidate (spread over the
                                        ///< tensor, fewer for large kernels); all are compared with the first verified
                                        ///< candidate's, within both rounding bounds
};

/// What tuning found; `decision.schedule` is empty where nothing could run (decision.reason says why). `winner` indexes
/// set.candidates. Filled in the decision: problem, device, route ("take", or empty), reason, schedule, config, origin
/// (tuned; heuristic where nothing could be timed), match, candidates (one record a candidate, in order), refusals,
/// driver, compiler, arch_note, both digests, noise_floor, baseline_us. Verdict, rule and table are the caller's.
struct TuneResult {
  Decision decision;
  int winner = -1;
  /// Where there is no winner: the code that all candidates failed with (compile, environment, device, ...), or
  /// wrong_result where they failed in different ways.
  Code failure = Code::wrong_result;
  std::shared_ptr<const Binary> binary;
};

/// Uses its own stream and scratch only, both gone on return. Thread-safe; never throws. Not for a capturing stream:
/// the caller has checked. Where the scratch does not hold the problem, a smaller batch of it is tuned (decision.reason
/// says so, and the times are that batch's); where it does not even hold one image, the first candidate that loads is
/// taken untimed.
TuneResult tune(Device&, BinaryCache&, const ConvProblem&, const CandidateSet&, const TuneOptions&, const Log&);

}  // namespace sl
