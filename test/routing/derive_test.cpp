// Rules from measured calls: winners only, no value that nobody measured, and what they cost on calls left out.
#include "routing/derive.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "routing/fixture.hpp"
#include "routing/lint.hpp"

namespace sl::test {
namespace {

MeasuredCall measured(std::int64_t kernel, std::int64_t n, double speedup, const char* rest = "dt=f16 tag=nhwc") {
  const std::string k = std::to_string(kernel), pad = std::to_string(kernel / 2);
  MeasuredCall call;
  call.problem = problem("g64mb" + std::to_string(n) + "ic64ih28oc64oh28kh" + k + "ph" + pad + " " + rest);
  call.time_us = 10;
  call.baseline_us = 10 * speedup;
  return call;
}

RoutingTable table_of(std::span<const MeasuredCall> calls, std::span<const DerivedRule> rules) {
  return table(derived_table(calls, rules, device("h200"), "a baseline", "versions", "a note"));
}

TEST(Derive, OneRuleWhereNothingWasLost) {
  std::vector<MeasuredCall> calls;
  for (const std::int64_t kernel : {3, 5, 7})
    for (const std::int64_t n : {1, 8, 32})
      for (const char* rest : {"dt=f16 tag=nhwc", "dt=f32 tag=nchw", "dt=f16 tag=nchw", "dt=f32 tag=nhwc"})
        calls.push_back(measured(kernel, n, 1.5 + 0.1 * static_cast<double>(n), rest));
  const auto rules = derive_rules(calls, {});
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].cases.size(), calls.size());
  EXPECT_DOUBLE_EQ(rules[0].min_speedup, 1.6);
  const RoutingTable derived = table_of(calls, rules);
  const DeviceInfo h200 = device("h200");
  for (const MeasuredCall& call : calls) EXPECT_TRUE(derived.decide(call.problem, h200).take);
  EXPECT_TRUE(derived.decide(measured(5, 16, 1).problem, h200).take) << "a batch between measured ones";
  EXPECT_FALSE(derived.decide(measured(4, 8, 1).problem, h200).take) << "4x4 was not measured";
  EXPECT_FALSE(derived.decide(measured(5, 64, 1).problem, h200).take) << "beyond the largest batch";
  EXPECT_FALSE(derived.decide(measured(5, 8, 1, "dt=bf16 tag=nhwc").problem, h200).take) << "another type";
  EXPECT_FALSE(derived.decide(measured(5, 8, 1, "dt=f16 tag=nhwc act=relu").problem, h200).take);
  EXPECT_FALSE(derived.decide(measured(5, 8, 1, "dt=f16 tag=nhwc align=8").problem, h200).take);
  EXPECT_TRUE(lint(derived).empty());
}

TEST(Derive, NoLostCallComesInside) {
  std::vector<MeasuredCall> calls;
  for (const std::int64_t kernel : {3, 5, 7, 9})
    for (std::int64_t n = 1; n <= 64; n *= 2)
      calls.push_back(measured(kernel, n, (kernel == 5 && n > 4) || n == 16 ? 0.9 : 1.2));
  calls.push_back(measured(3, 3, 1.02));  // faster, but not by the margin
  const auto rules = derive_rules(calls, {});
  const RoutingTable derived = table_of(calls, rules);
  std::set<std::size_t> covered;
  for (const DerivedRule& rule : rules) covered.insert(rule.cases.begin(), rule.cases.end());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const bool won = calls[i].baseline_us / calls[i].time_us >= 1.05;
    const bool take = derived.decide(calls[i].problem, device("h200")).take;
    EXPECT_FALSE(take && !won) << calls[i].problem.to_string();
    EXPECT_EQ(take, covered.contains(i)) << calls[i].problem.to_string();
  }
  EXPECT_EQ(regret_of(rules, calls, 0.03).slower, 0);
  EXPECT_TRUE(lint(derived).empty());
}

// A rule made for what others left over says all that was measured around it, not only what is new in it.
TEST(Derive, RulesOverlap) {
  std::vector<MeasuredCall> calls;
  for (const std::int64_t kernel : {3, 5}) {
    for (const std::int64_t n : {1, 8, 32}) calls.push_back(measured(kernel, n, 2));
  }
  for (const std::int64_t n : {1, 8}) calls.push_back(measured(5, n, 2, "dt=f32 tag=nhwc"));
  calls.push_back(measured(3, 32, 0.9, "dt=f32 tag=nhwc"));
  const auto rules = derive_rules(calls, {});
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].cases.size(), 6U);
  EXPECT_EQ(rules[1].cases.size(), 6U) << "two of f32, four of f16 beside them";
  const RoutingTable derived = table_of(calls, rules);
  EXPECT_TRUE(derived.decide(measured(3, 4, 1, "dt=f32 tag=nhwc").problem, device("h200")).take);
  EXPECT_FALSE(derived.decide(measured(3, 32, 1, "dt=f32 tag=nhwc").problem, device("h200")).take);
  EXPECT_TRUE(lint(derived).empty());
}

