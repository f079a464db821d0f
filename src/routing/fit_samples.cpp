#include "routing/fit_samples.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "routing/branch_feature.hpp"

namespace sl {
namespace {

/// What is three times slower than the best is not to be picked, and how much worse it is does not matter (the tuner
/// gives up on it there): without this bound the slowest candidates would take most branches. A failed candidate counts
/// as such.
const double most_log = std::log(3.0);

/// Geometric mean of times over the best, to the nearest thousandth.
double ratio(double mean, std::int64_t) { return std::round(1000 * std::exp(mean)) / 1000; }

/// Share of calls lost; a few calls are not taken for certainty.
double share(double mean, std::int64_t cases) {
  const auto count = static_cast<double>(cases);
  return std::round(1000 * (mean * count + 0.5) / (count + 1)) / 1000;
}

double log_over(double time, double best) { return time > 0 ? std::min(most_log, std::log(time / best)) : most_log; }

/// Fills columns row by row; what never changes is no column.
class Table {
 public:
  explicit Table(bool of_candidates) : of_candidates_(of_candidates) {}

  void add(const CandidateView& view, double target, double weight) {
    for (const NumberFeature& feature : number_features()) put(feature.name, "", feature.value(view.problem));
    for (const NameFeature& feature : name_features())
      words_[std::string(feature.name)].push_back(feature.value(view.problem));
    if (of_candidates_) add_candidate(view);
    out_.target.push_back(target);
    out_.weight.push_back(weight);
  }

  TreeSamples done() && {
    for (const auto& [feature, words] : words_) {
      for (const std::string_view word : std::set<std::string_view>(words.begin(), words.end())) {
        for (const std::string_view one : words) put(feature, word, one == word ? 1 : 0);
      }
    }
    std::erase_if(out_.columns, [this](const TreeColumn& column) {
      const auto& values = column.values;
      return values.size() < out_.target.size() ||
             std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
    });
    return std::move(out_);
  }

 private:
  void add_candidate(const CandidateView& view) {
    for (const CandidateFeature& feature : candidate_features()) put(feature.name, "", feature.value(view));
    for (const auto& [knob, value] : view.candidate.config.knobs) put("knob." + knob, "", value);
  }

  void put(std::string_view feature, std::string_view word, double value) {
    const auto [at, fresh] = places_.try_emplace({std::string(feature), std::string(word)}, out_.columns.size());
    if (fresh) out_.columns.push_back({std::string(feature), std::string(word), {}});
    out_.columns[at->second].values.push_back(value);
  }

  bool of_candidates_;
  TreeSamples out_;
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  std::map<std::string, std::vector<std::string_view>> words_;
};

/// A schedule's part of one call.
struct Part {
  std::vector<std::size_t> candidates;  // in the schedule's order
  double best = 0;                      // of these, 0 = all failed
};

Part part_of(const TunedCall& call, const Schedule* schedule) {
  Part part;
  for (std::size_t i = 0; i < call.set.candidates.size(); ++i) {
    if (call.set.candidates[i].schedule != schedule) continue;
    part.candidates.push_back(i);
    const double time = call.time_us.empty() ? 0 : call.time_us[i];
    if (time > 0 && (part.best == 0 || time < part.best)) part.best = time;
  }
  return part;
}

void add_call(const TunedCall& call, const DeviceInfo& device, const Schedule* schedule, Table& problems,
              Table& configs, bool& choice) {
  const Part part = part_of(call, schedule);
  if (part.candidates.empty()) return;
  const auto view = [&](std::size_t rank) {
    return CandidateView{call.problem, device, call.set.candidates[part.candidates[rank]], static_cast<double>(rank)};
  };
  if (call.time_us.empty()) {
    problems.add(view(0), call.winner == schedule ? 0 : 1, 1);
    return;
  }
  problems.add(view(0), log_over(part.best, best_time(call)), 1);
  if (part.best == 0 || part.candidates.size() < 2) return;
  choice = true;
  // All configurations together weigh as much as the call does in the other tree.
  const double weight = 1 / static_cast<double>(part.candidates.size());
  for (std::size_t rank = 0; rank < part.candidates.size(); ++rank) {
    configs.add(view(rank), log_over(call.time_us[part.candidates[rank]], part.best), weight);
  }
}

}  // namespace

double best_time(const TunedCall& call) {
  double best = 0;
  for (const double time : call.time_us) {
    if (time > 0 && (best == 0 || time < best)) best = time;
  }
  return best;
}

GrownSchedules::GrownSchedules(const std::vector<const TunedCall*>& calls, const DeviceInfo& device,
                               std::size_t branches, std::size_t least)
    : predicts_(calls.front()->time_us.empty() ? Predicts::winner : Predicts::time),
      grove_(
          [&]() -> const std::vector<TreeSamples>& {
            for (const Schedule* schedule : all_schedules()) {
              Table problems(false), configs(true);
              bool choice = false;
              for (const TunedCall* call : calls) add_call(*call, device, schedule, problems, configs, choice);
              TreeSamples of_problems = std::move(problems).done();
              if (of_problems.target.empty()) continue;
              Places places{schedule, samples_.size(), std::nullopt};
              samples_.push_back(std::move(of_problems));
              if (choice) {
                places.configs = samples_.size();
                samples_.push_back(std::move(configs).done());
              }
              places_.push_back(places);
            }
            return samples_;
          }(),
          branches, least) {}

Heuristic GrownSchedules::model(const DeviceInfo& device, std::size_t branches) const {
  std::vector<ScheduleTrees> schedules;
  for (const Places& places : places_) {
    ScheduleTrees trees;
    trees.name = places.schedule->name;
    trees.build = places.schedule->digest();
    trees.schedule = grove_.tree(places.problems, branches, predicts_ == Predicts::time ? ratio : share);
    if (places.configs) trees.config = grove_.tree(*places.configs, branches, ratio);
    schedules.push_back(std::move(trees));
  }
  return {"fitted", device, predicts_, std::move(schedules)};
}

}  // namespace sl
