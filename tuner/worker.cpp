#include "tuner/worker.hpp"

#include <unistd.h>

#include <cstdio>

#include "core/json_reader.hpp"
#include "tuner/exit_code.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;

/// A line at once: what is not said before a crash was said for nothing.
void say(const Json& line) {
  std::fputs((dump_json(line, false) + '\n').c_str(), stdout);
  std::fflush(stdout);
}

/// A fault shows with the next call of the driver, and with every one after that: nothing more can be done here. The
/// parent takes it for the candidate's that was announced last. No destructor runs, since each would only fail.
void check_alive(Device& device) {
  const Status alive = device.synchronize(nullptr);
  if (alive.ok()) return;
  say({{"lost", alive.error().message}});
  ::_exit(exit_device);
}

}  // namespace

std::string WorkerOrders::to_json() const {
  Json out;
  out["given_up"] = given_up;
  out["skipped"] = skipped;
  out["singly"] = singly;
  out["left_out"] = Json::object();
  for (const auto& [problem, list] : left_out) {
    for (const LeftOut& one : list)
      out["left_out"][problem].push_back(Json::array({one.schedule, one.config, one.outcome}));
  }
  return dump_json(out, false);
}

Result<WorkerOrders> WorkerOrders::from_json(const std::string& text) {
  try {
    const Json in = Json::parse(text);
    WorkerOrders out;
    in.at("given_up").get_to(out.given_up);
    in.at("skipped").get_to(out.skipped);
    in.at("singly").get_to(out.singly);
    for (const auto& [problem, list] : in.at("left_out").items()) {
      for (const Json& one : list) out.left_out[problem].push_back({one.at(0), one.at(1), one.at(2)});
    }
    return out;
  } catch (const Json::exception& error) {
    return Error{Code::invalid, std::string("--worker is for `sluice tune --isolate` alone: ") + error.what()};
  }
}

void Worker::begin(const ConvProblem& problem, std::size_t place) const {
  say({{"call", problem.to_string()}, {"place", place}});
}

void Worker::prepare(TuneOptions& options, const ConvProblem& problem, const CandidateSet& set, Device& device) const {
  const std::string text = problem.to_string();
  if (const auto known = orders_.left_out.find(text); known != orders_.left_out.end()) options.left_out = known->second;
  for (const std::string& whose : {text, std::string()}) {
    const auto list = orders_.given_up.find(whose);
    if (list == orders_.given_up.end()) continue;
    for (const Candidate& candidate : set.candidates) {
      const auto found = list->second.find(std::string(candidate.schedule->name));
      if (found == list->second.end()) continue;
      options.left_out.push_back({found->first, candidate.config.to_string(), found->second});
    }
  }
  options.compile_singly = orders_.singly == text;
  options.watch = [&set, &device](std::string_view step, std::span<const std::size_t> places) {
    check_alive(device);
    Json at = Json::array();
    for (const std::size_t place : places) {
      const Candidate& candidate = set.candidates[place];
      at.push_back(Json::array({candidate.schedule->name, candidate.config.to_string()}));
    }
    say({{"step", step}, {"at", std::move(at)}});
  };
}

void Worker::over(Device& device) const {
  check_alive(device);
  say({{"step", ""}, {"at", Json::array()}});
}

void Worker::tuned() const { say({{"tuned", true}}); }
void Worker::failed(const ConvProblem& problem) const { say({{"failed", problem.to_string()}}); }
void Worker::done(const TuneTally& tally, const std::string& out) const { say({{"done", tally.json(out)}}); }

}  // namespace sl::tool
