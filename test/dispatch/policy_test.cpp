// What each policy, and each variable of the environment, does with a call.
#include <gtest/gtest.h>

#include "dispatch/fakes.hpp"
#include "routing/heuristics.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

Code call(Rig& rig, const ConvProblem& problem, Regular regular = Regular::yes, std::string* message = nullptr) {
  Error error;
  const Code code = rig->conv2d(problem, any_tensors(), nullptr, regular, error);
  if (message != nullptr) *message = error.message;
  return code;
}

Decision explained(Rig& rig, const ConvProblem& problem, bool dry = true) {
  auto record = rig->explain(problem, Regular::yes, dry);
  EXPECT_TRUE(record.ok()) << record.error().message;
  return record.ok() ? *record : Decision{};
}

TEST(Policy, NamesRoundTrip) {
  for (const Policy policy : {Policy::first_use, Policy::immediate, Policy::background, Policy::pinned, Policy::off}) {
    EXPECT_EQ(parse_policy(name(policy)), policy);
  }
  EXPECT_EQ(parse_policy("sometimes"), std::nullopt);
}

TEST(Policy, FirstUseTunesOnceAndServesTheWinner) {
  Rig rig;
  rig.make();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig.tuner.calls, 1);
  const Decision record = explained(rig, depthwise());
  EXPECT_EQ(record.origin, Origin::tuned);
  EXPECT_EQ(record.verdict, Verdict::optional);
  EXPECT_EQ(record.route, "take");
  const auto set = candidates(depthwise(), rig.device->info(), {}, {});
  EXPECT_EQ(record.config, set.candidates.at(ScriptedTuner::usual(set)).config.to_string());
}

TEST(Policy, ImmediateTakesTheHeuristicsFirstAndTimesNothing) {
  Rig rig;
  rig.options.policy = Policy::immediate;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig.tuner.calls, 0);
  EXPECT_EQ(rig.compiler->compiled, 1) << "only the winner is compiled";
  const Decision record = explained(rig, depthwise());
  EXPECT_EQ(record.origin, Origin::heuristic);
  const auto set = candidates(depthwise(), rig.device->info(), {}, {});
  EXPECT_EQ(record.schedule, set.candidates.front().schedule->name);
  EXPECT_EQ(record.config, set.candidates.front().config.to_string());
}

/// Says that one candidate of the set, not the first, is the fastest.
struct Model {
  explicit Model(const Rig& rig) {
    const CandidateSet set = candidates(depthwise(), rig.device->info(), {}, {});
    std::map<const Schedule*, int> ranks;
    std::string trees;
    for (const Candidate& candidate : set.candidates) {
      const int rank = ranks[candidate.schedule]++;
      if (rank == 1) favourite = candidate;
    }
    for (const auto& [schedule, count] : ranks) {
      const bool best = schedule == favourite.schedule;
      trees +=
          (trees.empty() ? "" : ", ") +
          trees_json(std::string(schedule->name), leaf_json(best ? 1 : 2),
                     best ? branch_json("rank", 0, leaf_json(1.5), branch_json("rank", 1, leaf_json(1), leaf_json(3)))
                          : leaf_json(1));
    }
    model = std::make_shared<const Heuristic>(
        heuristic(heuristic_json(trees, rig.device->info().name, rig.device->info().capability)));
  }
  std::shared_ptr<const Heuristic> model;
  Candidate favourite;
};

TEST(Policy, ImmediateTakesWhatTheModelPicksAndCompilesNothingElse) {
  Rig rig;
  const Model model(rig);
  ASSERT_NE(model.favourite.schedule, nullptr);
  rig.options.policy = Policy::immediate;
  rig.options.heuristic = model.model;
  rig.make();
  EXPECT_EQ(explained(rig, depthwise()).config, model.favourite.config.to_string()) << "dry: it is known before";
  EXPECT_EQ(rig.compiler->compiled, 0);
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig.tuner.calls, 0);
  EXPECT_EQ(rig.compiler->compiled, 1) << "only the winner is compiled";
  const Decision record = explained(rig, depthwise());
  EXPECT_EQ(record.origin, Origin::heuristic);
  EXPECT_EQ(record.schedule, model.favourite.schedule->name);
  EXPECT_EQ(record.config, model.favourite.config.to_string());
  EXPECT_EQ(record.heuristic, "test.json");
  for (const CandidateRecord& row : record.candidates) {
    const bool picked = row.schedule == record.schedule && row.config == record.config;
    EXPECT_EQ(row.predicted == 1, picked) << row.schedule << " " << row.config;
    EXPECT_GT(row.predicted, 0);
  }
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig->counters().plan_hits, 1U) << "a known call asks no model";
}

