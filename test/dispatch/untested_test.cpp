// Schedules that have not passed the sanitizers: tried by no process on a GPU, served where a child has tried them.
#include <gtest/gtest.h>

#include <algorithm>

#include "dispatch/fakes.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

/// Everything passed but the schedules of these candidates.
std::shared_ptr<const Sanitized> list_without(const std::vector<const Schedule*>& missing) {
  std::string passed;
  for (const Schedule* schedule : all_schedules()) {
    if (std::find(missing.begin(), missing.end(), schedule) != missing.end()) continue;
    passed += (passed.empty() ? "" : ", ") + (R"({"schedule": ")" + std::string(schedule->name)) + R"(", "digest": ")" +
              schedule->digest().hex() + "\"}";
  }
  return std::make_shared<Sanitized>(
      Sanitized::from_json(R"({"schema": 1, "runs": [{"gpu": "G", "driver": "1", "compiler": "c", "commit": "abc",
                               "tools": ["memcheck", "racecheck", "initcheck"], "passed": [)" +
                               passed + "]}]}",
                           "list.json")
          .value());
}

std::vector<const Schedule*> every_schedule() { return {all_schedules().begin(), all_schedules().end()}; }

Code call(Rig& rig, const ConvProblem& problem, Regular regular = Regular::yes, std::string* message = nullptr) {
  Error error;
  const Code code = rig->conv2d(problem, any_tensors(), nullptr, regular, error);
  if (message != nullptr) *message = error.message;
  return code;
}

Decision explained(Rig& rig, Regular regular = Regular::yes) {
  auto record = rig->explain(depthwise(), regular, true);
  EXPECT_TRUE(record.ok()) << record.error().message;
  return record.ok() ? *record : Decision{};
}

/// A store with a winner that another process tuned among all candidates, as a child does.
const Schedule* tuned_in_a_child(const TempDir& stores) {
  Rig child(stores.path());
  child.make();
  EXPECT_EQ(call(child, depthwise()), Code::ok);
  return find_schedule(explained(child).schedule);
}

TEST(Untested, TuningDoesNotGetIt) {
  for (const Policy policy : {Policy::first_use, Policy::immediate, Policy::background}) {
    Rig rig;
    const Schedule* const missing =
        candidates(depthwise().batch_bucket(), rig.device->info(), {}, {}).candidates.front().schedule;
    rig.options.policy = policy;
    rig.options.sanitized = list_without({missing});
    rig.tuner.answer = [missing](const CandidateSet& set) {
      for (const Candidate& candidate : set.candidates) EXPECT_NE(candidate.schedule, missing);
      return ScriptedTuner::take(set, 0);
    };
    rig.make();
    EXPECT_EQ(call(rig, depthwise()), Code::ok);
    rig->wait_idle();
    const Decision record = explained(rig);
    EXPECT_NE(record.schedule, missing->name);
    bool named = false;
    for (const ScheduleRefusal& refusal : record.refusals) {
      named |= refusal.schedule == missing->name && refusal.reason.find(missing->digest().hex()) != std::string::npos;
    }
    EXPECT_TRUE(named) << name(policy);
  }
}

TEST(Untested, WhereNothingMayBeTriedTheCallIsKeptOrAnErrorOfItsOwn) {
  for (const Policy policy : {Policy::first_use, Policy::immediate, Policy::background}) {
    Rig rig;
    rig.options.policy = policy;
    rig.options.sanitized = list_without(every_schedule());
    rig.make();
    EXPECT_EQ(explained(rig).route, "keep") << "dry";
    std::string message;
    EXPECT_EQ(call(rig, depthwise(), Regular::yes, &message), Code::kept);
    EXPECT_NE(message.find("sluice tune --isolate"), std::string::npos) << message;
    EXPECT_NE(message.find(find_schedule("dw_flat")->digest().hex()), std::string::npos) << message;
    EXPECT_EQ(call(rig, depthwise()), Code::kept);
    EXPECT_EQ(rig->counters().plan_hits, 1U) << "the answer is remembered";
    const Decision record = explained(rig);
    EXPECT_EQ(record.route, "keep");
    EXPECT_EQ(record.verdict, Verdict::optional) << "a schedule can run it";
    EXPECT_EQ(call(rig, depthwise(), Regular::no, &message), Code::unsupported);
    EXPECT_NE(message.find("REQUIRED"), std::string::npos) << message;
    EXPECT_NE(message.find("sluice tune --isolate"), std::string::npos) << message;
    EXPECT_EQ(explained(rig, Regular::no).route, "reject");
    EXPECT_EQ(rig.tuner.calls, 0);
    EXPECT_EQ(rig.compiler->compiled, 0);
    EXPECT_EQ(rig->counters().fallbacks, 0U) << "no failure";
    EXPECT_TRUE(rig.warnings().empty()) << rig.warnings().front();
  }
}

TEST(Untested, ADecisionOfAChildServesIt) {
  for (const Policy policy : {Policy::first_use, Policy::immediate, Policy::background}) {
    for (const bool all : {false, true}) {
      const TempDir stores;
      const Schedule* const winner = tuned_in_a_child(stores);
      const std::vector<const Schedule*> missing = all ? every_schedule() : std::vector{winner};
      Rig rig(stores.path());
      rig.options.policy = policy;
      rig.options.sanitized = list_without(missing);
      rig.make();
      EXPECT_EQ(explained(rig).schedule, winner->name) << "dry";
      EXPECT_EQ(call(rig, depthwise()), Code::ok);
      const Decision record = explained(rig);
      EXPECT_EQ(record.schedule, winner->name);
      EXPECT_EQ(record.origin, Origin::store);
      EXPECT_EQ(record.match, Match::exact);
      EXPECT_EQ(rig.tuner.calls, 0);
      // Another batch has no decision, and what a child tried for this one is no reason to try it here.
      EXPECT_EQ(call(rig, depthwise(64)), all ? Code::kept : Code::ok);
      EXPECT_NE(rig->explain(depthwise(64), Regular::yes, true)->schedule, winner->name);
    }
  }
}

TEST(Untested, ARequiredCallTakesWhatTheRuleDoesNotName) {
  Rig rig;
  const CandidateSet set = candidates(depthwise().batch_bucket(), rig.device->info(), {}, {});
  const Schedule* const named = set.candidates.front().schedule;
  rig.options.sanitized = list_without({named});
  rig.routing = std::make_shared<RoutingTable>(
      RoutingTable::from_json(R"({"schema": 1, "device": "any", "rules": [{"name": "one", "route": "take", "when": {},
                                  "schedules": [")" +
                                  std::string(named->name) + "\"]}]}",
                              "test.json")
          .value());
  rig.make();
  EXPECT_EQ(call(rig, depthwise(), Regular::yes), Code::kept);
  EXPECT_EQ(call(rig, depthwise(), Regular::no), Code::ok);
}

}  // namespace
}  // namespace sl::test
