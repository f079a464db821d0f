// Host time of one call, by the way it is launched. bench/overhead.cpp measures the same with interleaving and counts.
#include <benchmark/benchmark.h>

#include <chrono>

#include "bench/benchmarks.hpp"

namespace sl::bench {
namespace {

using Clock = std::chrono::steady_clock;

// A batch short enough that the launch queue never fills; drained outside of the measured time.
void launch(benchmark::State& state, Subject& subject, bool (Subject::*call)() noexcept, int calls) {
  for (auto _ : state) {
    bool ok = true;
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) ok = (subject.*call)() && ok;
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    if (!ok) return state.SkipWithError("a call failed");
    if (const auto drained = subject.drain(); !drained.ok()) {
      return state.SkipWithError(drained.error().message.c_str());
    }
    state.SetIterationTime(elapsed.count() / calls);
  }
}

}  // namespace

void register_launches(Bench& bench) {
  const struct {
    const char* name;
    bool (Subject::*call)() noexcept;
  } ways[] = {{"launch/bare", &Subject::bare},     {"launch/plan", &Subject::plan},
              {"launch/lookup", &Subject::lookup}, {"launch/kept", &Subject::kept},
              {"launch/c_plan", &Subject::c_plan}, {"launch/c_lookup", &Subject::c_lookup},
              {"launch/c_kept", &Subject::c_kept}};
  const int calls = bench.session.device->info().backend == "host" ? 8 : 256;
  for (const auto& way : ways) {
    benchmark::RegisterBenchmark(way.name, [&bench, call = way.call, calls](
                                               benchmark::State& state) { launch(state, bench.subject, call, calls); })
        ->UseManualTime()
        ->Iterations(200)
        ->Unit(benchmark::kNanosecond);
  }
}

}  // namespace sl::bench
