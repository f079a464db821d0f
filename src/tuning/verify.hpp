// Is a candidate's output right? Nothing is timed before the answer is yes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "device/device.hpp"
#include "reference/reference.hpp"
#include "tuning/compare.hpp"
#include "tuning/timing.hpp"
#include "tuning/workspace.hpp"

namespace sl {

/// A loaded candidate, ready to launch on a workspace.
struct Launchable {
  std::shared_ptr<const Kernel> kernel;
  Geometry geometry;
  SlParams params{};  ///< all but the pointers
  Arithmetic arithmetic = Arithmetic::fma;
};

struct VerifyOptions {
  std::int64_t outputs = 20000;  ///< checked against the double reference, spread over the tensor
  int threads = 1;               ///< for looking at every output
};

/// Verifies candidates of one problem in set 0 of its workspace. The first that passes becomes the base that the others
/// are compared with. Not thread-safe.
class Verifier {
 public:
  Verifier(Device&, Stream, Workspace&, const ConvProblem&, const VerifyOptions&);

  /// Runs the candidate once on a poisoned, fenced output. Then, in order: the launch succeeded; the redzones stand; no
  /// output is NaN (the data is finite, so a NaN is poison that was never overwritten, or a fault); a sample is within
  /// the bound of the double reference; every output is within both bounds of the base's.
  /// Yields error over bound, or an error whose message is the candidate's outcome ("launch: ...", "wrong: ...").
  Result<double> verify(const Launchable&);
  /// The same of anything that computes y of set 0: another library, say.
  Result<double> verify(const Workload&, Arithmetic);

  /// Runs it twice more: verifies, and demands that the two runs are equal bit for bit (a race may pass once).
  Status verify_repeats(const Launchable&);

 private:
  Workload launch(const Launchable&) const;
  Status run(const Workload&, std::vector<std::byte>& y);
  Status check_finite() const;
  Status compare_with_base(Arithmetic) const;

  Device& device_;
  Stream stream_;
  Workspace& workspace_;
  const ConvProblem& problem_;
  VerifyOptions options_;
  OutputBound bound_;
  std::vector<std::byte> y_, base_;
  Arithmetic base_arithmetic_ = Arithmetic::fma;
};

}  // namespace sl
