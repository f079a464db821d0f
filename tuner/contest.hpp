// One problem's data on the device, and everything that is timed on it in one interleaved rotation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dispatch/dispatcher.hpp"
#include "tuner/measure.hpp"
#include "tuner/probes.hpp"
#include "tuner/session.hpp"
#include "tuning/timing.hpp"
#include "tuning/workspace.hpp"

namespace sl::tool {

/// Owns a stream and the scratch. Session and everything that is added must outlive it. Not thread-safe.
class Contest {
 public:
  /// The scratch is SLUICE_TUNE_SCRATCH_MB, or what the problem itself needs where that is more.
  static Result<std::unique_ptr<Contest>> open(Session&, const ConvProblem&, const MeasureOptions&);

  Workspace& workspace() { return *workspace_; }
  Stream stream() const { return stream_.stream; }
  const ConvProblem& problem() const { return problem_; }

  /// Runs the plan once on a poisoned, fenced output and compares with the double reference. A wrong output is not an
  /// error: Measurement::wrong counts it.
  Status check(const Plan&, Measurement&);

  void add(std::string name, Workload);
  void add_plan(std::string name, const Plan&);
  /// "copy", by the driver, and "copy_kernel" where there is a compiler.
  void add_copies();

  /// Times all of them; a contender that fails has Samples::error and harms no other.
  void run(int rounds);
  const Samples* find(const std::string& name) const;  ///< null where nothing of that name was timed
  /// The faster of the two copies; null before run() and where neither could be timed.
  const Samples* copy() const;

 private:
  Contest(Session& session, const ConvProblem& problem, const MeasureOptions& options, Stream stream)
      : session_(session), problem_(problem), options_(options), stream_{*session.device, stream} {}

  Session& session_;
  ConvProblem problem_;
  MeasureOptions options_;
  StreamOwner stream_;
  std::unique_ptr<Workspace> workspace_;
  std::optional<CopyKernel> copier_;
  std::vector<std::string> names_;
  std::vector<Workload> work_;
  std::vector<Samples> samples_;
};

}  // namespace sl::tool
