// `sluice compile`: every candidate of a suite's calls into the binary store, ahead of time, with or without the GPU.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/json_reader.hpp"
#include "dispatch/shapes.hpp"
#include "routing/routing.hpp"
#include "tuner/calls.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/session.hpp"

namespace sl::tool {
namespace {

Result<DeviceInfo> device_of(const Options& o, const Environment& environment, const Log& log) {
  if (is_described(o.device)) return described_device(o.device);
  SL_ASSIGN(const DeviceName name, parse_device_name(o.device.empty() ? "cuda" : o.device));
  SL_ASSIGN(const auto device, open_device(name, o.emulate, environment, log));
  return device->info();
}

/// Kernels of every candidate, each once.
std::vector<KernelSpec> specs_of(const std::vector<ConvProblem>& calls, const DeviceInfo& device,
                                 const Environment& environment, const Sanitized* passed) {
  std::vector<KernelSpec> specs;
  std::set<std::string> seen;
  for (const ConvProblem& call : calls) {
    const Preflight looked = look(call, device, Regular::yes, environment, passed);
    const CandidateSet set = Shapes::for_every_batch(call, device, looked.set);  // what a first call compiles
    for (const Candidate& candidate : set.candidates) {
      KernelSpec spec = candidate.schedule->kernel(call, candidate.config);
      if (seen.insert(spec.entry()).second) specs.push_back(std::move(spec));
    }
  }
  return specs;
}

Result<int> compile(const Options& o) {
  SL_ASSIGN(const auto calls, calls_of(o));
  SL_ASSIGN(const auto environment, environment_of(o));
  const Log log(stderr_sink(o.verbose), o.verbose ? LogLevel::debug : LogLevel::warning);
  SL_ASSIGN(const DeviceInfo device, device_of(o, environment, log));
  const Stores stores = open_stores(environment, log);
  if (stores.binaries == nullptr) return Error{Code::environment, "no cache to compile into: see SLUICE_CACHE_DIR"};
  SL_TRY(stores.binaries->writable());
  BinaryCache cache(
      device.backend == "host" ? make_host_compiler(environment, log) : make_nvrtc_compiler(environment, log),
      stores.binaries, log);

  SL_ASSIGN(const auto passed, find_sanitized(environment.sanitized));
  const std::vector<KernelSpec> specs = specs_of(calls, device, environment, passed.get());
  const auto threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
  const auto chunk = static_cast<std::size_t>(threads) * 4;
  LongWork work((specs.size() + chunk - 1) / chunk, o.budget);
  std::size_t done = 0, failed = 0;
  for (std::size_t i = 0; i < specs.size() && !work.out_of_budget(); i += chunk) {
    work.step(std::to_string(i) + " of " + std::to_string(specs.size()) + " kernels");
    const auto some = std::span(specs).subspan(i, std::min(chunk, specs.size() - i));
    for (const auto& binary : cache.get(some, device, threads)) {
      if (!binary.ok()) warn(binary.error().message);
      failed += binary.ok() ? 0 : 1;
      ++done;
    }
  }
  progress("");
  const auto compiled = cache.counters().compiles.load(), there = cache.counters().binary_hits.load();
  if (o.json) {
    const nlohmann::ordered_json out = {
        {"device", device.name},  {"calls", calls.size()}, {"kernels", specs.size()},    {"compiled", compiled},
        {"already_there", there}, {"failed", failed},      {"left", specs.size() - done}};
    std::fputs(dump_json(out, true).c_str(), stdout);
  } else {
    std::printf("%s", (field("device", device.name) +
                       field("kernels", std::to_string(specs.size()) + " of " + std::to_string(calls.size()) +
                                            " calls: " + std::to_string(compiled) + " compiled, " +
                                            std::to_string(there) + " already there, " + std::to_string(failed) +
                                            " failed, " + std::to_string(specs.size() - done) + " left") +
                       field("store", stores.root.string()))
                          .c_str());
  }
  return failed > 0 ? exit_environment : exit_done;
}

}  // namespace

int compile_command(const Options& options) {
  const auto code = compile(options);
  return code.ok() ? code.value() : fail(code.error());
}

}  // namespace sl::tool
