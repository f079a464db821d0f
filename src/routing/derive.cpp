#include "routing/derive.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "core/json_reader.hpp"
#include "routing/features.hpp"
#include "routing/left_out.hpp"
#include "routing/routing.hpp"

namespace sl {
namespace {

using Json = nlohmann::ordered_json;

// What shapes the kernel: only values that were measured. Between 3x3 and 5x5 nobody measured 4x4.
constexpr const char* shape_features[] = {"cpg", "multiplier", "r", "s", "stride", "dilation", "bias"};
// Sizes: the range between what was measured.
constexpr const char* size_features[] = {"n", "p", "q", "outputs"};
constexpr const char* name_words[] = {"dtype", "layout"};
constexpr std::size_t shapes = std::size(shape_features), sizes = std::size(size_features),
                      words = std::size(name_words);

/// The values of every feature that occur, so that a set of them is a set of bits.
struct Values {
  std::array<std::vector<double>, shapes> shape;
  std::array<std::vector<std::string>, words> word;

  template <class T>
  static std::uint64_t bit(std::vector<T>& known, const T& value) {
    auto at = std::find(known.begin(), known.end(), value);
    if (at == known.end()) at = known.insert(known.end(), value);
    // Beyond 63 values the last bit stands for all others: rules get narrower words than they could, never wider.
    return std::uint64_t{1} << std::min<std::size_t>(63, static_cast<std::size_t>(at - known.begin()));
  }
};

/// Calls of different kinds share no rule, since different schedules serve them: what holds for one says nothing of
/// another. Grouped by channels a group, depthwise with and without a multiplier, square kernels and bands.
int kind_of(const ConvProblem& v) {
  const int band = v.r == v.s ? 0 : 1;
  if (!v.depthwise()) return static_cast<int>(4 + 2 * std::min<std::int64_t>(v.channels_per_group(), 1 << 20)) + band;
  return (v.multiplier() > 1 ? 2 : 0) + band;
}

struct Point {
  int kind;
  std::array<std::uint64_t, shapes> shape{};
  std::array<double, sizes> size{};
  std::array<std::uint64_t, words> word{};

  Point(const ConvProblem& problem, Values& values) : kind(kind_of(problem)) {
    for (std::size_t i = 0; i < shapes; ++i) {
      shape[i] = Values::bit(values.shape[i], feature_value(problem, shape_features[i]));
    }
    for (std::size_t i = 0; i < sizes; ++i) size[i] = feature_value(problem, size_features[i]);
    for (std::size_t i = 0; i < words; ++i) {
      word[i] = Values::bit(values.word[i], std::string(find_name_feature(name_words[i])->value(problem)));
    }
  }
};

struct Box {
  int kind;
  std::array<std::uint64_t, shapes> shape;
  std::array<std::pair<double, double>, sizes> size;
  std::array<std::uint64_t, words> word;

  explicit Box(const Point& p) : kind(p.kind), shape(p.shape), word(p.word) {
    for (std::size_t i = 0; i < sizes; ++i) size[i] = {p.size[i], p.size[i]};
  }
  void take_in(const Point& p) {
    for (std::size_t i = 0; i < shapes; ++i) shape[i] |= p.shape[i];
    for (std::size_t i = 0; i < sizes; ++i) {
      size[i] = {std::min(size[i].first, p.size[i]), std::max(size[i].second, p.size[i])};
    }
    for (std::size_t i = 0; i < words; ++i) word[i] |= p.word[i];
  }
  bool holds(const Point& p) const {
    for (std::size_t i = 0; i < words; ++i)
      if ((word[i] & p.word[i]) == 0) return false;
    for (std::size_t i = 0; i < shapes; ++i)
      if ((shape[i] & p.shape[i]) == 0) return false;
    for (std::size_t i = 0; i < sizes; ++i)
      if (p.size[i] < size[i].first || p.size[i] > size[i].second) return false;
    return true;
  }
  template <class T>
  static std::set<T> chosen(const std::vector<T>& known, std::uint64_t bits) {
    std::set<T> set;
    for (std::size_t i = 0; i < std::min<std::size_t>(known.size(), 64); ++i)
      if ((bits >> i & 1) != 0) set.insert(known[i]);
    return set;
  }
};

class Deriver {
 public:
  Deriver(std::span<const MeasuredCall> calls, const DeriveOptions& options) : calls_(calls), options_(options) {
    for (const MeasuredCall& call : calls) points_.emplace_back(call.problem, values_);
    for (std::size_t i = 0; i < calls.size(); ++i) (won(i) ? winners_ : losers_).push_back(i);
  }

  std::vector<DerivedRule> run() {
    std::vector<std::size_t> open = winners_;
    std::vector<Box> boxes;
    while (!open.empty()) {
      Box best = grow(open.front(), open);
      std::vector<std::size_t> rest;
      for (const std::size_t i : open)
        if (!best.holds(points_[i])) rest.push_back(i);
      open = std::move(rest);
      boxes.push_back(std::move(best));
    }
    return rules(boxes);
  }

