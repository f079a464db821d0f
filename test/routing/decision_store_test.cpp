// Winners on disk: what is found again, how well it matches, and what is a miss.
#include "routing/decision_store.hpp"

#include <gtest/gtest.h>

#include "routing/decisions.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

const Log silent;

class Decisions : public ::testing::Test {
 protected:
  DecisionStore store() const {
    return DecisionStore(std::make_shared<FileStore>(StoreOptions{dir / "decisions", 2, 1 << 24}, silent));
  }
  std::optional<Found> find(const CandidateSet& candidates, const std::string& driver = "driver 1") const {
    return store().find(call, h200, driver, candidates);
  }
  void save(const Decision& decision) const { ASSERT_TRUE(store().save(call, h200, decision).ok()); }

  TempDir dir;
  const ConvProblem call = dw3();
  const DeviceInfo h200 = device("h200");
  const CandidateSet set = set_of(call, h200);
  const Decision good = decided(call, h200, set);
};

TEST_F(Decisions, ASecondProcessHits) {
  EXPECT_FALSE(find(set).has_value());
  save(good);
  const auto found = find(set);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->match, Match::exact);
  EXPECT_EQ(to_json(found->decision), to_json(good));
}

TEST_F(Decisions, MatchLevels) {
  save(good);
  CandidateSet fewer = set;
  ASSERT_GT(fewer.candidates.size(), 1U);
  fewer.candidates.erase(fewer.candidates.begin());
  EXPECT_EQ(find(set, "driver 1")->match, Match::exact);
  EXPECT_EQ(find(set, "driver 2")->match, Match::other_driver);
  EXPECT_EQ(find(fewer, "driver 1")->match, Match::other_candidates);
  EXPECT_EQ(find(fewer, "driver 2")->match, Match::other_candidates);
}

// What no process may try, a child may have: then the decision says so itself.
TEST_F(Decisions, AWinnerThatWasTriedInAChildApplies) {
  const Schedule* const winner = set.candidates.back().schedule;
  CandidateSet here = set;
  here.with_untested = set.candidates;
  std::erase_if(here.candidates, [winner](const Candidate& one) { return one.schedule == winner; });
  ASSERT_FALSE(here.candidates.empty());
  save(good);
  EXPECT_FALSE(find(here).has_value()) << "nothing says that it was run";
  Decision timed = good;
  timed.candidates.push_back({.schedule = good.schedule, .config = good.config, .outcome = "timed"});
  save(timed);
  EXPECT_EQ(find(here)->match, Match::exact);
  EXPECT_EQ(find(here, "driver 2")->match, Match::other_driver);
  here.candidates.clear();
  EXPECT_EQ(find(here)->match, Match::exact);
  here.with_untested.pop_back();
  EXPECT_FALSE(find(here).has_value() && find(here)->match == Match::exact) << "other candidates";
  timed.candidates.back().outcome = "crashed: in check: signal 6";
  save(timed);
  here.with_untested = set.candidates;
  EXPECT_FALSE(find(here).has_value());
}

TEST_F(Decisions, AnotherBatchOfTheBucketHits) {
  save(good);
  ConvProblem other = call;
  other.n = 20;
  EXPECT_EQ(store().find(other, h200, "driver 1", set)->match, Match::exact);
  other.n = 64;
  EXPECT_FALSE(store().find(other, h200, "driver 1", set).has_value());
}

TEST_F(Decisions, WhatNoLongerAppliesIsAMiss) {
  struct Row {
    const char* what;
    void (*change)(Decision&);
  };
  const Row rows[] = {
      {"a schedule that is gone", [](Decision& d) { d.schedule = "dw_gone"; }},
      {"no schedule", [](Decision& d) { d.schedule = "grp_plane"; }},
      {"a changed schedule", [](Decision& d) { d.schedule_digest.low ^= 1; }},
      {"no configuration", [](Decision& d) { d.config = ""; }},
      {"a knob too many", [](Decision& d) { d.config += ",extra=1"; }},
      {"an unreadable configuration", [](Decision& d) { d.config = "fast please"; }},
      {"an illegal value", [](Decision& d) { d.config = d.config.substr(0, d.config.find('=') + 1) + "-7"; }},
      {"another problem", [](Decision& d) { d.problem = dw7().to_string(); }},
      {"an unreadable problem", [](Decision& d) { d.problem = "g0"; }},
      {"another device", [](Decision& d) { d.device = "NVIDIA H100"; }},
  };
  for (const Row& row : rows) {
    Decision changed = good;
    row.change(changed);
    save(changed);
    EXPECT_FALSE(find(set).has_value()) << row.what;
    EXPECT_EQ(match_level(changed, call, h200, "driver 1", set), Match::none) << row.what;
  }
  save(good);
  EXPECT_TRUE(find(set).has_value());
}

TEST_F(Decisions, ADisabledScheduleIsAMiss) {
  save(good);
  const std::vector<std::string> disabled = {good.schedule};
  EXPECT_FALSE(find(candidates(call, h200, {}, disabled)).has_value());
}

