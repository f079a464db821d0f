// Every way a routing table can be wrong: one clear message each, never a table.
#include <gtest/gtest.h>

#include "routing/fixture.hpp"

namespace sl::test {
namespace {

struct Row {
  const char* what;
  std::string json;
  std::vector<std::string> words;  ///< all in the message
};

const std::string device_part = R"("device": {"name": "NVIDIA H200", "capability": 90})";

std::string with_when(const std::string& when) { return h200_table(rule_json("r", "keep", when)); }
std::string with_evidence(const std::string& evidence) {
  return h200_table(R"({"name": "r", "route": "take", "when": {}, "evidence": )" + evidence + "}");
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"empty", "", {"test.json:1:1", "not JSON"}},
      {"truncated", h200_table("").substr(0, 40), {"test.json:1:4", "not JSON"}},
      {"trailing text", h200_table("") + "x", {"not JSON"}},
      {"NaN", with_when("\"n\": {\"min\":\n  NaN}"), {"test.json:2:", "not JSON", "neither NaN nor Infinity"}},
      {"Infinity", with_when(R"("n": {"max": Infinity})"), {"test.json:1:", "neither NaN nor Infinity"}},
      {"minus Infinity", with_when(R"("n": {"min": -Infinity})"), {"neither NaN nor Infinity"}},
      {"overflowing number", with_when(R"("n": {"max": 1e999})"), {"not JSON", "1e999"}},
      {"NaN as text", with_when(R"("n": {"min": "NaN"})"), {"$.rules[0].when.n.min", "\"NaN\"", "a finite number"}},
      {"null bound", with_when(R"("n": {"min": null})"), {"$.rules[0].when.n.min", "null"}},
      {"a comment", "// table\n" + h200_table(""), {"not JSON"}},
      {"a key twice", R"({"schema": 1, "device": "any", "rules": [], "rules": []})", {"\"rules\" occurs twice"}},
      {"a feature twice", with_when(R"("n": {"min": 1}, "n": {"max": 2})"), {"\"n\" occurs twice"}},
      {"bytes that are not UTF-8", with_when("\"dtype\": [\"\xff\"]"), {"not JSON"}},
      {"not an object", "[]", {"$", "[]", "an object"}},
      {"no schema", "{" + device_part + R"(, "rules": []})", {"\"schema\"", "required"}},
      {"newer schema", R"({"schema": 2, "device": "any", "rules": [], "new": 1})", {"schema is 2", "reads 1"}},
      {"schema as text", R"({"schema": "1", "device": "any", "rules": []})", {"$.schema", "\"1\"", "an integer"}},
      {"no device", R"({"schema": 1, "rules": []})", {"\"device\"", "required"}},
      {"device as text",
       R"({"schema": 1, "device": "NVIDIA H200", "rules": []})",
       {"$.device", "NVIDIA H200", "\"any\""}},
      {"device without capability",
       R"({"schema": 1, "device": {"name": "x"}, "rules": []})",
       {"$.device", "capability"}},
      {"capability as version",
       R"({"schema": 1, "device": {"name": "x", "capability": 9.0}, "rules": []})",
       {"$.device.capability", "9.0", "50 to"}},
      {"no rules", R"({"schema": 1, "device": "any"})", {"\"rules\"", "required"}},
      {"rules as object", R"({"schema": 1, "device": "any", "rules": {}})", {"$.rules", "an array"}},
      {"unknown key",
       R"({"schema": 1, "device": "any", "rules": [], "rulez": []})",
       {"unknown key \"rulez\"", "rules"}},
      {"rule without name", h200_table(R"({"route": "keep", "when": {}})"), {"$.rules[0]", "\"name\""}},
      {"rule with an empty name", h200_table(rule_json("", "keep", "")), {"$.rules[0]", "empty name"}},
      {"a terminal's control sequence in a name",
       h200_table(R"({"name": "r\u001b[31m", "route": "keep", "when": {}})"),
       {"$.rules[0]", "control character", "name"}},
      {"a line break in a name",
       h200_table(R"({"name": "r\nsluice: all is well", "route": "keep", "when": {}})"),
       {"$.rules[0]", "control character"}},
      {"rule without when", h200_table(R"({"name": "r", "route": "keep"})"), {"$.rules[0]", "\"when\""}},
      {"rule name twice",
       h200_table(rule_json("a", "keep", "") + "," + rule_json("a", "keep", "")),
       {"$.rules[1]", "\"a\"", "used before"}},
      {"unknown route", h200_table(rule_json("a", "maybe", "")), {"$.rules[0]", "maybe", "\"take\" or \"keep\""}},
      {"unknown key of a rule",
       h200_table(rule_json("a", "keep", "", R"(, "priority": 3)")),
       {"$.rules[0]", "priority"}},
      {"unknown feature",
       with_when(R"("kernel_are": {"min": 9})"),
       {"$.rules[0].when.kernel_are", "no feature", "kernel_area"}},
      {"min above max", with_when(R"("n": {"min": 9, "max": 8})"), {"$.rules[0].when.n", "min <= max"}},
      {"no bound", with_when(R"("n": {})"), {"$.rules[0].when.n", "at least one of min and max"}},
      {"unknown bound", with_when(R"("n": {"mim": 3})"), {"$.rules[0].when.n", "mim"}},
      {"number without object", with_when(R"("n": 3)"), {"$.rules[0].when.n", "3", "{\"min\""}},
      {"names for a number", with_when(R"("n": ["f16"])"), {"$.rules[0].when.n[0]", "\"f16\"", "number"}},
      {"a word for a number", with_when(R"("n": "f16")"), {"$.rules[0].when.n", "{\"min\"", "[number, ...]"}},
      {"no number at all", with_when(R"("n": [])"), {"$.rules[0].when.n", "at least one number"}},
      {"range for a name", with_when(R"("dtype": {"min": 1})"), {"$.rules[0].when.dtype", "an array"}},
      {"unknown name",
       with_when(R"("dtype": ["f16", "fp16"])"),
       {"$.rules[0].when.dtype[1]", "fp16", "f32, f16, bf16"}},
      {"no name", with_when(R"("layout": [])"), {"$.rules[0].when.layout", "nchw, nhwc"}},
      {"unknown feature of measured",
       h200_table("", R"("measured": {"m": {"min": 1}}, )"),
       {"$.measured.m", "no feature"}},
      {"unknown schedule",
       h200_table(rule_json("a", "take", "", R"(, "schedules": ["dw_flat", "dw_fast"])")),
       {"$.rules[0].schedules[1]", "dw_fast", "dw_row8"}},
      {"schedule twice",
       h200_table(rule_json("a", "take", "", R"(, "schedules": ["dw_flat", "dw_flat"])")),
       {"$.rules[0].schedules[1]", "once"}},
      {"schedules of a keep",
       h200_table(rule_json("a", "keep", "", R"(, "schedules": ["dw_flat"])")),
       {"$.rules[0].schedules", "keeps"}},
      {"take without evidence",
       h200_table(R"({"name": "r", "route": "take", "when": {}})"),
       {"$.rules[0]", "evidence"}},
      {"evidence without cases",
       with_evidence(R"({"min_speedup": 1, "median_speedup": 2, "baseline": "b", "versions": "v"})"),
       {"$.rules[0].evidence", "\"cases\""}},
      {"no case at all",
       with_evidence(R"({"cases": 0, "min_speedup": 1, "median_speedup": 2, "baseline": "b", "versions": "v"})"),
       {"$.rules[0].evidence.cases", "0"}},
      {"median below smallest",
       with_evidence(R"({"cases": 1, "min_speedup": 3, "median_speedup": 2, "baseline": "b", "versions": "v"})"),
       {"$.rules[0].evidence", "median_speedup"}},
      {"negative speed-up",
       with_evidence(R"({"cases": 1, "min_speedup": -1, "median_speedup": 2, "baseline": "b", "versions": "v"})"),
       {"$.rules[0].evidence", "above 0"}},
      {"unknown key of evidence",
       with_evidence(
           R"({"cases": 1, "min_speedup": 1, "median_speedup": 2, "baseline": "b", "versions": "v", "host": 1})"),
       {"$.rules[0].evidence", "host"}},
  };
  return table;
}

TEST(MalformedTable, OneClearMessageEach) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.what);
    const auto parsed = RoutingTable::from_json(row.json, "test.json");
    ASSERT_FALSE(parsed.ok()) << row.json;
    const Error& error = parsed.error();
    EXPECT_EQ(error.code, Code::invalid);
    EXPECT_EQ(error.message.find("test.json"), 0U) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
    for (const std::string& word : row.words)
      EXPECT_NE(error.message.find(word), std::string::npos) << error.message << "\n  lacks: " << word;
  }
}

TEST(MalformedTable, TheSameTablesWithoutTheFaultAreRead) {
  for (const std::string& json :
       {h200_table(""), with_when(R"("n": {"min": 1}, "dtype": ["f16"])"),
        h200_table(rule_json("a", "take", "", R"(, "schedules": ["dw_flat"])")),
        std::string(R"({"schema": 1, "device": "any", "rules": [{"name": "r", "route": "take", "when": {}}]})")})
    EXPECT_TRUE(RoutingTable::from_json(json, "test.json").ok()) << json;
}

TEST(MalformedTable, EveryPrefixIsAnErrorNotACrash) {
  const std::string whole = h200_table(rule_json("a", "take", R"("n": {"min": 1})"));
  for (std::size_t length = 0; length < whole.size(); ++length)
    ASSERT_FALSE(RoutingTable::from_json(whole.substr(0, length), "test.json").ok()) << length;
  EXPECT_TRUE(RoutingTable::from_json(whole, "test.json").ok());
}

TEST(MalformedTable, DeepNestingIsAnErrorNotAStackOverflow) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  const auto parsed = RoutingTable::from_json(deep, "test.json");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message.find("deeper"), std::string::npos) << parsed.error().message;
}

}  // namespace
}  // namespace sl::test
