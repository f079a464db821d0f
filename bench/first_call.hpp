// The first call of a process, from a device that is ready: whole or step by step, in this process or in fresh ones.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/environment.hpp"
#include "core/log.hpp"
#include "core/result.hpp"
#include "tuner/session.hpp"

namespace sl::bench {

/// `step_by_step`: what the call does, one after the other and each timed, instead of the call.
struct FirstCall {
  std::string device;
  bool step_by_step = false;
};

/// Opens device and `session` and makes the call: its times, what it did, and what the system did meanwhile.
Result<nlohmann::ordered_json> first_call(const FirstCall&, std::unique_ptr<tool::Session>& session, const Environment&,
                                          const Log&);

/// `count` fresh processes of this program that make the call whole, and as many that make it step by step, in turn;
/// then medians and worst.
Result<nlohmann::ordered_json> second_processes(const std::string& device, int count);

}  // namespace sl::bench
