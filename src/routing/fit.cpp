#include "routing/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "routing/fit_samples.hpp"
#include "routing/left_out.hpp"

namespace sl {
namespace {

using Indices = std::vector<std::size_t>;

constexpr std::size_t sizes[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
// A model must bring more than this over the default order, half a per cent of time or one call in 200; and more
// branches more than this over fewer.
constexpr double least_gain = 0.005, least_gain_of_branches = 0.001;
constexpr double failed_over_best = 10;

/// A call's price under one pick: log(time / best), or 1 where the winner was missed.
struct Price {
  double cost = 0, over_best = 1;
};

Price price_of(const TunedCall& call, std::size_t pick) {
  if (call.time_us.empty()) return {call.set.candidates[pick].schedule == call.winner ? 0.0 : 1.0, 1};
  const double best = best_time(call), time = call.time_us[pick];
  const double over = time > 0 ? time / best : failed_over_best;
  return {std::log(over), over};
}

/// Adds up prices of the model's picks and of the default order's.
class Tally {
 public:
  void add(const TunedCall& call, std::size_t pick) {
    ++calls_;
    picked_.add(price_of(call, pick), call);
    default_.add(price_of(call, 0), call);
  }
  FitQuality quality(Predicts predicts) const {
    const auto count = static_cast<double>(std::max<std::int64_t>(1, calls_));
    const auto mean = [&](double cost) { return predicts == Predicts::time ? std::exp(cost / count) : cost / count; };
    return {{calls_, mean(picked_.cost), mean(default_.cost), picked_.worst, default_.worst},
            picked_.worst_call,
            default_.worst_call};
  }

 private:
  struct Side {
    double cost = 0, worst = 1;
    std::string worst_call;
    void add(const Price& price, const TunedCall& call) {
      cost += price.cost;
      if (price.over_best <= worst) return;
      worst = price.over_best;
      worst_call = call.problem.to_string();
    }
  };
  std::int64_t calls_ = 0;
  Side picked_, default_;
};

class Fitter {
 public:
  Fitter(const std::vector<TunedCall>& calls, const DeviceInfo& device, const FitOptions& options)
      : calls_(calls),
        device_(device),
        options_(options),
        predicts_(calls.front().time_us.empty() ? Predicts::winner : Predicts::time) {}

  Predicts predicts() const { return predicts_; }

  /// How many branches calls that were left out bear out; nullopt: the default order does as well as any.
  std::optional<std::size_t> branches(const Indices& among) const {
    std::vector<ConvProblem> problems;
    for (const std::size_t i : among) problems.push_back(calls_[i].problem);
    if (count_shapes(problems) < 2) return std::nullopt;
    const std::vector<std::size_t> folds = folds_by_shape(problems);
    std::vector<double> cost(std::size(sizes));
    double default_cost = 0;
    std::size_t tried = 0;
    for (std::size_t fold = 0; fold < shape_folds; ++fold) {
      Indices known, left_out;
      for (std::size_t i = 0; i < among.size(); ++i) (folds[i] == fold ? left_out : known).push_back(among[i]);
      if (left_out.empty()) continue;
      const GrownSchedules grown = grow(known);
      for (const std::size_t i : left_out) default_cost += price_of(calls_[i], 0).cost;
      std::size_t place = 0;
      for (const std::size_t size : sizes) {
        if (size > options_.most_branches) break;
        const Heuristic model = grown.model(device_, size);
        for (const std::size_t i : left_out) cost[place] += price_of(calls_[i], pick(model, i)).cost;
        tried = std::max(tried, ++place);
      }
    }
    cost.resize(tried);
    const auto count = static_cast<double>(among.size());
    const double best = *std::min_element(cost.begin(), cost.end());
    if (best + least_gain * count >= default_cost) return std::nullopt;
    const double enough = best + least_gain_of_branches * count;
    const auto fewest = std::find_if(cost.begin(), cost.end(), [&](double one) { return one <= enough; });
    return sizes[fewest - cost.begin()];
  }

  Heuristic model(const Indices& among, std::size_t branches) const { return grow(among).model(device_, branches); }

  void judge(const std::optional<Heuristic>& model, const Indices& on, Tally& tally) const {
    for (const std::size_t i : on) tally.add(calls_[i], model ? pick(*model, i) : 0);
  }

 private:
  GrownSchedules grow(const Indices& among) const {
    std::vector<const TunedCall*> some;
    for (const std::size_t i : among) some.push_back(&calls_[i]);
    return {some, device_, options_.most_branches, options_.least_cases};
  }
  std::size_t pick(const Heuristic& model, std::size_t i) const {
    const TunedCall& call = calls_[i];
    return ranking(&model, call.problem, device_, call.set, call.set).order.front();
  }

  const std::vector<TunedCall>& calls_;
  const DeviceInfo& device_;
  const FitOptions& options_;
  Predicts predicts_;
};

std::string how_good(const PickQuality& quality, Predicts predicts) {
  const auto thousandths = [](double value) {
    const std::string digits = std::to_string(std::llround(1000 * value) % 1000);
    return std::to_string(std::llround(1000 * value) / 1000) + "." + std::string(3 - digits.size(), '0') + digits;
  };
  if (predicts == Predicts::time) return "whose picks take " + thousandths(quality.default_order) + " times the best";
  return "which misses a share of " + thousandths(quality.default_order) + " of the winning schedules";
}

}  // namespace

Result<Fitted> fit(std::vector<TunedCall> calls, const DeviceInfo& device, const FitOptions& options) {
  if (calls.empty()) return Error{Code::invalid, "no call to learn from"};
  std::sort(calls.begin(), calls.end(),
            [](const TunedCall& a, const TunedCall& b) { return a.problem.to_string() < b.problem.to_string(); });
  const Fitter fitter(calls, device, options);
  Indices all = all_but(calls.size(), {});
  std::vector<ConvProblem> problems;
  std::vector<std::vector<std::string>> networks;
  for (const TunedCall& call : calls) {
    problems.push_back(call.problem);
    networks.push_back(call.networks);
  }
  if (count_shapes(problems) < 2) {
    return Error{Code::invalid,
                 "calls of one shape only: what is learned from them cannot be tried on another; tune "
                 "calls of several shapes"};
  }
  const auto [by, groups] = left_out_groups(problems, networks);
  if (groups.size() < 2) {
    return Error{Code::invalid, "the calls are of one network, " + groups.begin()->first +
                                    ": nothing is left when it is left out; name no networks, or more"};
  }
  Tally unseen;
  for (const auto& [name, left_out] : groups) {
    if (options.step) options.step(name, groups.size() + 1);
    const Indices known = all_but(calls.size(), left_out);
    std::optional<Heuristic> model;
    if (const auto branches = fitter.branches(known)) model = fitter.model(known, *branches);
    fitter.judge(model, left_out, unseen);
  }
  if (options.step) options.step("nothing", groups.size() + 1);
  const auto branches = fitter.branches(all);
  const FitQuality left_out = unseen.quality(fitter.predicts());
  if (!branches) {
    return Error{Code::invalid, "nothing learned from " + std::to_string(calls.size()) +
                                    " calls: on shapes left out no model did better than the schedules' own order, " +
                                    how_good(left_out.quality, fitter.predicts()) + "; more calls may tell more"};
  }
  Heuristic model = fitter.model(all, *branches);
  Tally own;
  fitter.judge(model, all, own);
  return Fitted{std::move(model), *branches, own.quality(fitter.predicts()),
                left_out,         by,        static_cast<std::int64_t>(groups.size())};
}

}  // namespace sl
