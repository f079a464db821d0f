// From tuned calls to a heuristic: small trees, no larger than calls that they were not grown from bear out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "routing/heuristic.hpp"

namespace sl {

/// One call that was tuned. Either every candidate has an outcome, or only the winner is known.
struct TunedCall {
  ConvProblem problem;
  CandidateSet set;             ///< every candidate of this build
  std::vector<double> time_us;  ///< one a candidate, 0 = it failed; empty: only the winner is known
  const Schedule* winner = nullptr;
  std::vector<std::string> networks;  ///< that make the call, where known
};

struct FitOptions {
  std::size_t most_branches = 128;  ///< of all trees together
  std::size_t least_cases = 3;      ///< behind a leaf
  /// Of what is left out: called before each part, for progress.
  std::function<void(const std::string& left_out, std::size_t of)> step;
};

/// How the model, and the default order, do on some calls. Failed candidates count as ten times the best.
struct FitQuality {
  PickQuality quality;
  std::string worst_call, default_worst_call;
};

struct Fitted {
  Heuristic heuristic;
  std::size_t branches = 0;
  FitQuality own, left_out;  ///< on the calls it was grown from; on calls it had not seen
  std::string left_out_by;   ///< "networks" or "shapes"
  std::int64_t groups = 0;
};

/// All calls alike: with times, or all with the winner only. Deterministic, whatever the order of the calls.
///
/// How many branches: the fewest that, leaving out a fifth of the shapes at a time, do within a thousandth of the
/// best. The quality on calls not seen is of the whole of this, that choice included, repeated without each network in
/// turn where calls name theirs, else without each fifth of the shapes (all batches, types and layouts of a shape are
/// left out together). Code::invalid where there is nothing to learn from: calls of one shape or network only, or a
/// default order that is as good.
Result<Fitted> fit(std::vector<TunedCall>, const DeviceInfo&, const FitOptions&);

}  // namespace sl
