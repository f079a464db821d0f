// What `run` and `explain` report about one call: the decision, and what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/conv_problem.hpp"
#include "device/device_info.hpp"
#include "dispatch/dispatcher.hpp"
#include "routing/decision.hpp"
#include "tuner/measure.hpp"
#include "tuner/session.hpp"

namespace sl::tool {

struct CounterValues {
  std::uint64_t compiles = 0, binary_hits = 0, decision_hits = 0, tunings = 0, launches = 0;
};
CounterValues counters_of(const Session&);

struct Record {
  ConvProblem problem;
  DeviceInfo device;
  Regular regular = Regular::yes;
  std::string policy;
  Decision decision;
  std::optional<Measurement> measured;
  CounterValues counters;
};

/// The route that counts as "the caller's own convolution should run".
bool kept(const Record&);

/// Adds the candidates and refusals of preflight where the decision lists none.
void complete(Decision&, const Preflight&);

/// One JSON object with stable keys (docs/program.md lists them), ending in a newline.
std::string record_json(const Record&);
/// The same for people.
std::string record_text(const Record&);

}  // namespace sl::tool
