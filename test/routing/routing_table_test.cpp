#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "routing/features.hpp"
#include "routing/fixture.hpp"
#include "support/generators.hpp"

namespace sl::test {
namespace {

const std::string first_rule = rule_json("small kernels", "keep", R"("kernel_area": {"max": 4})");
const std::string take_rule = rule_json(
    "half nhwc 3x3", "take",
    R"("depthwise": {"min": 1}, "kernel_area": {"min": 9, "max": 9}, "n": {"min": 1, "max": 64}, "dtype": ["f16", "bf16"], "layout": ["nhwc"])",
    R"(, "schedules": ["dw_row8", "dw_flat"])");
const std::string keep_rule = rule_json("other 3x3", "keep", R"("kernel_area": {"min": 9, "max": 9})");
const std::string measured = R"("measured": {"n": {"max": 128}}, )";

TEST(RoutingTable, EveryRoute) {
  const RoutingTable h200 = table(h200_table(first_rule + "," + take_rule + "," + keep_rule, measured));
  struct Row {
    const char* problem;
    bool take;
    const char *rule, *reason;
  };
  const Row rows[] = {
      {"g144mb32ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc", true, "half nhwc 3x3", ""},
      {"g144mb64ic144ih56oc144oh56kh3ph1 dt=bf16 tag=nhwc", true, "half nhwc 3x3", ""},
      {"g144mb65ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc", false, "other 3x3", ""},
      {"g144mb32ic144ih56oc144oh56kh3ph1 dt=f32 tag=nhwc", false, "other 3x3", ""},
      {"g144mb32ic144ih56oc144oh56kh3ph1 dt=f16 tag=nchw", false, "other 3x3", ""},
      {"g32mb32ic128ih56oc128oh56kh3ph1 dt=f16 tag=nhwc", false, "other 3x3", ""},
      {"g144mb32ic144ih56oc144oh56kh1ph0 dt=f16 tag=nhwc", false, "small kernels", ""},
      {"g144mb32ic144ih56oc144oh56kh5ph2 dt=f16 tag=nhwc", false, "default: keep", "no rule"},
      {"g144mb129ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc", false, "outside the measured range: keep",
       "n is 129, not in [-inf, 128]"},
  };
  for (const Row& row : rows) {
    const Route route = h200.decide(problem(row.problem), device("h200"));
    EXPECT_EQ(route.take, row.take) << row.problem;
    EXPECT_EQ(route.rule, row.rule) << row.problem;
    EXPECT_NE(route.reason.find(row.reason), std::string::npos) << route.reason;
    EXPECT_EQ(route.table, "test.json");
    EXPECT_EQ(route.schedules.size(), row.take ? 2U : 0U);
  }
  const Route taken = h200.decide(dw3(), device("h200"));
  EXPECT_EQ(taken.schedules, (std::vector<std::string>{"dw_row8", "dw_flat"}));
}

TEST(RoutingTable, ForAnotherDeviceKeeps) {
  const RoutingTable h200 = table(h200_table(take_rule));
  for (const char* other : {"h100", "a100", "mi300x"}) {
    EXPECT_FALSE(h200.matches(device(other)));
    const Route route = h200.decide(dw3(), device(other));
    EXPECT_FALSE(route.take);
    EXPECT_NE(route.reason.find("NVIDIA H200"), std::string::npos);
    EXPECT_NE(route.reason.find(device(other).name), std::string::npos);
  }
  DeviceInfo newer = device("h200");
  newer.capability = 91;
  EXPECT_FALSE(h200.matches(newer)) << "same name, other capability";
}

TEST(RoutingTable, TakeEverything) {
  const RoutingTable all = RoutingTable::take_everything("forced");
  for (const char* stem : {"h200", "mi300x"}) {
    const Route route = all.decide(grouped4(), device(stem));
    EXPECT_TRUE(route.take);
    EXPECT_EQ(route.table, "forced");
    EXPECT_TRUE(route.schedules.empty());
  }
}

TEST(RoutingTable, RoundTrips) {
  const std::string with_note = rule_json("b", "take", R"("bytes": {"min": 0.5})", R"(, "note": "why")");
  for (const std::string& json :
       {h200_table(first_rule + "," + take_rule + "," + keep_rule, measured + R"("note": "of the table", )"),
        h200_table(with_note), h200_table(""), RoutingTable::take_everything("x").to_json()}) {
    const RoutingTable once = table(json);
    const RoutingTable twice = table(once.to_json());
    EXPECT_EQ(once.to_json(), twice.to_json());
    EXPECT_EQ(once.rules().size(), twice.rules().size());
    EXPECT_EQ(once.device_text(), twice.device_text());
  }
  EXPECT_NE(table(h200_table(with_note)).to_json().find("\"note\": \"why\""), std::string::npos);
}

// ---- properties ----

rc::Gen<Threshold> number_threshold() {
  return rc::gen::exec([] {
    const auto names = number_features();
    Threshold threshold;
    threshold.feature = names[*rc::gen::inRange<std::size_t>(0, names.size())].name;
    const auto low = *rc::gen::inRange(0, 20), high = low + *rc::gen::inRange(0, 200);
    const int kind = *rc::gen::inRange(0, 3);
    if (kind != 1) threshold.min = low;
    if (kind != 0) threshold.max = high;
    return threshold;
  });
}

std::string json_of(const Threshold& threshold) {
  std::string text;
  if (threshold.min) text += "\"min\": " + std::to_string(*threshold.min);
  if (threshold.max) text += (text.empty() ? "" : ", ") + std::string("\"max\": ") + std::to_string(*threshold.max);
  return "\"" + threshold.feature + "\": {" + text + "}";
}

RC_GTEST_PROP(RoutingTableProperty, FirstMatchWinsAndDecidingIsPure, (const ConvProblem& call)) {
  const auto count = *rc::gen::inRange(0, 6);
  std::vector<Threshold> thresholds;
  std::string rules;
  for (int i = 0; i < count; ++i) {
    thresholds.push_back(*number_threshold());
    rules += (i > 0 ? "," : "") +
             rule_json("rule " + std::to_string(i), i % 2 == 0 ? "take" : "keep", json_of(thresholds.back()));
  }
  const RoutingTable rows = table(h200_table(rules));
  const DeviceInfo h200 = device("h200");

  // The specification, written once more without the library's matching.
  std::string want = "default: keep";
  bool take = false;
  for (int i = 0; i < count; ++i) {
    const Threshold& threshold = thresholds[static_cast<std::size_t>(i)];
    const double value = feature_value(call, threshold.feature);
    if (threshold.min && value < *threshold.min) continue;
    if (threshold.max && value > *threshold.max) continue;
    want = "rule " + std::to_string(i);
    take = i % 2 == 0;
    break;
  }
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Route route = rows.decide(call, h200);
    RC_ASSERT(route.rule == want);
    RC_ASSERT(route.take == take);
    RC_ASSERT(route.reason.empty() == (want != "default: keep"));
  }
}

TEST(Features, Values) {
  const ConvProblem call = problem("g4mb3ic8ih20iw30oc16kh3kw5sh2sw1ph1pw2 dt=bf16 tag=nchw bias=same");
  ASSERT_EQ(call.p, 10);
  ASSERT_EQ(call.q, 30);
  const std::pair<const char*, double> rows[] = {{"cpg", 2},
                                                 {"multiplier", 4},
                                                 {"depthwise", 0},
                                                 {"groups", 4},
                                                 {"kernel_area", 15},
                                                 {"r", 3},
                                                 {"s", 5},
                                                 {"stride", 2},
                                                 {"dilation", 1},
                                                 {"n", 3},
                                                 {"c", 8},
                                                 {"k", 16},
                                                 {"h", 20},
                                                 {"w", 30},
                                                 {"p", 10},
                                                 {"q", 30},
                                                 {"plane", 300},
                                                 {"outputs", 3 * 16 * 300},
                                                 {"align", 16},
                                                 {"bias", 1},
                                                 {"residual", 0},
                                                 {"wide_offsets", 0},
                                                 {"macs", static_cast<double>(call.macs())},
                                                 {"bytes", static_cast<double>(call.min_bytes())}};
  EXPECT_EQ(std::size(rows), number_features().size()) << "a feature without a row here";
  for (const auto& [feature, value] : rows) EXPECT_EQ(feature_value(call, feature), value) << feature;
  EXPECT_TRUE(std::isnan(feature_value(call, "colour")));
  EXPECT_TRUE(std::isnan(feature_value(call, "dtype")));
  for (const NameFeature& feature : name_features()) {
    EXPECT_TRUE(feature.known(feature.value(call))) << feature.name;
    EXPECT_FALSE(feature.known("nothing")) << feature.name;
  }
}

}  // namespace
}  // namespace sl::test