TEST_F(Decisions, ARecordOfAnotherSchemaIsAMiss) {
  FileStore files(StoreOptions{dir / "decisions", 2, 1 << 24}, silent);
  std::string json = to_json(good);
  json.replace(json.find("\"schema\":1"), 10, "\"schema\":9");
  for (const std::string& payload : {json, std::string("{}"), std::string("not JSON"), std::string("[1]")}) {
    ASSERT_TRUE(files.put(decision_key(call, h200), {"{}", payload}).ok());
    EXPECT_FALSE(find(set).has_value()) << payload;
  }
}

TEST_F(Decisions, OnlyWinnersAreStored) {
  Decision kept = good;
  kept.schedule.clear();
  const Status status = store().save(call, h200, kept);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::invalid);
}

TEST_F(Decisions, WithoutAStoreNothingIsRemembered) {
  DecisionStore none(nullptr);
  EXPECT_TRUE(none.save(call, h200, good).ok());
  EXPECT_FALSE(none.find(call, h200, "driver 1", set).has_value());
}

TEST_F(Decisions, TheEntrySaysWhatItIsInItsMeta) {
  save(good);
  const FileStore files(StoreOptions{dir / "decisions", 2, 1 << 24}, silent);
  const auto listed = files.list();
  ASSERT_EQ(listed.size(), 1U);
  for (const std::string& word : {call.descriptor(), good.schedule, good.config, std::string("NVIDIA H200")})
    EXPECT_NE(listed[0].meta.find(word), std::string::npos) << listed[0].meta;
}

// ---- tables ----

TEST_F(Decisions, TableRoundTripsAndFinds) {
  const DeviceInfo device = h200;
  const Decision other = decided(dw7(), device, set_of(dw7(), device));
  const auto table = DecisionTable::from_json(DecisionTable::to_json(device, {good, other}), "t.json");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->size(), 2U);
  EXPECT_EQ(table->find(call, device, "driver 1", set)->match, Match::exact);
  EXPECT_EQ(table->find(call, device, "driver 9", set)->match, Match::other_driver);
  EXPECT_EQ(to_json(table->find(dw7(), device, "driver 1", set_of(dw7(), device))->decision), to_json(other));
  EXPECT_FALSE(table->find(grouped4(), device, "driver 1", set_of(grouped4(), device)).has_value());
  const DeviceInfo h100 = sl::test::device("h100");
  EXPECT_FALSE(table->find(call, h100, "driver 1", set_of(call, h100)).has_value());
}

TEST_F(Decisions, TableOfOneKeyTwiceKeepsTheFirst) {
  Decision second = good;
  ConvProblem n20 = call;
  n20.n = 20;
  second.problem = n20.to_string();
  second.rule = "second";
  const auto table = DecisionTable::from_json(DecisionTable::to_json(h200, {good, second}), "t.json");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->size(), 1U);
  EXPECT_EQ(table->find(call, h200, "driver 1", set)->decision.rule, good.rule);
}

TEST_F(Decisions, KeptCallsInATableAreNoRows) {
  Decision without = good, with_schedule = good;
  without.schedule.clear();
  without.route = with_schedule.route = "keep";
  for (const Decision& kept : {without, with_schedule}) {
    const auto table = DecisionTable::from_json(DecisionTable::to_json(h200, {kept}), "t.json");
    ASSERT_TRUE(table.ok());
    EXPECT_EQ(table->size(), 0U) << kept.schedule;
  }
}

TEST_F(Decisions, TableErrorsNameFileAndPlace) {
  const std::string json = DecisionTable::to_json(h200, {good});
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    const auto at = text.rfind(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  struct Row {
    std::string json;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"", {"not JSON"}},
      {R"({"schema": 3})", {"schema is 3"}},
      {R"({"schema": 1, "decisions": []})", {"\"device\""}},
      {R"({"schema": 1, "device": {}, "decisions": []})", {"$.device", "\"name\""}},
      {changed("\"decisions\"", "\"decision\""), {"decisions", "required"}},
      {changed("\"device\": \"NVIDIA H200\"", "\"device\": \"NVIDIA H100\""),
       {"$.decisions[0]", "NVIDIA H100", "NVIDIA H200"}},
      {changed("\"problem\": \"", "\"problem\": \"zz"), {"$.decisions[0]", "problem"}},
      {changed("\"config\": \"", "\"config\": \"!"), {"$.decisions[0]", "config"}},
      {changed("\"match\": \"exact\"", "\"match\": \"near\""), {"$.decisions[0].match", "near"}},
  };
  for (const Row& row : rows) {
    const auto table = DecisionTable::from_json(row.json, "t.json");
    ASSERT_FALSE(table.ok()) << row.json;
    EXPECT_EQ(table.error().message.find("t.json"), 0U) << table.error().message;
    for (const std::string& word : row.words)
      EXPECT_NE(table.error().message.find(word), std::string::npos) << table.error().message << " lacks " << word;
  }
}

TEST_F(Decisions, TableLoadsFromAFile) {
  write_file(dir / "t.json", DecisionTable::to_json(h200, {good}));
  EXPECT_EQ(DecisionTable::load((dir / "t.json").string())->size(), 1U);
  const auto absent = DecisionTable::load((dir / "none.json").string());
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, Code::environment);
  EXPECT_NE(absent.error().message.find("none.json"), std::string::npos);
}

}  // namespace
}  // namespace sl::test
