// What happens before a plan exists: stores, compiler, tuner.
#include <benchmark/benchmark.h>

#include <chrono>

#include "bench/benchmarks.hpp"
#include "routing/routing.hpp"
#include "schedules/schedule.hpp"
#include "tuning/tuner.hpp"

namespace sl::bench {
namespace {

using Clock = std::chrono::steady_clock;

template <class Body>
void timed(benchmark::State& state, Body body) {
  for (auto _ : state) {
    const auto start = Clock::now();
    const Status status = body();
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    if (!status.ok()) return state.SkipWithError(status.error().message.c_str());
    state.SetIterationTime(elapsed.count());
  }
}

template <class Body>
void add(const char* name, int iterations, benchmark::TimeUnit unit, Body body) {
  benchmark::RegisterBenchmark(name, [body](benchmark::State& state) { timed(state, body); })
      ->UseManualTime()
      ->Iterations(iterations)
      ->Unit(unit);
}

// A new dispatcher finds its decision and its binary in the stores and loads the kernel.
Status cold_lookup(Bench& bench, const ConvProblem& problem) {
  tool::SessionOptions options;
  options.opened = bench.session.device;
  options.force = true;
  SL_ASSIGN(const auto session, tool::open_session(bench.session.environment, options, bench.log));
  SL_ASSIGN(const auto plan, session->dispatcher->prepare(problem, nullptr, Regular::yes));
  if (session->binaries->counters().compiles.load() > 0) {
    return Error{Code::environment, "compiled: the stores were not there (SLUICE_CACHE_DIR?)"};
  }
  return {};
}

Status get(FileStore& store, const Digest& key) {
  auto entry = store.get(key);
  if (!entry) return Error{Code::environment, "the binary store misses an entry that it lists"};
  benchmark::DoNotOptimize(entry->payload.data());
  return {};
}

Status compile(Bench& bench, const ConvProblem& problem) {
  const auto& device = bench.session.device->info();
  const Schedule* schedule = base_schedule(problem, device);
  if (schedule == nullptr) return Error{Code::internal, "no base schedule"};
  const KernelSpec spec = schedule->kernel(problem, schedule->configs(problem, device).front());
  SL_ASSIGN(const auto arch, bench.session.compiler->arch_for(device));
  const auto binaries = bench.session.compiler->compile({&spec, 1}, arch, 1);
  if (!binaries.front().ok()) return binaries.front().error();
  return {};
}

// With a cache that starts empty and is backed by no store: compile, verify and time every candidate.
Status tune_afresh(Bench& bench, const ConvProblem& problem) {
  const auto none = std::make_shared<FileStore>(StoreOptions{}, bench.log);
  BinaryCache cache(bench.session.compiler, none, bench.log);
  const auto pre =
      preflight(problem, bench.session.device->info(), Regular::yes, {}, {}, bench.session.options.sanitized.get());
  const auto result = tune(*bench.session.device, cache, problem, pre.set, bench.session.options.tune, bench.log);
  if (result.winner < 0) return Error{Code::internal, "tuning found no winner: " + result.decision.reason};
  return {};
}

}  // namespace

void register_slow_paths(Bench& bench) {
  const auto small = parse(measured_call);
  // MobileNetV2's 56x56 layer, batch 32: what "tune one shape" means for a network.
  const auto layer =
      parse(bench.session.device->info().backend == "host" ? measured_call
                                                           : "g144mb32ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc");
  if (!small.ok() || !layer.ok()) return;
  add("cold/lookup", 50, benchmark::kMicrosecond,
      [&bench, problem = small.value()] { return cold_lookup(bench, problem); });
  for (const auto& entry : bench.session.stores.binaries->list()) {
    if (!entry.valid) continue;
    add("store/get", 200, benchmark::kMicrosecond,
        [&bench, key = entry.key] { return get(*bench.session.stores.binaries, key); });
    break;
  }
  add("compile/one", 5, benchmark::kMillisecond, [&bench, problem = small.value()] { return compile(bench, problem); });
  add("tune/one", 3, benchmark::kMillisecond,
      [&bench, problem = layer.value()] { return tune_afresh(bench, problem); });
}

}  // namespace sl::bench