TEST(Policy, AModelPicksAmongWhatIsAllowed) {
  Rig rig;
  const Model model(rig);
  rig.options.policy = Policy::immediate;
  rig.options.heuristic = model.model;
  rig.environment.disabled_schedules = {std::string(model.favourite.schedule->name)};
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  const Decision record = explained(rig, depthwise());
  EXPECT_NE(record.schedule, model.favourite.schedule->name);
  EXPECT_EQ(record.heuristic, "test.json");
}

TEST(Policy, AModelDoesNotReplaceTuningOrADecision) {
  const TempDir stores;
  Rig rig(stores.path());
  const Model model(rig);
  rig.options.heuristic = model.model;
  rig.make();
  EXPECT_EQ(explained(rig, depthwise()).config, model.favourite.config.to_string()) << "what it would take, untuned";
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig.tuner.calls, 1);
  const Decision tuned = explained(rig, depthwise());
  EXPECT_EQ(tuned.origin, Origin::tuned);
  EXPECT_EQ(tuned.heuristic, "");
  rig.options.policy = Policy::immediate;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(explained(rig, depthwise()).origin, Origin::store);
  EXPECT_EQ(explained(rig, depthwise()).config, tuned.config);
}

TEST(Policy, WhatTuningCouldNotTimeIsTheModelsToPick) {
  Rig rig;
  const Model model(rig);
  rig.options.heuristic = model.model;
  rig.tuner.answer = [](const CandidateSet& set) { return ScriptedTuner::fail(set, "untimed"); };
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(explained(rig, depthwise()).config, model.favourite.config.to_string());
  for (const CandidateRecord& row : explained(rig, depthwise()).candidates) {
    EXPECT_EQ(row.outcome, "untimed") << "tuning's word stays";
    EXPECT_GT(row.predicted, 0) << row.schedule << " " << row.config;
  }
  // What tuning found broken is not picked, whatever the model says of it.
  rig.tuner.answer = [&model](const CandidateSet& set) {
    TuneResult result = ScriptedTuner::fail(set, "untimed");
    for (CandidateRecord& row : result.decision.candidates) {
      if (row.config == model.favourite.config.to_string()) row.outcome = "compile: no";
    }
    return result;
  };
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_NE(explained(rig, depthwise()).config, model.favourite.config.to_string());
}

TEST(Policy, ImmediateUsesAStoredDecision) {
  const TempDir stores;
  Rig rig(stores.path());
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  rig.options.policy = Policy::immediate;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(explained(rig, depthwise()).origin, Origin::store);
  EXPECT_EQ(rig.tuner.calls, 1);
}

TEST(Policy, OffKeepsEveryCallAndRefusesRequiredOnes) {
  Rig rig;
  rig.options.policy = Policy::off;
  rig.make();
  std::string message;
  EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
  EXPECT_NE(message.find("policy off"), std::string::npos) << message;
  EXPECT_EQ(call(rig, depthwise(), Regular::no, &message), Code::unsupported);
  EXPECT_NE(message.find(depthwise().to_string()), std::string::npos) << message;
  EXPECT_EQ(rig.device->launched, 0u);
}

TEST(Policy, TheKillSwitchWins) {
  Rig rig;
  rig.environment.disabled = true;
  rig.options.force_take = true;
  rig.make();
  std::string message;
  EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
  EXPECT_NE(message.find("SLUICE_DISABLE"), std::string::npos) << message;
  EXPECT_EQ(rig.compiler->compiled, 0);
}

TEST(Policy, PinnedMissesFailClosed) {
  Rig rig;
  rig.options.policy = Policy::pinned;
  rig.make();
  for (const Regular regular : {Regular::yes, Regular::no}) {
    std::string message;
    EXPECT_EQ(call(rig, depthwise(), regular, &message), Code::pinned_miss);
    EXPECT_NE(message.find(depthwise().descriptor()), std::string::npos) << message;
  }
  EXPECT_EQ(rig.tuner.calls, 0);
  EXPECT_EQ(rig.compiler->compiled, 0);
  EXPECT_EQ(rig.device->launched, 0u);
}

TEST(Policy, PinnedServesItsTableAtTheAcceptedMatch) {
  Rig rig;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  const Decision winner = explained(rig, depthwise());
  const std::string json = DecisionTable::to_json(rig.device->info(), {winner});
  auto table = DecisionTable::from_json(json, "test");
  ASSERT_TRUE(table.ok()) << table.error().message << json;
  rig.table = std::make_shared<const DecisionTable>(*std::move(table));

  rig.options.policy = Policy::pinned;
  rig.make();
  EXPECT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(explained(rig, depthwise()).origin, Origin::pinned);
  EXPECT_EQ(explained(rig, depthwise()).config, winner.config);

  rig.device->driver_ = "fake driver 2";
  rig.make();
  EXPECT_EQ(call(rig, depthwise()), Code::pinned_miss) << "an exact match was demanded";
  rig.options.pinned_accepts = Match::other_driver;
  rig.make();
  EXPECT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(explained(rig, depthwise()).match, Match::other_driver);
  EXPECT_EQ(rig.tuner.calls, 1);
}

