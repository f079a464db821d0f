// Exit codes of the program (docs/program.md holds the same table).
#pragma once

#include "core/result.hpp"

namespace sl::tool {

enum ExitCode : int {
  exit_done = 0,         ///< done; also when the call is kept
  exit_usage = 2,        ///< wrong usage or bad input
  exit_device = 3,       ///< the device cannot: no such device, unsupported call, out of memory, driver failure
  exit_wrong = 4,        ///< a result was wrong
  exit_environment = 5,  ///< no driver, no compiler, no write access where it was demanded, damaged cache entries
};

constexpr ExitCode exit_code(Code code) {
  switch (code) {
    case Code::ok:
    case Code::kept:
      return exit_done;
    case Code::invalid:
      return exit_usage;
    case Code::unsupported:
    case Code::out_of_memory:
    case Code::device:
    case Code::not_found:
    case Code::pinned_miss:
    case Code::not_prepared:
      return exit_device;
    case Code::wrong_result:
      return exit_wrong;
    case Code::compile:
    case Code::environment:
    case Code::internal:
      return exit_environment;
  }
  return exit_environment;
}

}  // namespace sl::tool
