// What sluice_bench measures. Each function registers its benchmarks with Google Benchmark; the bench outlives the
// runs.
#pragma once

#include <string>
#include <vector>

#include "bench/subject.hpp"
#include "core/log.hpp"
#include "tuner/session.hpp"

namespace sl::bench {

struct Bench {
  const Log& log;
  tool::Session& session;
  Subject& subject;
  int rounds = 15;  ///< timed replays of a kernel
};

/// Host time of one call: launch/bare, launch/plan, launch/lookup, launch/kept and the same through the C ABI.
void register_launches(Bench&);
/// look-up with nothing in memory (cold/lookup), store/get, compile/one, tune/one.
void register_slow_paths(Bench&);
/// Device time of each call beside a copy of the same bytes: kernel/<problem>. Counters: schedule's copy_us, over_copy,
/// error_over_bound (largest of a sample of the outputs), GB_s (useful bytes).
void register_kernels(Bench&, const std::vector<ConvProblem>&);

}  // namespace sl::bench
