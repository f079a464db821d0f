// First-use tuning of one problem: compile candidates in parallel, verify each (poison, redzones, against the reference
// or base), time the survivors interleaved, choose with a noise floor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "jit/binary_cache.hpp"
#include "routing/decision.hpp"
#include "tuning/timing.hpp"

namespace sl {

struct TuneBudget {
  double time_ms = 1000;  ///< from start to winner, compile included; at least the first candidate is always tried
  std::uint64_t scratch_bytes = 1ULL << 30;
  int threads = 0;  ///< compile threads; 0 = min(cores, 8)
};

struct TuneOptions {
  TuneBudget budget;
  TimingOptions timing;
  std::uint64_t seed = 0;   ///< 0 = fresh
  bool time_copy = true;    ///< also time the same-bytes copy (Decision::baseline_us)
  double hysteresis = 0.0;  ///< extra margin an earlier candidate in the list keeps, on top of the noise floor
  std::int64_t verify_outputs = 20000;  ///< outputs checked against the double reference per candidate (spread); the
                                        ///< rest against the first verified candidate, bit for bit where both are fma
};

/// What tuning found; `decision.schedule` is empty where nothing could run (decision.reason says why). `winner` indexes
/// set.candidates.
struct TuneResult {
  Decision decision;
  int winner = -1;
  std::shared_ptr<const Binary> binary;
};

/// Uses its own stream and scratch only. Never throws. Not for a capturing stream: the caller has checked.
TuneResult tune(Device&, BinaryCache&, const ConvProblem&, const CandidateSet&, const TuneOptions&, const Log&);

}  // namespace sl
