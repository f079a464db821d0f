// Runs a prepared plan on random data: checks it against the double reference, times it beside a copy of the same
// bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.hpp"
#include "dispatch/dispatcher.hpp"
#include "reference/reference.hpp"
#include "tuner/session.hpp"

namespace sl::tool {

/// Times of one call in microseconds.
struct Spread {
  double median = 0, low = 0, high = 0;  ///< low and high: 10th and 90th percentile
};

struct Measurement {
  std::int64_t outputs = 0, checked = 0, wrong = 0;
  double error_over_bound = 0;  ///< largest |error| / allowed; infinity for a NaN
  std::string first_wrong;      ///< empty where nothing is wrong
  /// copy: of the same bytes, by the driver or by a kernel, whichever is faster.
  std::optional<Spread> time, copy;
};

struct MeasureOptions {
  std::uint64_t seed = 1;
  Fill fill = Fill::random;
  std::int64_t check = -1;  ///< outputs to check; 0 = all, -1 = about a second's worth
  int rounds = 30;          ///< timed replays; 0 = do not time
  bool warm = false;        ///< one buffer set: what fits stays in L2
};

/// A wrong output is not an error here: Measurement::wrong counts it. A write outside of y is Code::wrong_result.
Result<Measurement> measure(Session&, const Plan&, const MeasureOptions&);

}  // namespace sl::tool