 private:
  double speedup(std::size_t i) const { return calls_[i].baseline_us / calls_[i].time_us; }
  bool won(std::size_t i) const { return speedup(i) >= 1 + options_.margin; }
  bool clean(const Box& box) const {
    return std::none_of(losers_.begin(), losers_.end(), [&](std::size_t i) { return box.holds(points_[i]); });
  }

  /// First over what no rule has yet, then over the rest of what was won: a rule says all that was measured of it.
  Box grow(std::size_t seed, const std::vector<std::size_t>& open) const {
    return widened(widened(Box(points_[seed]), open), winners_);
  }

  Box widened(Box box, const std::vector<std::size_t>& open) const {
    for (;;) {
      std::optional<Box> best;
      std::size_t most = 0;
      for (const std::size_t i : open) {
        if (box.kind != points_[i].kind || box.holds(points_[i])) continue;
        Box wider = box;
        wider.take_in(points_[i]);
        const auto gain = static_cast<std::size_t>(
            std::count_if(open.begin(), open.end(), [&](std::size_t j) { return wider.holds(points_[j]); }));
        if (gain > most && clean(wider)) {
          most = gain;
          best = std::move(wider);
        }
      }
      if (!best) return box;
      box = *std::move(best);
    }
  }

  std::vector<DerivedRule> rules(const std::vector<Box>& boxes) const;

