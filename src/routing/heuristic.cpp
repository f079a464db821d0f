#include "routing/heuristic.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>

#include "routing/branch_feature.hpp"
#include "routing/device_files.hpp"

namespace sl {
namespace {

double leaf_value(const Tree& tree, const CandidateView& view, bool of_candidate) {
  if (tree.empty()) return 1;
  std::size_t at = 0;
  while (!tree[at].feature.empty()) {
    const TreeNode& node = tree[at];
    const auto feature = BranchFeature::find(node.feature, of_candidate);  // reading and fitting have checked the name
    const bool yes = feature && (feature->words() != nullptr ? feature->words()->value(view.problem) == node.is
                                                             : feature->number(view) <= node.at_most);
    at = yes ? node.yes : node.no;
  }
  return tree[at].value;
}

double rank_in(const CandidateSet& all, const Candidate& candidate) {
  double rank = 0;
  for (const Candidate& other : all.candidates) {
    if (other.schedule != candidate.schedule) continue;
    if (other.config == candidate.config) return rank;
    ++rank;
  }
  return rank;  // another batch of the shape compiled it: nobody's choice here, so behind them all
}

}  // namespace

std::string_view name(Predicts predicts) { return predicts == Predicts::time ? "time" : "winner"; }

Heuristic::Heuristic(std::string origin, const DeviceInfo& device, Predicts predicts,
                     std::vector<ScheduleTrees> schedules)
    : origin_(std::move(origin)),
      device_name_(device.name),
      capability_(device.capability),
      predicts_(predicts),
      schedules_(std::move(schedules)) {}

void Heuristic::describe(HeuristicEvidence evidence, std::string note) {
  evidence_ = std::move(evidence);
  note_ = std::move(note);
}

std::string Heuristic::device_text() const {
  return device_name_ + " (capability " + std::to_string(capability_) + ")";
}

bool Heuristic::matches(const DeviceInfo& device) const {
  return (device.backend == "cuda" || device.backend == "host") && device.name == device_name_ &&
         device.capability == capability_;
}

std::optional<double> Heuristic::predict(const ConvProblem& problem, const DeviceInfo& device,
                                         const Candidate& candidate, double rank) const {
  const auto known = std::find_if(schedules_.begin(), schedules_.end(), [&candidate](const ScheduleTrees& trees) {
    return trees.name == candidate.schedule->name;
  });
  if (known == schedules_.end()) return std::nullopt;
  const CandidateView view{problem, device, candidate, rank};
  return leaf_value(known->schedule, view, false) * leaf_value(known->config, view, true);
}

Ranking ranking(const Heuristic* heuristic, const ConvProblem& problem, const DeviceInfo& device,
                const CandidateSet& some, const CandidateSet& all) {
  Ranking result;
  result.order.resize(some.candidates.size());
  std::iota(result.order.begin(), result.order.end(), std::size_t{0});
  result.predicted.resize(some.candidates.size());
  if (heuristic == nullptr) return result;
  std::vector<double> key(some.candidates.size(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < key.size(); ++i) {
    const Candidate& candidate = some.candidates[i];
    const auto value = heuristic->predict(problem, device, candidate, rank_in(all, candidate));
    if (!value) continue;
    key[i] = *value;
    result.predicted[i] = *value;
  }
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&key](std::size_t a, std::size_t b) { return key[a] < key[b]; });
  return result;
}

Result<HeuristicChoice> find_heuristic(const DeviceInfo& device, const std::string& user_path) {
  try {
    HeuristicChoice choice;
    const DeviceFileKind kind{"heuristic", "SLUICE_HEURISTIC"};
    SL_ASSIGN(auto found, find_user_file<Heuristic>(device, user_path, kind, choice.searched));
    if (!found) {
      SL_ASSIGN(found, find_embedded<Heuristic>(device, embedded_heuristic_json(), choice.searched));
    }
    if (found) {
      choice.heuristic = std::make_shared<const Heuristic>(*std::move(found));
    } else {
      choice.searched.emplace_back("none: the schedules' own order decides");
    }
    return choice;
  } catch (const std::exception& e) {
    return Error{Code::internal, std::string("heuristic not found: ") + e.what()};
  }
}

struct LazyHeuristic::Shipped {
  explicit Shipped(const DeviceInfo& info) : device(info) {}
  const DeviceInfo device;
  std::once_flag read;
  std::shared_ptr<const Heuristic> heuristic;
};

Result<LazyHeuristic> LazyHeuristic::open(const DeviceInfo& device, const std::string& user_path) {
  LazyHeuristic lazy;
  if (user_path.empty()) {
    lazy.shipped_ = std::make_shared<Shipped>(device);
  } else {
    SL_ASSIGN(HeuristicChoice choice, find_heuristic(device, user_path));
    lazy.known_ = std::move(choice.heuristic);
  }
  return lazy;
}

const Heuristic* LazyHeuristic::get() const {
  if (shipped_ == nullptr) return known_.get();
  std::call_once(shipped_->read, [this] {
    // The tests read all that is shipped; if it is broken nevertheless, the schedules' own order serves.
    Result<HeuristicChoice> found = find_heuristic(shipped_->device, {});
    if (found.ok()) shipped_->heuristic = std::move(found->heuristic);
  });
  return shipped_->heuristic.get();
}

}  // namespace sl