TEST(Derive, KindsShareNoRuleAndFewCasesMakeNone) {
  std::vector<MeasuredCall> calls = {measured(3, 8, 2), measured(3, 16, 2)};
  MeasuredCall grouped = calls[0];
  grouped.problem = problem("g16mb8ic64ih28oc64oh28kh3ph1 dt=f16 tag=nhwc");
  calls.push_back(grouped);
  EXPECT_EQ(derive_rules(calls, {.margin = 0.05, .min_cases = 1}).size(), 2U);
  EXPECT_EQ(derive_rules(calls, {.margin = 0.05, .min_cases = 2}).size(), 1U) << "one grouped call is no evidence";
  EXPECT_TRUE(derive_rules(calls, {.margin = 1.5, .min_cases = 1}).empty());
}

TEST(Derive, TheSameCallsInAnyOrderGiveRulesThatHoldTheSame) {
  std::vector<MeasuredCall> calls;
  for (const std::int64_t kernel : {3, 5, 7})
    for (const std::int64_t n : {1, 2, 4, 8}) calls.push_back(measured(kernel, n, kernel == 7 && n == 2 ? 0.5 : 2));
  const auto once = derive_rules(calls, {});
  EXPECT_EQ(derived_table(calls, once, device("h200"), "b", "v", ""),
            derived_table(calls, derive_rules(calls, {}), device("h200"), "b", "v", ""));
}

TEST(Derive, RegretCountsWhatWasGivenAwayAndWhatWasLost) {
  std::vector<MeasuredCall> calls = {measured(3, 8, 2), measured(3, 16, 2), measured(3, 12, 0.8)};
  const auto rules = derive_rules(std::span(calls).first(2), {});
  ASSERT_EQ(rules.size(), 1U);
  const Regret regret = regret_of(rules, calls, 0.03);
  EXPECT_EQ(regret.calls, 3);
  EXPECT_EQ(regret.taken, 3);
  EXPECT_EQ(regret.slower, 1);
  EXPECT_NEAR(regret.over_oracle, std::cbrt(1 / 0.8), 1e-9);
  EXPECT_NEAR(regret.baseline_over, std::cbrt(4.0), 1e-9);
  EXPECT_NE(regret.worst.find("mb12"), std::string::npos);
}

TEST(Derive, LeftOutShapesAreNotKnown) {
  std::vector<MeasuredCall> calls;
  for (const std::int64_t size : {7, 14, 28, 56, 112})
    for (const std::int64_t n : {1, 8}) {
      MeasuredCall call = measured(3, n, 2);
      call.problem.h = call.problem.w = call.problem.p = call.problem.q = size;
      calls.push_back(call);
    }
  const LeftOutRegret left_out = cross_validate(calls, {}, 0.03);
  EXPECT_EQ(left_out.by, "shapes");
  EXPECT_EQ(left_out.turns, 5U);
  EXPECT_EQ(left_out.regret.calls, 10);
  EXPECT_EQ(left_out.regret.taken, 6) << "the smallest and the largest plane lie outside what the others span";
  EXPECT_EQ(left_out.regret.slower, 0);
}

TEST(Derive, LeftOutNetworksAreNotKnown) {
  std::vector<MeasuredCall> calls;
  for (const std::int64_t size : {7, 14, 28, 56}) {
    MeasuredCall call = measured(3, 8, 2);
    call.problem.h = call.problem.w = call.problem.p = call.problem.q = size;
    call.networks = {size < 20 ? "narrow" : "wide"};
    if (size == 14) call.networks.push_back("wide");
    calls.push_back(call);
  }
  calls.push_back(measured(3, 8, 2));  // of no network
  const LeftOutRegret left_out = cross_validate(calls, {}, 0.03);
  EXPECT_EQ(left_out.by, "networks");
  EXPECT_EQ(left_out.turns, 2U);
  EXPECT_EQ(left_out.regret.calls, 2 + 3) << "a call of two networks is left out twice, one of none never";
  EXPECT_EQ(left_out.regret.taken, 0 + 2) << "without narrow nothing below 28 is known; without wide nothing above";
}

}  // namespace
}  // namespace sl::test
