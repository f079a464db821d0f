// Kernels by suite, each beside a copy of the same bytes. Time comes from the one timing core (tuning/timing.hpp).
#include <benchmark/benchmark.h>

#include "bench/benchmarks.hpp"
#include "tuner/measure.hpp"

namespace sl::bench {
namespace {

constexpr std::int64_t checked_outputs = 2000;  // an alarm, not the test: test/ checks everything

void kernel(benchmark::State& state, Bench& bench, const ConvProblem& problem) {
  const auto plan = bench.session.dispatcher->prepare(problem, nullptr, Regular::yes);
  if (!plan.ok()) return state.SkipWithError(plan.error().message.c_str());
  const Plan& p = *plan.value();
  if (p.entry.kind != PlanEntry::Kind::plan) return state.SkipWithError(("kept: " + p.decision.reason).c_str());
  tool::MeasureOptions how;
  how.rounds = bench.rounds;
  how.check = checked_outputs;
  for (auto _ : state) {
    const auto measured = tool::measure(bench.session, p, how);
    if (!measured.ok()) return state.SkipWithError(measured.error().message.c_str());
    const auto& m = measured.value();
    if (m.wrong > 0) return state.SkipWithError(("wrong: " + m.first_wrong).c_str());
    if (!m.time || !m.copy) return state.SkipWithError("no time");
    state.SetIterationTime(m.time->median * 1e-6);
    state.counters["copy_us"] = m.copy->median;
    state.counters["over_copy"] = m.time->median / m.copy->median;
    state.counters["error_over_bound"] = m.error_over_bound;
    state.counters["GB_s"] = static_cast<double>(problem.min_bytes()) / m.time->median * 1e-3;
  }
  state.SetLabel(p.decision.schedule + " " + p.decision.config);
}

}  // namespace

void register_kernels(Bench& bench, const std::vector<ConvProblem>& problems) {
  for (const auto& problem : problems) {
    benchmark::RegisterBenchmark(("kernel/" + problem.to_string()).c_str(),
                                 [&bench, problem](benchmark::State& state) { kernel(state, bench, problem); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace sl::bench
