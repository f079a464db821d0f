// One row of `sluice bench`: everything that is timed on one call, in one rotation.
#pragma once

#include "tuner/cudnn/rival.hpp"
#include "tuner/measure.hpp"
#include "tuner/results.hpp"
#include "tuner/session.hpp"

namespace sl::tool {

struct BenchOptions {
  MeasureOptions how;
  Peaks peaks;
  bool every_schedule = false;    ///< else the base schedule alone, beside the winner
  cudnn::Rival* rival = nullptr;  ///< null: no cuDNN
  cudnn::RivalOptions cudnn;      ///< every_engine is the caller's to set, call by call
};

/// Tunes, checks and times. What fails is in the row: ResultsRow::error where Sluice has no time (the rivals may have
/// one), a rival's own error beside it.
ResultsRow bench_row(Session&, const ConvProblem&, const BenchOptions&);

}  // namespace sl::tool
