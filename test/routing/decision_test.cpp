#include "routing/decision.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <set>

#include "routing/decisions.hpp"
#include "support/generators.hpp"

namespace sl::test {
namespace {

Decision full() {
  Decision decision = decided(dw3(), device("h200"), set_of(dw3(), device("h200")));
  decision.reason = "because \"of\" µ\n";
  decision.searched = {"a: for b", "c: matches"};
  decision.arch_note = "device newer than NVRTC: PTX of compute_121";
  decision.noise_floor = 0.0125;
  decision.baseline_us = 15.25;
  decision.budget_ms = 250;
  decision.partial = true;
  decision.candidates = {
      {"dw_flat", "tile=4", "timed", 1.5, 1.25, 2.75, 40, 0, 1024, 0.37},
      {"dw_row8", "rows=2", "wrong: NaN", 0, 0, 0, 64, 8, 0, std::numeric_limits<double>::infinity()}};
  decision.heuristic = "embedded:a model";
  decision.candidates[0].predicted = 1.25;
  decision.refusals = {{"grp_plane", "groups = 144: depthwise"}};
  return decision;
}

TEST(DecisionJson, RoundTripsEveryField) {
  for (const bool pretty : {false, true}) {
    const std::string json = to_json(full(), pretty);
    const auto back = decision_from_json(json);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(to_json(back.value(), pretty), json);
    EXPECT_EQ(back->candidates.size(), 2U);
    EXPECT_EQ(back->candidates[0].median_us, 1.5);
    EXPECT_EQ(back->candidates[0].smem, 1024);
    EXPECT_EQ(back->candidates[0].predicted, 1.25);
    EXPECT_EQ(back->candidates[1].predicted, 0);
    EXPECT_EQ(back->heuristic, "embedded:a model");
    EXPECT_EQ(back->candidates[1].error_over_bound, std::numeric_limits<double>::infinity());
    EXPECT_EQ(back->refusals[0].reason, "groups = 144: depthwise");
    EXPECT_EQ(back->schedule_digest, full().schedule_digest);
    EXPECT_EQ(back->reason, full().reason);
    EXPECT_EQ(back->budget_ms, 250);
    EXPECT_TRUE(back->partial);
  }
  EXPECT_EQ(to_json(full()).find('\n'), std::string::npos);
}

TEST(DecisionJson, HasTheKeysThatProgramsRead) {
  const std::string json = to_json(full());
  for (const char* key :
       {"problem", "device", "verdict", "route", "rule", "schedule", "config", "candidates", "refusals"})
    EXPECT_NE(json.find("\"" + std::string(key) + "\":"), std::string::npos) << key;
}

TEST(DecisionJson, BytesThatAreNotUtf8DoNotThrow) {
  Decision decision = full();
  decision.device = "odd \xff name";
  EXPECT_TRUE(decision_from_json(to_json(decision)).ok());
}

TEST(DecisionJson, UnknownKeysAreAllowedAndOptionalOnesMayLack) {
  const auto minimal = decision_from_json(
      R"({"schema": 1, "problem": "p", "device": "d", "verdict": "REQUIRED", "route": "take", "later": {"x": [1]}})");
  ASSERT_TRUE(minimal.ok()) << minimal.error().message;
  EXPECT_EQ(minimal->verdict, Verdict::required);
  EXPECT_EQ(minimal->origin, Origin::none);
  EXPECT_TRUE(minimal->candidates.empty());
}

TEST(DecisionJson, TypesAndWordsAreStrict) {
  const std::string good = to_json(full());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  struct Row {
    std::string json;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"{", {"not JSON"}},
      {"[]", {"an object"}},
      {changed("\"schema\":1", "\"schema\":2"), {"schema is 2", "reads 1"}},
      {changed("\"device\":\"NVIDIA H200\"", "\"device\":null"), {"$.device", "null"}},
      {changed("\"verdict\":\"OPTIONAL\"", "\"verdict\":\"MAYBE\""), {"$.verdict", "MAYBE", "OPTIONAL, REQUIRED"}},
      {changed("\"origin\":\"tuned\"", "\"origin\":\"guess\""), {"$.origin", "guess"}},
      {changed("\"match\":\"exact\"", "\"match\":3"), {"$.match", "3"}},
      {changed("\"registers\":40", "\"registers\":-1"), {"$.candidates[0].registers", "-1"}},
      {changed("\"registers\":40", "\"registers\":40.5"), {"$.candidates[0].registers", "40.5"}},
      {changed("\"median_us\":1.5", "\"median_us\":\"fast\""), {"$.candidates[0].median_us", "fast"}},
      {changed("\"schedule\":\"grp_plane\"", "\"schedule\":7"), {"$.refusals[0].schedule", "7"}},
      {changed("\"searched\":[", "\"searched\":[1,"), {"$.searched[0]", "1"}},
      {changed("\"candidate_set\":\"", "\"candidate_set\":\"x"), {"$.candidate_set", "32 hex digits"}},
      {changed("\"noise_floor\":0.0125", "\"noise_floor\":true"), {"$.noise_floor", "true"}},
  };
  for (const Row& row : rows) {
    const auto parsed = decision_from_json(row.json);
    ASSERT_FALSE(parsed.ok()) << row.json;
    for (const std::string& word : row.words)
      EXPECT_NE(parsed.error().message.find(word), std::string::npos) << parsed.error().message << " lacks " << word;
  }
}

TEST(DecisionWords, AreDistinct) {
  std::set<std::string_view> words;
  for (const Origin origin :
       {Origin::none, Origin::store, Origin::shipped, Origin::tuned, Origin::heuristic, Origin::base, Origin::pinned})
    EXPECT_TRUE(words.insert(name(origin)).second) << name(origin);
  EXPECT_EQ(name(Match::exact), "exact");
  EXPECT_EQ(name(Match::other_driver), "other_driver");
  EXPECT_EQ(name(Match::other_candidates), "other_candidates");
  EXPECT_EQ(name(Match::none), "none");
}

TEST(DecisionKey, IsPerBucketAndDevice) {
  const Digest key = decision_key(dw3(), device("h200"));
  ConvProblem other = dw3();
  other.n = 17;
  EXPECT_EQ(decision_key(other, device("h200")), key) << "17 and 32 are one bucket";
  other.n = 16;
  EXPECT_NE(decision_key(other, device("h200")), key);
  EXPECT_NE(decision_key(dw3(), device("h100")), key);
  DeviceInfo mig = device("h200");
  mig.mig = "3g.71gb";
  EXPECT_NE(decision_key(dw3(), mig), key);
}

RC_GTEST_PROP(DecisionKeyProperty, FollowsTheBucketedProblem, (const ConvProblem& a, const ConvProblem& b)) {
  const DeviceInfo h200 = device("h200");
  RC_ASSERT((decision_key(a, h200) == decision_key(b, h200)) == (a.batch_bucket() == b.batch_bucket()));
  RC_ASSERT(decision_key(a, h200) == decision_key(a.batch_bucket(), h200));
}

}  // namespace
}  // namespace sl::test