TEST(Policy, ATableWithoutPinnedIsShippedDecisions) {
  Rig rig;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  auto table = DecisionTable::from_json(DecisionTable::to_json(rig.device->info(), {explained(rig, depthwise())}), "t");
  ASSERT_TRUE(table.ok()) << table.error().message;
  rig.table = std::make_shared<const DecisionTable>(*std::move(table));
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(explained(rig, depthwise()).origin, Origin::shipped);
  EXPECT_EQ(rig.tuner.calls, 1);
  EXPECT_EQ(rig->counters().decision_hits, 1u);
}

TEST(Policy, AForcedScheduleIsTheOnlyCandidateAndIsNotRemembered) {
  const TempDir stores;
  Rig rig(stores.path());
  rig.environment.force_schedule = "dw_flat";
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(explained(rig, depthwise()).schedule, "dw_flat");
  EXPECT_FALSE(explained(rig, depthwise()).refusals.empty());
  rig.environment.force_schedule.clear();
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_EQ(rig.tuner.calls, 2) << "a forced winner must not be found by those who choose freely";
}

TEST(Policy, ADisabledScheduleIsNoCandidate) {
  Rig rig;
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  const std::string winner = explained(rig, depthwise()).schedule;
  rig.environment.disabled_schedules = {winner};
  rig.make();
  ASSERT_EQ(call(rig, depthwise()), Code::ok);
  EXPECT_NE(explained(rig, depthwise()).schedule, winner);
  for (const Schedule* schedule : all_schedules()) {
    rig.environment.disabled_schedules.emplace_back(schedule->name);
  }
  rig.make();
  std::string message;
  EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
  EXPECT_NE(message.find("disabled"), std::string::npos) << message;
  EXPECT_EQ(call(rig, depthwise(), Regular::no, &message), Code::unsupported);
}

TEST(Policy, ARequiredCallIsTakenWhereTheTableKeeps) {
  Rig rig;
  rig.routing = keep_everything();
  rig.make();
  EXPECT_EQ(call(rig, depthwise(), Regular::yes), Code::kept);
  EXPECT_EQ(call(rig, depthwise(), Regular::no), Code::ok);
  EXPECT_EQ(call(rig, depthwise(), Regular::yes), Code::kept) << "the two answers must not meet in the plan table";
  rig.options.force_take = true;
  rig.make();
  EXPECT_EQ(call(rig, depthwise(), Regular::yes), Code::ok);
}

TEST(Policy, WhatNoScheduleCanRunIsKeptOrRefused) {
  Rig rig;
  rig.make();
  rig.device->info_.backend = "rocm";  // no schedule's code runs there
  rig.device->info_.capability = 0;
  std::string message;
  EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
  EXPECT_NE(message.find("dw_flat"), std::string::npos) << message;
  EXPECT_EQ(call(rig, depthwise(), Regular::no, &message), Code::unsupported);
  EXPECT_NE(message.find(depthwise().to_string()), std::string::npos) << message;
  EXPECT_NE(message.find("fake H200"), std::string::npos) << message;
}

TEST(Policy, AnIllegalProblemIsInvalidForEveryPolicy) {
  for (const Policy policy : {Policy::first_use, Policy::immediate, Policy::off}) {
    Rig rig;
    rig.options.policy = policy;
    rig.make();
    ConvProblem broken = depthwise();
    broken.groups = 7;
    std::string message;
    EXPECT_EQ(call(rig, broken, Regular::yes, &message), Code::invalid);
    EXPECT_NE(message.find("groups"), std::string::npos) << message;
  }
}

TEST(Explain, DryNeitherTunesNorCompiles) {
  Rig rig;
  rig.options.searched = {"here: no", "there: yes"};
  rig.make();
  const Decision record = explained(rig, depthwise(), true);
  EXPECT_EQ(rig.tuner.calls, 0);
  EXPECT_EQ(rig.compiler->compiled, 0);
  EXPECT_EQ(record.route, "take");
  EXPECT_EQ(record.searched, rig.options.searched);
  ASSERT_FALSE(record.candidates.empty());
  EXPECT_EQ(record.candidates.front().outcome, "untimed");
  const Decision decided = explained(rig, depthwise(), false);
  EXPECT_EQ(rig.tuner.calls, 1);
  EXPECT_EQ(decided.origin, Origin::tuned);
  EXPECT_EQ(decided.compiler, "empty 1");
  EXPECT_EQ(decided.searched, rig.options.searched);
}

}  // namespace
}  // namespace sl::test
