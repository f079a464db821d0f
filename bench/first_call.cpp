#include "bench/first_call.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "bench/subject.hpp"
#include "dispatch/kernel_pool.hpp"
#include "dispatch/quick_launch.hpp"
#include "tuner/child.hpp"
#include "tuner/support.hpp"

namespace sl::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

rusage used() {
  rusage now{};
  ::getrusage(RUSAGE_SELF, &now);
  return now;
}

/// What may make a call slow that is none of its own work.
Json disturbances(const rusage& before, const rusage& after) {
  return {{"minor_faults", after.ru_minflt - before.ru_minflt},
          {"major_faults", after.ru_majflt - before.ru_majflt},
          {"waits", after.ru_nvcsw - before.ru_nvcsw},
          {"preemptions", after.ru_nivcsw - before.ru_nivcsw}};
}

/// Names the times between its calls.
class Steps {
 public:
  explicit Steps(Clock::time_point start) : last_(start) {}
  void done(const char* name) {
    const auto now = Clock::now();
    json_[name] = milliseconds(now - last_);
    last_ = now;
  }
  Json json() && { return std::move(json_); }

 private:
  Clock::time_point last_;
  Json json_ = Json::object();
};

/// What Dispatcher::conv2d() does for a call whose decision and binary are stored.
Result<Json> by_steps(tool::Session& session, const ConvProblem& problem, const Tensors& tensors, Stream stream,
                      Steps steps) {
  steps.done("context");
  static_cast<void>(session.compiler->identity());  // part of the binary's key
  steps.done("find_compiler");
  SL_ASSIGN(const Decision decision, session.dispatcher->explain(problem, Regular::yes, true));
  const Schedule* const schedule = find_schedule(decision.schedule);
  const auto config = Config::parse(decision.config);
  if (schedule == nullptr || !config) return Error{Code::unsupported, "the call was not taken: " + decision.reason};
  steps.done("decision");
  SL_ASSIGN(LaunchShape shape, launch_shape(problem, {schedule, *config}, session.device->info()));
  auto binaries = session.binaries->get(std::span(&shape.spec, 1), session.device->info(), 1);
  SL_ASSIGN(const auto binary, std::move(binaries.front()));
  steps.done("binary");
  SL_ASSIGN(const auto kernel, session.device->load(*binary, shape.geometry.dynamic_smem));
  steps.done("module");
  set_pointers(shape.params, tensors);
  SL_TRY(session.device->launch(*kernel, shape.geometry, shape.params, stream));
  steps.done("launch");
  SL_TRY(session.device->synchronize(stream));
  steps.done("finish");
  return std::move(steps).json();
}

Json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"median", values[values.size() / 2]}, {"max", values.back()}};
}

/// The spreads of the numbers `name` in every one of `rows`.
Json spread(const Json& rows, const char* name) {
  std::vector<double> values;
  for (const Json& row : rows) values.push_back(row.at(name).get<double>());
  return spread(std::move(values));
}

Result<Json> in_a_process(const FirstCall& call) {
  std::vector<std::string> words = {"sluice_overhead",
                                    "--device",
                                    call.device,
                                    "--parent",
                                    std::to_string(::getpid()),
                                    "--first-call",
                                    call.step_by_step ? "steps" : "whole"};
  SL_ASSIGN(const tool::Child child, tool::start_child(std::move(words)));
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(child.report.get(), block, sizeof block)) != 0;) {
    if (got > 0) text.append(block, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  const int status = tool::wait_for(child);
  Json json = Json::parse(text, nullptr, false);
  if (status != 0 || !json.is_object()) {
    return Error{Code::environment, "a second process ended with status " + std::to_string(status) + ": " + text};
  }
  return json;
}

}  // namespace

Result<Json> first_call(const FirstCall& call, std::unique_ptr<tool::Session>& session, const Environment& environment,
                        const Log& log) {
  tool::DeviceName name;
  SL_ASSIGN(name, tool::parse_device_name(call.device));
  const auto start = Clock::now();
  tool::SessionOptions options;
  SL_ASSIGN(options.opened, tool::open_device(name, options.emulate, environment, log));
  SL_ASSIGN(const Stream stream, options.opened->create_stream());
  SL_ASSIGN(const auto buffer, options.opened->allocate(1 << 20));
  SL_TRY(options.opened->fill(buffer->data(), 0, buffer->size(), stream));
  SL_TRY(options.opened->synchronize(stream));
  const auto before = used();
  const auto ready = Clock::now();

  options.force = true;
  SL_ASSIGN(session, tool::open_session(environment, options, log));
  SL_ASSIGN(const auto problem, parse(measured_call));
  Tensors tensors;
  auto* const base = static_cast<std::byte*>(buffer->data());
  tensors.x = base;
  tensors.w = base + (256 << 10);
  tensors.y = base + (512 << 10);
  Json steps;
  auto returned = ready;
  if (call.step_by_step) {
    SL_ASSIGN(steps, by_steps(*session, problem, tensors, stream, Steps(ready)));
  } else {
    Error error;
    const Code code = session->dispatcher->conv2d(problem, tensors, stream, Regular::yes, error);
    if (code != Code::ok) return Error{code, std::string(measured_call) + ": " + error.message};
    returned = Clock::now();
    SL_TRY(session->device->synchronize(stream));
  }
  const auto done = Clock::now();
  const auto after = used();
  session->device->destroy_stream(stream);

  const auto& jit = session->binaries->counters();
  const auto dispatch = session->dispatcher->counters();
  Json json = {{"device_init_ms", milliseconds(ready - start)}};
  if (call.step_by_step) {
    json["steps_ms"] = std::move(steps);
  } else {
    json["returned_ms"] = milliseconds(returned - ready);
  }
  json.update({{"finished_ms", milliseconds(done - ready)},
               {"compiles", jit.compiles.load()},
               {"binary_hits", jit.binary_hits.load()},
               {"tunings", dispatch.tunings},
               {"decision_hits", dispatch.decision_hits},
               {"nvrtc_opened", !tool::mapped_libraries({"libnvrtc"}).empty()}});
  json.update(disturbances(before, after));
  return json;
}

Result<Json> second_processes(const std::string& device, int count) {
  Json whole = Json::array(), steps = Json::array();
  for (int i = 0; i < count; ++i) {
    SL_ASSIGN(Json one, in_a_process({device, false}));
    whole.push_back(std::move(one));
    SL_ASSIGN(Json other, in_a_process({device, true}));
    steps.push_back(std::move(other));
  }
  Json out = {{"returned_ms", spread(whole, "returned_ms")},
              {"finished_ms", spread(whole, "finished_ms")},
              {"steps_ms", Json::object()}};
  for (const auto& [name, ignored] : steps.front().at("steps_ms").items()) {
    std::vector<double> values;
    for (const Json& row : steps) values.push_back(row.at("steps_ms").at(name).get<double>());
    out["steps_ms"][name] = spread(std::move(values));
  }
  out["calls"] = std::move(whole);
  out["calls_by_steps"] = std::move(steps);
  return out;
}

}  // namespace sl::bench
