// A heuristic: which candidate a call that was never tuned gets, learned from calls that were. Small trees that people
// can read (docs/tuning.md tells how they are made, docs/file-formats.md the file). Pure functions of values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/digest.hpp"
#include "core/log.hpp"
#include "core/result.hpp"
#include "device/device_info.hpp"
#include "schedules/schedule.hpp"

namespace sl {

/// A branch ("`feature` is at most", or "is") or, with an empty `feature`, a leaf.
struct TreeNode {
  std::string feature;
  double at_most = 0;           ///< of a number
  std::string is;               ///< of a name, instead
  std::size_t yes = 0, no = 0;  ///< places of what follows, behind this one
  double value = 1;             ///< of a leaf
  std::int64_t cases = 0;       ///< of a leaf: what it was learned from
};
/// The root first; empty = has nothing to say.
using Tree = std::vector<TreeNode>;

/// What the value of a candidate means. Smaller is better in either.
enum class Predicts : std::uint8_t {
  time,   ///< its time over the best candidate's: the schedule's tree times the configuration's
  winner  ///< the share of calls that its schedule did not win; the schedule's own order decides among configurations
};
std::string_view name(Predicts);

/// What one schedule's candidates are worth.
struct ScheduleTrees {
  std::string name;
  Digest build;   ///< Schedule::digest() of what was measured; another one now is for lint to say
  Tree schedule;  ///< of problems: its best configuration over the best of all
  Tree config;    ///< of candidates: a configuration over the schedule's best
};

/// How well picking by the model did on calls that it had not seen, beside the schedules' default order.
struct PickQuality {
  std::int64_t calls = 0;
  /// time: geometric mean of the picked candidate's time over the best's; winner: share of calls whose winning schedule
  /// was not picked.
  double picked = 1, default_order = 1;
  double worst = 1, default_worst = 1;  ///< time: the largest of these
};

struct HeuristicEvidence {
  std::int64_t calls = 0;   ///< that the model was made from
  std::string left_out;     ///< what was left out together: "networks" or "shapes"
  std::int64_t groups = 0;  ///< so many of them, one after the other
  PickQuality quality;
  std::string versions;  ///< driver, commit
};

/// Immutable once it is shared.
class Heuristic {
 public:
  static Result<Heuristic> from_json(std::string_view json, std::string_view origin);
  Heuristic(std::string origin, const DeviceInfo&, Predicts, std::vector<ScheduleTrees>);

  std::string to_json() const;
  bool matches(const DeviceInfo&) const;         ///< by name and capability
  std::string device_text() const;               ///< "NVIDIA H200 (capability 90)"
  bool for_any_device() const { return false; }  ///< what is fast on one device says nothing of another
  const std::string& origin() const { return origin_; }
  Predicts predicts() const { return predicts_; }
  const std::vector<ScheduleTrees>& schedules() const { return schedules_; }
  const HeuristicEvidence& evidence() const { return evidence_; }
  /// What to_json() says of where the model comes from.
  void describe(HeuristicEvidence evidence, std::string note);

  /// nullopt where the model does not know the schedule. `rank`: see CandidateView.
  std::optional<double> predict(const ConvProblem&, const DeviceInfo&, const Candidate&, double rank) const;

 private:
  Heuristic() = default;

  std::string origin_, device_name_, note_;
  int capability_ = 0;
  Predicts predicts_ = Predicts::time;
  HeuristicEvidence evidence_;
  std::vector<ScheduleTrees> schedules_;
};

/// The places of `some`'s candidates, best first, with what the model says of each (0 = nothing). Candidates of
/// schedules that it does not know come last; equals stay in their order, and without a model (null) all do. `all`: the
/// candidates of the problem, which `some` may be a part of; ranks are theirs.
struct Ranking {
  std::vector<std::size_t> order;
  std::vector<double> predicted;  ///< by place in `some`, not by order
};
Ranking ranking(const Heuristic*, const ConvProblem&, const DeviceInfo&, const CandidateSet& some,
                const CandidateSet& all);

/// The user's model (a file, or a folder's *.json that matches) over the shipped one; null where there is neither: then
/// the schedules' own order decides. A broken user file is an error. `searched`: every place looked at, with the
/// outcome.
struct HeuristicChoice {
  std::shared_ptr<const Heuristic> heuristic;
  std::vector<std::string> searched;
};
Result<HeuristicChoice> find_heuristic(const DeviceInfo&, const std::string& user_path);

/// A heuristic, or the library's own for a device, read when it is first asked for: where decisions are stored it never
/// is, and reading it would be a good part of the first call. Copies share it. Thread-safe.
class LazyHeuristic {
 public:
  LazyHeuristic(std::shared_ptr<const Heuristic> known = nullptr) : known_(std::move(known)) {}
  /// What find_heuristic() finds. What the user names is read at once, so that its errors are told at once.
  static Result<LazyHeuristic> open(const DeviceInfo&, const std::string& user_path);

  const Heuristic* get() const;  ///< null where there is none

 private:
  struct Shipped;
  std::shared_ptr<const Heuristic> known_;
  std::shared_ptr<Shipped> shipped_;
};

}  // namespace sl
