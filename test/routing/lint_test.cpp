// Every finding of lint(), and that what is right has none.
#include "routing/lint.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "routing/decisions.hpp"

namespace sl::test {
namespace {

std::string text(const std::vector<Finding>& findings) {
  std::string all;
  for (const Finding& f : findings) all += (f.error ? "error " : "look ") + f.where + ": " + f.what + "\n";
  return all;
}

std::string lint_rules(const std::string& rules, const std::string& more = "") {
  const auto table = RoutingTable::from_json(h200_table(rules, more), "test");
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.error().message);
  return table.ok() ? text(lint(*table)) : "";
}

std::string keep(const char* name, const char* when) { return rule_json(name, "keep", when); }

TEST(LintRouting, RulesThatCanNeverMatch) {
  const std::string wide = keep("wide", R"("n": {"max": 64}, "dtype": ["f16", "bf16"])");
  EXPECT_EQ(lint_rules(wide + "," + keep("other", R"("n": {"max": 64}, "dtype": ["f32"])")), "");
  EXPECT_EQ(lint_rules(wide + "," + keep("inside", R"("n": {"min": 2, "max": 8}, "dtype": ["f16"], "r": {"min": 3})")),
            "error rule \"inside\": can never match: rule \"wide\" before it has all its calls\n");
  EXPECT_EQ(lint_rules(keep("free", "") + "," + wide),
            "error rule \"wide\": can never match: rule \"free\" before it has all its calls\n");
  EXPECT_EQ(lint_rules(wide, R"("measured": {"n": {"min": 100}}, )"),
            "error rule \"wide\": can never match: outside the table's measured range\n");
}

TEST(LintRouting, OverlapsThatAnswerDifferentlyAreWorthALook) {
  const std::string take = rule_json("take", "take", R"("n": {"min": 8, "max": 64})");
  EXPECT_EQ(lint_rules(keep("small", R"("n": {"max": 8})") + "," + take),
            "look rule \"take\": overlaps rule \"small\", which answers differently: the order decides\n");
  EXPECT_EQ(lint_rules(keep("small", R"("n": {"max": 7})") + "," + take), "");
  EXPECT_EQ(lint_rules(rule_json("also", "take", R"("n": {"max": 8})") + "," + take), "") << "the same answer";
}

TEST(LintRouting, EvidenceMustSupportTaking) {
  const auto with = [](const char* evidence) {
    return std::string(R"({"name": "t", "route": "take", "when": {}, "evidence": )") + evidence + "}";
  };
  EXPECT_EQ(
      lint_rules(with(R"({"cases": 3, "min_speedup": 1.1, "median_speedup": 2, "baseline": "b", "versions": "v"})")),
      "");
  EXPECT_EQ(
      lint_rules(with(R"({"cases": 3, "min_speedup": 0.9, "median_speedup": 2, "baseline": "b", "versions": "v"})")),
      "error rule \"t\": min_speedup = 0.9: takes a call that was measured as slower\n");
}

TEST(LintRouting, ShippedTablesHaveNoErrors) {
  for (const char* stem : {"h200", "a100", "mi300x"}) {
    const auto choice = find_routing_table(device(stem), "", Log());
    ASSERT_TRUE(choice.ok());
    for (const Finding& f : lint(*choice->table)) EXPECT_FALSE(f.error) << stem << ": " << f.where << ": " << f.what;
  }
}

TEST(LintDecisions, WinnersThatNoLongerApply) {
  const DeviceInfo h200 = device("h200");
  Decision good = decided(dw3(), h200, set_of(dw3(), h200));
  CandidateRecord timed;
  timed.outcome = "timed";
  good.candidates = {timed};
  const auto changed = [&](auto change) {
    Decision d = good;
    change(d);
    return text(lint({d}, h200));
  };
  EXPECT_EQ(text(lint({good}, h200)), "");
  const auto has = [](const std::string& found, const char* part) {
    EXPECT_NE(found.find(part), std::string::npos) << part << "\n" << found;
  };
  has(changed([](Decision& d) { d.schedule = "gone"; }), "schedule gone does not exist");
  has(changed([](Decision& d) { d.schedule_digest = Digest{}; }), "another build");
  has(changed([](Decision& d) { d.problem = grouped4().to_string(); }), "cannot run it");
  has(changed([](Decision& d) { d.config = "sides=7"; }), "sides");
  has(changed([](Decision& d) { d.config = "?"; }), "knob=value");
  has(changed([](Decision& d) { d.candidates.clear(); }), "look decision 0");
  has(changed([](Decision& d) { d.partial = true; }), "only a few candidates");
  EXPECT_EQ(changed([](Decision& d) { d.schedule.clear(); }), "") << "kept: nothing to replay";
}

TEST(LintDecisions, EveryRowOfAFileCounts) {
  const DeviceInfo h200 = device("h200");
  ConvProblem other = dw3();
  other.n = 31;  // one batch bucket with 32, so one row for the library; two here
  const std::string json = DecisionTable::to_json(
      h200, {decided(dw3(), h200, set_of(dw3(), h200)), decided(other, h200, set_of(other, h200))});
  const auto list = read_decisions(json, "test");
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->decisions.size(), 2U);
  EXPECT_EQ(list->device.name, h200.name);
  EXPECT_FALSE(read_decisions("{}", "test").ok());
}

TEST(LintSanitized, WhatIsNotListedAndWhatIsNobodys) {
  std::string passed;
  for (const Schedule* schedule : all_schedules()) {
    passed += (passed.empty() ? "" : ", ") + (R"({"schedule": ")" + std::string(schedule->name)) + R"(", "digest": ")" +
              schedule->digest().hex() + "\"}";
  }
  const auto lint_list = [](const std::string& builds) {
    const auto list = Sanitized::from_json(
        R"({"schema": 1, "runs": [{"gpu": "G", "driver": "1", "compiler": "c", "commit": "abc",
            "tools": ["memcheck", "racecheck", "initcheck"], "passed": [)" +
            builds + "]}]}",
        "list.json");
    EXPECT_TRUE(list.ok()) << (list.ok() ? "" : list.error().message);
    return list.ok() ? text(lint(*list)) : "";
  };
  EXPECT_EQ(lint_list(passed), "");
  const std::string zeros(32, '0');
  EXPECT_EQ(lint_list(passed + R"(, {"schedule": "gone", "digest": ")" + zeros + R"("}, {"schedule": "dw_flat",
                                  "digest": ")" +
                      zeros + "\"}"),
            "look run of abc: gone " + zeros + ": no schedule has this name; the entry can go\n" +
                "look run of abc: dw_flat " + zeros + ": another build than this program's; the entry can go\n");
  const std::string none = lint_list("");
  EXPECT_EQ(std::count(none.begin(), none.end(), '\n'), static_cast<std::ptrdiff_t>(all_schedules().size()));
  EXPECT_NE(none.find("look schedule dw_flat: build " + find_schedule("dw_flat")->digest().hex()), std::string::npos);
}

}  // namespace
}  // namespace sl::test
