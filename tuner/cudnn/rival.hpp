// cuDNN at its best on one problem: every choice of its heuristics (or every engine) is planned, verified and timed,
// and the fastest is kept.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "tuner/cudnn/plan.hpp"
#include "tuning/timing.hpp"
#include "tuning/workspace.hpp"

namespace sl::cudnn {

struct RivalOptions {
  std::uint64_t workspace_bytes = 1ULL << 30;  ///< an engine that wants more is not tried
  std::size_t limit = 0;      ///< plans that are made, of the heuristics' choices in their order; 0 = no limit
  bool every_engine = false;  ///< beside what the heuristics name
  int rounds = 7;             ///< timed replays an engine, to choose among them
  int threads = 0;            ///< that look at large outputs; 0 = one a core
};

/// One engine and what became of it.
struct Attempt {
  std::string engine, mode;  ///< as EngineChoice
  std::vector<std::string> notes;
  std::int64_t workspace_bytes = 0;
  double error_over_bound = 0;
  double us = 0;  ///< median while choosing; 0 where it was not timed
  /// "timed", "slow" (abandoned), "plan: ...", "workspace: ...", "launch: ...", "wrong: ...", "not tried: ...", or
  /// "precision: ..." for an fp32 engine that rounds its inputs. Only the first two were timed.
  std::string outcome;
};

/// What cuDNN has for one graph.
struct Chosen {
  Workload work;         ///< the fastest; empty where there is none, and `error` says why
  std::size_t best = 0;  ///< its index in `attempts`
  std::vector<Attempt> attempts;
  std::string error;

  /// The first engine of mode a that ran right: what a runtime takes that times nothing. 0 where there is none.
  double heuristic_us() const;
  /// The fastest that any heuristic mode named; 0 where there is none.
  double best_heuristic_us() const;
};

/// A cuDNN handle on one device. Not thread-safe.
class Rival {
 public:
  /// Code::unsupported where the device is no GPU; else what cudnnCreate says.
  static Result<std::unique_ptr<Rival>> open(Device&, std::shared_ptr<const Library>);
  ~Rival();
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;

  const Library& library() const { return *library_; }
  /// `problem` is the workspace's, or bare() of it. The workload runs on the workspace's tensors (with weights and
  /// cuDNN workspace of its own), and must not outlive the workspace or the rival. Never an Error: a Chosen says what
  /// failed.
  Chosen prepare(const ConvProblem& problem, const ConvProblem& data, Workspace&, Stream, const RivalOptions&);

 private:
  Rival(Device& device, std::shared_ptr<const Library> library) : device_(device), library_(std::move(library)) {
    context_.library = library_.get();
  }

  Device& device_;
  std::shared_ptr<const Library> library_;
  Context context_;
};

}  // namespace sl::cudnn