  std::span<const MeasuredCall> calls_;
  DeriveOptions options_;
  Values values_;
  std::vector<Point> points_;
  std::vector<std::size_t> winners_, losers_;
};

Json number(double value) {
  return value == std::floor(value) && std::abs(value) < 9e15 ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

std::string joined(const std::set<double>& values) {
  std::string text;
  for (const double v : values) text += (text.empty() ? "" : ",") + number(v).dump();
  return text;
}

Json when_json(const Box& box, const Values& values) {
  Json when = Json::object();
  for (std::size_t i = 0; i < shapes; ++i) {
    Json& at = when[shape_features[i]] = Json::array();
    for (const double v : Box::chosen(values.shape[i], box.shape[i])) at.push_back(number(v));
  }
  for (std::size_t i = 0; i < sizes; ++i) {
    when[size_features[i]] = {{"min", number(box.size[i].first)}, {"max", number(box.size[i].second)}};
  }
  for (std::size_t i = 0; i < words; ++i) when[name_words[i]] = Box::chosen(values.word[i], box.word[i]);
  return when;
}

/// "depthwise 3,5x3,5 s1,2 f16+f32 nhwc".
std::string name_of(const Box& box, const Values& values) {
  std::array<std::set<double>, shapes> shape;
  for (std::size_t i = 0; i < shapes; ++i) shape[i] = Box::chosen(values.shape[i], box.shape[i]);
  const auto one = [](const std::set<double>& set) { return set.size() == 1 && *set.begin() == 1; };
  std::string text = one(shape[0]) ? "depthwise" : "groups of " + joined(shape[0]);
  if (!one(shape[1])) text += " x" + joined(shape[1]);
  text += " " + joined(shape[2]) + "x" + joined(shape[3]);
  if (!one(shape[4])) text += " stride " + joined(shape[4]);
  if (!one(shape[5])) text += " dilation " + joined(shape[5]);
  if (shape[6].size() == 1) text += *shape[6].begin() == 0 ? " no bias" : " bias";
  for (std::size_t i = 0; i < words; ++i) {
    std::string list;
    for (const std::string& word : Box::chosen(values.word[i], box.word[i])) list += (list.empty() ? "" : "+") + word;
    text += " " + list;
  }
  return text;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<DerivedRule> Deriver::rules(const std::vector<Box>& boxes) const {
  std::vector<DerivedRule> rules;
  for (const Box& box : boxes) {
    DerivedRule rule;
    std::vector<double> speedups;
    for (const std::size_t i : winners_) {
      if (!box.holds(points_[i])) continue;
      rule.cases.push_back(i);
      speedups.push_back(speedup(i));
    }
    if (static_cast<std::int64_t>(rule.cases.size()) < options_.min_cases) continue;
    rule.name = name_of(box, values_);
    rule.when_json = when_json(box, values_).dump();
    rule.min_speedup = *std::min_element(speedups.begin(), speedups.end());
    rule.median_speedup = median(std::move(speedups));
    rules.push_back(std::move(rule));
  }
  std::stable_sort(rules.begin(), rules.end(),
                   [](const DerivedRule& a, const DerivedRule& b) { return a.cases.size() > b.cases.size(); });
  std::map<std::string, int> used;
  for (DerivedRule& rule : rules) {
    const int turn = ++used[rule.name];
    if (turn > 1) rule.name += " (" + std::to_string(turn) + ")";
  }
  return rules;
}

Regret judge(const RoutingTable& table, const DeviceInfo& device, std::span<const MeasuredCall> calls, double noise) {
  Regret regret;
  double over = 0, kept_over = 0, worst = 0;
  for (const MeasuredCall& call : calls) {
    const bool take = table.decide(call.problem, device).take;
    const double best = std::min(call.time_us, call.baseline_us), chosen = take ? call.time_us : call.baseline_us;
    ++regret.calls;
    regret.taken += take ? 1 : 0;
    over += std::log(chosen / best);
    kept_over += std::log(call.baseline_us / best);
    const double loss = call.time_us / call.baseline_us;
    if (!take || loss <= 1 + noise) continue;
    ++regret.slower;
    if (loss <= worst) continue;
    worst = loss;
    char times[96];
    std::snprintf(times, sizeof times, ": %.4g us, the baseline %.4g us", call.time_us, call.baseline_us);
    regret.worst = call.problem.to_string() + times;
  }
  const auto count = static_cast<double>(std::max<std::int64_t>(1, regret.calls));
  regret.over_oracle = std::exp(over / count);
  regret.baseline_over = std::exp(kept_over / count);
  return regret;
}

DeviceInfo any_gpu() {
  DeviceInfo info;
  info.name = "any";
  info.capability = 90;
  return info;
}

Regret judge(std::span<const DerivedRule> rules, std::span<const MeasuredCall> from, std::span<const MeasuredCall> on,
             double noise) {
  const auto table =
      RoutingTable::from_json(derived_table(from, rules, any_gpu(), "baseline", "versions", ""), "derived");
  return table.ok() ? judge(*table, any_gpu(), on, noise) : Regret{};
}

}  // namespace

std::vector<DerivedRule> derive_rules(std::span<const MeasuredCall> calls, const DeriveOptions& options) {
  return Deriver(calls, options).run();
}

std::string derived_table(std::span<const MeasuredCall> calls, std::span<const DerivedRule> rules,
                          const DeviceInfo& device, const std::string& baseline, const std::string& versions,
                          const std::string& note) {
  Json out;
  out["schema"] = 1;
  out["device"] = {{"name", device.name}, {"capability", device.capability}};
  if (!note.empty()) out["note"] = note;
  // What no measured call had: other activations, a residual, narrower alignment, the other weight layout.
  std::set<std::string> activations, layouts;
  double residual = 0, align = 16;
  for (const MeasuredCall& call : calls) {
    activations.insert(std::string(find_name_feature("activation")->value(call.problem)));
    layouts.insert(std::string(find_name_feature("weight_layout")->value(call.problem)));
    residual = std::max(residual, feature_value(call.problem, "residual"));
    align = std::min(align, feature_value(call.problem, "align"));
  }
  out["measured"] = {{"align", {{"min", number(align)}}},
                     {"residual", {{"max", number(residual)}}},
                     {"activation", activations},
                     {"weight_layout", layouts}};
  out["rules"] = Json::array();
  for (const DerivedRule& rule : rules) {
    const auto rounded = [](double v) { return std::floor(v * 1000) / 1000; };
    out["rules"].push_back({{"name", rule.name},
                            {"route", "take"},
                            {"when", Json::parse(rule.when_json)},
                            {"evidence",
                             {{"cases", rule.cases.size()},
                              {"min_speedup", rounded(rule.min_speedup)},
                              {"median_speedup", rounded(rule.median_speedup)},
                              {"baseline", baseline},
                              {"versions", versions}}}});
  }
  return dump_json(out, true);
}

Regret regret_of(std::span<const DerivedRule> rules, std::span<const MeasuredCall> calls, double noise) {
  return judge(rules, calls, calls, noise);
}

LeftOutRegret cross_validate(std::span<const MeasuredCall> calls, const DeriveOptions& options, double noise) {
  std::vector<ConvProblem> problems;
  std::vector<std::vector<std::string>> networks;
  for (const MeasuredCall& call : calls) {
    problems.push_back(call.problem);
    networks.push_back(call.networks);
  }
  const LeftOutGroups left_out = left_out_groups(problems, networks);
  const auto those = [&calls](const std::vector<std::size_t>& indices) {
    std::vector<MeasuredCall> chosen;
    for (const std::size_t i : indices) chosen.push_back(calls[i]);
    return chosen;
  };
  Regret all;
  double over = 0, kept_over = 0;
  for (const auto& [name, indices] : left_out.groups) {
    const std::vector<MeasuredCall> known = those(all_but(calls.size(), indices));
    if (known.empty()) continue;
    const Regret one = judge(derive_rules(known, options), known, those(indices), noise);
    all.calls += one.calls;
    all.taken += one.taken;
    all.slower += one.slower;
    over += std::log(one.over_oracle) * static_cast<double>(one.calls);
    kept_over += std::log(one.baseline_over) * static_cast<double>(one.calls);
    if (all.worst.empty()) all.worst = one.worst;
  }
  const auto count = static_cast<double>(std::max<std::int64_t>(1, all.calls));
  all.over_oracle = std::exp(over / count);
  all.baseline_over = std::exp(kept_over / count);
  return {all, left_out.by, left_out.groups.size()};
}

}  // namespace sl
