// sluice_overhead: what the dispatch path costs on the host, beside a bare launch in the same process, and what it does
// that it may not do. Writes one JSON object.
//
// Each way to launch is called in batches, the ways interleaved batch by batch; the queue is drained between batches,
// outside of the measured time, so that no launch waits for room.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/first_call.hpp"
#include "bench/hooks.hpp"
#include "bench/subject.hpp"
#include "tuner/child.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"

namespace sl::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string device, out, first_call;
  int batches = 300, calls = 0, processes = 5, parent = 0;
};

struct Way {
  const char* name;
  bool (Subject::*call)() noexcept;
  bool launches = true;
  std::vector<double> ns = {};  ///< a call, one value a batch
  HookCounts counts = {};       ///< of all batches
  std::uint64_t calls = 0, failures = 0;
};

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  const std::ptrdiff_t at = std::lround(p * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

void add(HookCounts& to, const HookCounts& from) {
  to.allocations += from.allocations;
  to.locks += from.locks;
  to.files += from.files;
  to.variables += from.variables;
  to.own_allocations += from.own_allocations;
  to.own_locks += from.own_locks;
  to.own_files += from.own_files;
  to.own_variables += from.own_variables;
}

/// Nanoseconds a call more than `bare`: the median of the differences round by round, so that a clock which moves
/// during the run moves both sides of each.
double over(const Way& way, const Way& bare) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < way.ns.size(); ++i) differences.push_back(way.ns[i] - bare.ns[i]);
  return percentile(std::move(differences), 0.5);
}

Status batch(Subject& subject, Way& way, int calls, bool record) {
  std::uint64_t failures = 0;
  start_counting();
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) failures += (subject.*way.call)() ? 0 : 1;
  const auto end = Clock::now();
  const auto counts = stop_counting();
  SL_TRY(subject.drain());
  if (!record) return {};
  way.ns.push_back(std::chrono::duration<double, std::nano>(end - start).count() / calls);
  way.calls += static_cast<std::uint64_t>(calls);
  way.failures += failures;
  add(way.counts, counts);
  return {};
}

Json way_json(const Way& way) {
  const auto per_call = [&](std::uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(way.calls);
  };
  const auto& c = way.counts;
  return {{"ns", percentile(way.ns, 0.5)},     {"ns_p10", percentile(way.ns, 0.1)},
          {"ns_p90", percentile(way.ns, 0.9)}, {"calls", way.calls},
          {"failures", way.failures},          {"allocations", per_call(c.allocations)},
          {"locks", per_call(c.locks)},        {"files", per_call(c.files)},
          {"getenv", per_call(c.variables)},   {"own_allocations", c.own_allocations},
          {"own_locks", c.own_locks},          {"own_files", c.own_files},
          {"own_getenv", c.own_variables}};
}

Result<Json> measure(const Arguments& arguments) {
  const Log log(tool::stderr_sink(false), LogLevel::warning);
  SL_ASSIGN(const Environment environment, read_environment());
  std::unique_ptr<tool::Session> session;
  SL_ASSIGN(Json first, first_call({arguments.device}, session, environment, log));
  Json second;  // null where no store tells a second process what this one has found
  if (arguments.processes > 0 && !session->stores.root.empty()) {
    SL_ASSIGN(second, second_processes(arguments.device, arguments.processes));
  }
  SL_ASSIGN(const auto subject, Subject::create(*session, log));

  Way ways[] = {{"bare", &Subject::bare},           {"plan", &Subject::plan},     {"lookup", &Subject::lookup},
                {"kept", &Subject::kept, false},    {"c_plan", &Subject::c_plan}, {"c_lookup", &Subject::c_lookup},
                {"c_kept", &Subject::c_kept, false}};
  const bool host = session->device->info().backend == "host";
  const int calls = arguments.calls > 0 ? arguments.calls : host ? 8 : 256;
  const int warm_up = std::max(1, arguments.batches / 10);
  const std::size_t count = std::size(ways);
  for (int b = -warm_up; b < arguments.batches; ++b) {
    // Who goes first rotates: the batch after a drain starts with an idle device.
    for (std::size_t i = 0; i < count; ++i) {
      SL_TRY(batch(*subject, ways[(i + static_cast<std::size_t>(b + warm_up)) % count], calls, b >= 0));
    }
  }

  Json out = {{"schema", 1},
              {"device", session->device->info().name},
              {"driver", session->device->driver()},
              {"problem", measured_call},
              {"schedule", subject->prepared().decision.schedule},
              {"batches", arguments.batches},
              {"calls_per_batch", calls},
              {"first_call", std::move(first)},
              {"second_processes", std::move(second)},
              {"ways", Json::object()},
              {"over_bare_ns", Json::object()}};
  for (const auto& way : ways) {
    out["ways"][way.name] = way_json(way);
    if (way.launches) out["over_bare_ns"][way.name] = over(way, ways[0]);
    if (way.failures > 0)
      return Error{Code::internal, std::string(way.name) + ": " + std::to_string(way.failures) + " calls failed; " +
                                       subject->failure()};
  }
  return out;
}

/// For second_processes().
Result<Json> be_a_second_process(const Arguments& arguments) {
  SL_TRY(tool::end_with(arguments.parent));
  const Log log(tool::stderr_sink(false), LogLevel::warning);
  SL_ASSIGN(const Environment environment, read_environment());
  std::unique_ptr<tool::Session> session;
  return first_call({arguments.device, arguments.first_call == "steps"}, session, environment, log);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Host time, allocations and locks of a bare launch, a prepared plan, look-up-and-launch and a kept call.\n"
      "Then the first call of processes that find everything in the stores, whole and in steps."};
  app.add_option("--device", arguments.device, "cuda, cuda:N or host")->required();
  app.add_option("--out", arguments.out, "Write the JSON here too");
  app.add_option("--batches", arguments.batches, "Batches a way")->check(CLI::Range(1, 1000000));
  app.add_option("--calls", arguments.calls, "Calls a batch (default 256; host 8)")->check(CLI::Range(1, 512));
  app.add_option("--processes", arguments.processes, "Second processes for the whole call, and again for its steps")
      ->check(CLI::Range(0, 1000));
  app.add_option("--first-call", arguments.first_call)->check(CLI::IsMember({"whole", "steps"}))->group("");
  app.add_option("--parent", arguments.parent)->group("");
  CLI11_PARSE(app, argc, argv);
  const auto result = arguments.first_call.empty() ? measure(arguments) : be_a_second_process(arguments);
  if (!result.ok()) return tool::fail(result.error());
  const std::string text = result.value().dump(2) + "\n";
  std::fputs(text.c_str(), stdout);
  if (!arguments.out.empty() && !(std::ofstream(arguments.out) << text)) {
    tool::complain(arguments.out + ": cannot be written");
    return tool::exit_environment;
  }
  return tool::exit_done;
}

}  // namespace
}  // namespace sl::bench

int main(int argc, char** argv) {
  try {
    return sl::bench::run(argc, argv);
  } catch (const std::exception& error) {
    sl::tool::complain(error.what());
    return sl::tool::exit_environment;
  }
}
