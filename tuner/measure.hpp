// Runs a prepared plan on random data: checks it against the double reference, times it beside a copy of the same
// bytes.
#pragma once

#include <cstdint>

#include "core/result.hpp"
#include "dispatch/dispatcher.hpp"
#include "tuner/record.hpp"

namespace sl::tool {

struct MeasureOptions {
  std::uint64_t seed = 1;
  Fill fill = Fill::random;
  std::int64_t check = -1;  ///< outputs to check; 0 = all, -1 = about a second's worth
  int rounds = 30;          ///< timed replays; 0 = do not time
};

/// A wrong output is not an error here: Measurement::wrong counts it. A write outside of y is Code::wrong_result.
Result<Measurement> measure(Session&, const Plan&, const MeasureOptions&);

}  // namespace sl::tool
