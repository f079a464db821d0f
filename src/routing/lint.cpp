#include "routing/lint.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "routing/decision_json.hpp"
#include "routing/decision_store.hpp"
#include "routing/features.hpp"

namespace sl {
namespace {

/// The problems that meet all of some conditions: a range of each number, a set of each name; what is not there is
/// free.
struct Box {
  /// Numbers from min to max, and of these only `values` where there are any.
  struct Range {
    double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
    std::set<double> values;

    bool empty() const { return min > max; }
    bool holds(const Range& other) const {
      if (values.empty()) return other.min >= min && other.max <= max;
      return !other.values.empty() &&
             std::includes(values.begin(), values.end(), other.values.begin(), other.values.end());
    }
    bool meets(const Range& other) const {
      if (other.min > max || other.max < min) return false;
      const auto among = [](const Range& range, double v) {
        return v >= range.min && v <= range.max && (range.values.empty() || range.values.contains(v));
      };
      if (!values.empty()) return std::any_of(values.begin(), values.end(), [&](double v) { return among(other, v); });
      if (other.values.empty()) return true;
      return std::any_of(other.values.begin(), other.values.end(), [&](double v) { return among(*this, v); });
    }
  };
  std::map<std::string, Range> numbers;
  std::map<std::string, std::set<std::string>> names;

  explicit Box(const std::vector<Threshold>& conditions) {
    for (const Threshold& t : conditions) {
      if (find_number_feature(t.feature) != nullptr) {
        Range& range = numbers[t.feature];
        range.min = std::max(range.min, t.min.value_or(range.min));
        range.max = std::min(range.max, t.max.value_or(range.max));
        if (!t.values.empty()) {
          range.values.insert(t.values.begin(), t.values.end());
          range.min = *range.values.begin();
          range.max = *range.values.rbegin();
        }
      } else {
        names[t.feature].insert(t.any_of.begin(), t.any_of.end());
      }
    }
  }

  Range range(const std::string& feature) const {
    const auto at = numbers.find(feature);
    return at == numbers.end() ? Range{} : at->second;
  }

  /// The feature that leaves nothing; empty where something is left.
  std::string empty() const {
    for (const auto& [feature, range] : numbers)
      if (range.empty()) return feature;
    for (const auto& [feature, words] : names)
      if (words.empty()) return feature;
    return {};
  }

  bool holds(const Box& other) const {
    for (const auto& [feature, mine] : numbers) {
      if (!mine.holds(other.range(feature))) return false;
    }
    for (const auto& [feature, mine] : names) {
      const auto theirs = other.names.find(feature);
      if (theirs == other.names.end() ||
          !std::includes(mine.begin(), mine.end(), theirs->second.begin(), theirs->second.end()))
        return false;
    }
    return true;
  }

  bool meets(const Box& other) const {
    for (const auto& [feature, mine] : numbers) {
      if (!mine.meets(other.range(feature))) return false;
    }
    for (const auto& [feature, mine] : names) {
      const auto theirs = other.names.find(feature);
      if (theirs == other.names.end()) continue;
      const auto& words = theirs->second;
      if (std::none_of(mine.begin(), mine.end(), [&words](const std::string& word) { return words.contains(word); }))
        return false;
    }
    return true;
  }
};

std::string quoted(const Rule& rule) { return "rule \"" + rule.name + "\""; }

/// That there is evidence at all, and that it is consistent, the reader has seen to.
void lint_evidence(const Rule& rule, std::vector<Finding>& findings) {
  if (!rule.take || !rule.evidence || rule.evidence->min_speedup >= 1) return;
  findings.push_back(
      {true, quoted(rule),
       "min_speedup = " + json_real(rule.evidence->min_speedup).dump() + ": takes a call that was measured as slower"});
}

}  // namespace

std::vector<Finding> lint(const RoutingTable& table) {
  std::vector<Finding> findings;
  const Box measured(table.measured());
  if (const std::string feature = measured.empty(); !feature.empty()) {
    findings.push_back({true, "measured", feature + ": nothing meets this condition"});
  }
  std::vector<Box> boxes;
  std::set<std::string> seen;
  const std::vector<Rule>& rules = table.rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    boxes.emplace_back(rule.when);
    const Box& box = boxes.back();
    if (!seen.insert(rule.name).second) findings.push_back({true, quoted(rule), "the name stands twice"});
    lint_evidence(rule, findings);
    if (const std::string feature = box.empty(); !feature.empty()) {
      findings.push_back({true, quoted(rule), "can never match: nothing meets its condition on " + feature});
      continue;
    }
    if (!measured.meets(box)) {
      findings.push_back({true, quoted(rule), "can never match: outside the table's measured range"});
      continue;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (boxes[j].holds(box)) {
        findings.push_back(
            {true, quoted(rule), "can never match: " + quoted(rules[j]) + " before it has all its calls"});
        break;
      }
      if (boxes[j].meets(box) && (rules[j].take != rule.take || rules[j].schedules != rule.schedules)) {
        findings.push_back(
            {false, quoted(rule), "overlaps " + quoted(rules[j]) + ", which answers differently: the order decides"});
      }
    }
  }
  return findings;
}

std::vector<Finding> lint(const std::vector<Decision>& decisions, const DeviceInfo& device) {
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Decision& d = decisions[i];
    const auto say = [&](bool error, std::string what) {
      findings.push_back({error, "decision " + std::to_string(i) + " (" + d.problem + ")", std::move(what)});
    };
    if (d.schedule.empty()) continue;  // kept: nothing to replay
    const Result<ConvProblem> problem = parse(d.problem);
    const Schedule* const schedule = find_schedule(d.schedule);
    const std::optional<Config> config = Config::parse(d.config);
    if (!problem.ok()) {
      say(true, problem.error().message);
    } else if (schedule == nullptr) {
      say(true, "schedule " + d.schedule + " does not exist");
    } else if (schedule->digest() != d.schedule_digest) {
      say(true, "tuned with another build of " + d.schedule + ": tune it again");
    } else if (const Refusal refusal = schedule->can_run(*problem, device)) {
      say(true, d.schedule + " cannot run it: " + *refusal);
    } else if (!config) {
      say(true, "config \"" + d.config + "\": must be \"knob=value,...\"");
    } else if (const Refusal unfit = schedule->fits(*problem, *config)) {
      say(true, d.schedule + " " + d.config + ": " + *unfit);
    } else if (std::none_of(d.candidates.begin(), d.candidates.end(),
                            [](const CandidateRecord& c) { return c.outcome == "timed"; })) {
      say(false, "no candidate was timed");
    } else if (d.partial) {
      say(false, "the budget let tuning time only a few candidates");
    }
  }
  return findings;
}

Result<DecisionList> read_decisions(std::string_view text, std::string_view origin) {
  SL_ASSIGN(const DecisionTable checked, DecisionTable::from_json(text, origin));
  (void)checked;  // it says what is wrong with the file; here every row counts
  SL_ASSIGN(const nlohmann::json document, parse_json(text, origin));
  DecisionList list;
  SL_ASSIGN(list.device, parse_device_info(document.at("device").dump(), origin));
  SL_ASSIGN(const auto rows, JsonView(document.at("decisions"), origin, "$.decisions").items());
  for (const JsonView& row : rows) {
    SL_ASSIGN(Decision decision, decision_from(row));
    list.decisions.push_back(std::move(decision));
  }
  return list;
}

}  // namespace sl
