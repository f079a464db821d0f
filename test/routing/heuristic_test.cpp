// Heuristics: read strictly, ranked deterministically, found as routing tables are, and linted.
#include "routing/heuristic.hpp"

#include <algorithm>

#include "core/embedded.hpp"
#include "routing/branch_feature.hpp"
#include "routing/heuristics.hpp"
#include "routing/lint.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

CandidateSet set_for(const ConvProblem& call, const DeviceInfo& info) { return candidates(call, info, {}, {}); }

std::string picked(const Heuristic* model, const ConvProblem& call, const DeviceInfo& info) {
  const CandidateSet set = set_for(call, info);
  const Candidate& best = set.candidates[ranking(model, call, info, set, set).order.front()];
  return std::string(best.schedule->name) + " " + best.config.to_string();
}

std::string with_trees() {
  return heuristic_json(
      trees_json("dw_flat", branch_json("plane", 100, leaf_json(1), leaf_json(3)),
                 branch_json("knob.vec", 2, leaf_json(1), word_json("dtype", "f16", leaf_json(2), leaf_json(1)))) +
      ", " + trees_json("dw_row8", leaf_json(2), branch_json("rank", 0, leaf_json(1.5), leaf_json(1))));
}

TEST(Heuristic, IsWrittenAsItIsRead) {
  const Heuristic model = heuristic(with_trees());
  EXPECT_EQ(heuristic(model.to_json()).to_json(), model.to_json());
  EXPECT_EQ(model.device_text(), "NVIDIA H200 (capability 90)");
  EXPECT_TRUE(model.matches(device("h200")));
  EXPECT_FALSE(model.matches(device("h100")));
  EXPECT_EQ(model.evidence().quality.default_worst, 2);
}

TEST(Heuristic, WalksItsTrees) {
  const Heuristic model = heuristic(with_trees());
  const DeviceInfo h200 = device("h200");
  const ConvProblem large = dw3(), small = problem("g144mb32ic144ih7oc144oh7kh3ph1 dt=f32 tag=nhwc");
  const auto value = [&](const ConvProblem& call, const char* schedule, const char* config, double rank) {
    return model.predict(call, h200, {find_schedule(schedule), *Config::parse(config)}, rank).value();
  };
  EXPECT_DOUBLE_EQ(value(large, "dw_flat", "vec=2,cols=4,threads=128", 0), 3);
  EXPECT_DOUBLE_EQ(value(large, "dw_flat", "vec=4,cols=2,threads=128", 0), 6);
  EXPECT_DOUBLE_EQ(value(small, "dw_flat", "vec=4,cols=2,threads=128", 0), 1);
  EXPECT_DOUBLE_EQ(value(large, "dw_row8", "vec=2,cols=4,rows=2,threads=128", 0), 3);
  EXPECT_DOUBLE_EQ(value(large, "dw_row8", "vec=2,cols=4,rows=2,threads=128", 1), 2);
  EXPECT_DOUBLE_EQ(value(large, "dw_flat", "cols=2,threads=128", 0), 6) << "no knob: no bound holds it";
  EXPECT_FALSE(model.predict(large, h200, {find_schedule("dw_plane"), {}}, 0).has_value());
}

TEST(Heuristic, RanksKnownSchedulesFirstAndKeepsTheOrderOfEquals) {
  const DeviceInfo h200 = device("h200");
  const CandidateSet set = set_for(dw3(), h200);
  const Heuristic model = heuristic(with_trees());
  const Ranking ranked = ranking(&model, dw3(), h200, set, set);
  ASSERT_EQ(ranked.order.size(), set.candidates.size());
  std::vector<std::size_t> sorted = ranked.order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], i) << "each candidate once";
  const auto known = [&](std::size_t i) {
    const std::string_view name = set.candidates[i].schedule->name;
    return name == "dw_flat" || name == "dw_row8";
  };
  bool unknown = false;
  for (std::size_t place = 0; place < ranked.order.size(); ++place) {
    const std::size_t i = ranked.order[place];
    EXPECT_EQ(ranked.predicted[i] > 0, known(i));
    unknown |= !known(i);
    EXPECT_NE(known(i), unknown);
    if (place == 0) continue;
    const std::size_t before = ranked.order[place - 1];
    if (known(i)) {
      EXPECT_LE(ranked.predicted[before], ranked.predicted[i]);
    }
    if (ranked.predicted[before] == ranked.predicted[i]) {
      EXPECT_LT(before, i);
    }
  }
  EXPECT_TRUE(unknown);
}

TEST(Heuristic, RanksOfAPartAreThoseOfTheWhole) {
  const DeviceInfo h200 = device("h200");
  const CandidateSet all = set_for(dw3(), h200);
  const Heuristic model = heuristic(with_trees());
  const Ranking whole = ranking(&model, dw3(), h200, all, all);
  CandidateSet some;
  std::vector<double> expected;
  for (std::size_t i = all.candidates.size(); i-- > 0;) {
    if (all.candidates[i].schedule->name != "dw_row8") continue;
    some.candidates.push_back(all.candidates[i]);
    expected.push_back(whole.predicted[i]);
  }
  ASSERT_GT(expected.size(), 1U);
  EXPECT_NE(expected.front(), expected.back()) << "the first choice is worth something else";
  EXPECT_EQ(ranking(&model, dw3(), h200, some, all).predicted, expected);
}

TEST(Heuristic, WithoutAModelTheOrderStays) {
  const DeviceInfo h200 = device("h200");
  const CandidateSet set = set_for(dw3(), h200);
  const Ranking ranked = ranking(nullptr, dw3(), h200, set, set);
  EXPECT_TRUE(std::is_sorted(ranked.order.begin(), ranked.order.end()));
  EXPECT_EQ(ranked.predicted, std::vector<double>(set.candidates.size(), 0.0));
}

// Whatever a model says, what it picks is a candidate: it orders, and adds nothing.
TEST(Heuristic, NeverPicksWhatDoesNotApply) {
  std::string all;
  for (const Schedule* schedule : all_schedules()) {
    all += (all.empty() ? "" : ", ") + trees_json(std::string(schedule->name), leaf_json(1));
  }
  const Heuristic model = heuristic(heuristic_json(all));
  for (const char* stem : {"h200", "a100"}) {
    const DeviceInfo info = device(stem);
    for (const ConvProblem& call : {dw3(), dw7(), grouped4()}) {
      const CandidateSet set = set_for(call, info);
      const Ranking ranked = ranking(&model, call, info, set, set);
      const Candidate& best = set.candidates[ranked.order.front()];
      EXPECT_FALSE(best.schedule->can_run(call, info)) << best.schedule->name;
      EXPECT_FALSE(best.schedule->fits(call, best.config)) << best.config.to_string();
    }
  }
}

TEST(Heuristic, BrokenFilesSayWhatWouldBeRight) {
  struct Case {
    std::string json, says;
  };
  const std::string good = leaf_json(1);
  const auto of = [](const std::string& tree, const std::string& config = "") {
    return heuristic_json(trees_json("dw_flat", tree, config));
  };
  const auto changed = [](std::string from, const std::string& what, const std::string& by) {
    return from.replace(from.find(what), what.size(), by);
  };
  const Case cases[] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {of(good).substr(0, 300), "not JSON"},
      {"{}", "has no \"schema\""},
      {changed(of(good), "\"schema\": 1", "\"schema\": 2"), "this library reads 1"},
      {changed(of(good), "\"predicts\": \"time\"", "\"predicts\": \"luck\""), "\"time\" or \"winner\""},
      {changed(of(good), "90", "9"), "from 50 to 9990"},
      {changed(of(good), "\"groups\": 5", "\"groups\": 1"), "$.evidence.groups"},
      {changed(of(good), "\"note\"", "\"notes\""), "unknown key \"notes\""},
      {heuristic_json(""), "at least one schedule"},
      {heuristic_json(trees_json("dw_flat", good) + "," + trees_json("dw_flat", good)), "was there before"},
      {changed(of(good), "\"name\": \"dw_flat\"", "\"name\": \"dw_fast\""), "a schedule would be right"},
      {changed(of(good), build_of("dw_flat"), "abc"), "32 hex digits"},
      {of(leaf_json(-1)), "below 0"},
      {of(R"({"value": 1})"), "has no \"cases\""},
      {of(R"({"value": 1, "cases": 0})"), "$.schedules[0].schedule.cases"},
      {of(branch_json("plain", 1, good, good)), "no feature \"plain\""},
      {of(branch_json("rank", 1, good, good)), "no feature \"rank\""},
      {of(good, branch_json("knob.", 1, good, good)), "no feature \"knob.\""},
      {of(branch_json("dtype", 1, good, good)), "has no \"is\""},
      {of(word_json("plane", "f16", good, good)), "has no \"at_most\""},
      {of(word_json("dtype", "f64", good, good)), "one of f32, f16, bf16"},
      {of(R"({"feature": "plane", "at_most": 3, "yes": )" + good + "}"), "has no \"no\""},
      {of(R"({"feature": "plane", "at_most": NaN, "yes": )" + good + R"(, "no": )" + good + "}"), "NaN"},
      {of(R"({"feature": 3, "at_most": 3, "yes": )" + good + R"(, "no": )" + good + "}"), "a string would be right"},
  };
  for (const Case& row : cases) {
    const auto parsed = Heuristic::from_json(row.json, "bad.json");
    ASSERT_FALSE(parsed.ok()) << row.says;
    EXPECT_EQ(parsed.error().code, Code::invalid);
    EXPECT_EQ(parsed.error().message.find("bad.json"), 0U) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(row.says), std::string::npos) << parsed.error().message;
  }
  std::string deep = good;
  for (int i = 0; i < 200; ++i) deep = branch_json("plane", i, deep, good);
  EXPECT_FALSE(Heuristic::from_json(of(deep), "deep.json").ok()) << "no recursion without a bound";
}

TEST(Heuristic, EveryPrefixIsAnErrorNotACrash) {
  const std::string whole = with_trees();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Heuristic::from_json(whole.substr(0, length), "cut.json").ok()) << length;
  }
}

TEST(Heuristic, AModelOfWinnersSaysNothingOfConfigurations) {
  std::string json = heuristic_json(trees_json("dw_flat", leaf_json(0.25), leaf_json(1)));
  json.replace(json.find("\"time\""), 6, "\"winner\"");
  for (const std::string extra : {R"("worst": 1.3,)", R"("default_worst": 2,)"}) {
    json.erase(json.find(extra), extra.size());
  }
  const auto parsed = Heuristic::from_json(json, "w.json");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message.find("says nothing of configurations"), std::string::npos);
}

TEST(Heuristic, EveryFeatureHasANameOfItsOwnAndAValue) {
  const DeviceInfo h200 = device("h200");
  const CandidateSet set = set_for(dw3(), h200);
  for (const CandidateFeature& feature : candidate_features()) {
    EXPECT_FALSE(BranchFeature::find(feature.name, false).has_value()) << feature.name;
    ASSERT_TRUE(BranchFeature::find(feature.name, true).has_value()) << feature.name;
    for (const Candidate& candidate : set.candidates) {
      const double value = BranchFeature::find(feature.name, true)->number({dw3(), h200, candidate, 2});
      EXPECT_GE(value, 0) << feature.name;
      EXPECT_LT(value, 1e12) << feature.name;
    }
    EXPECT_NE(branch_feature_list(true).find(feature.name), std::string::npos);
  }
}

TEST(FindHeuristic, UserFileThenLibraryThenNone) {
  const TempDir dir;
  const DeviceInfo h200 = device("h200");
  const auto shipped = find_heuristic(h200, "");
  ASSERT_TRUE(shipped.ok()) << shipped.error().message;
  EXPECT_FALSE(shipped->searched.empty());
  write_file(dir / "mine.json", with_trees());
  const auto mine = find_heuristic(h200, (dir / "mine.json").string());
  ASSERT_TRUE(mine.ok()) << mine.error().message;
  EXPECT_EQ(mine->heuristic->origin(), (dir / "mine.json").string());
  const auto folder = find_heuristic(h200, dir.path().string());
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->heuristic->origin(), (dir / "mine.json").string());

  const auto other = find_heuristic(device("a100"), (dir / "mine.json").string());
  ASSERT_FALSE(other.ok());
  for (const char* word : {"mine.json", "heuristic", "NVIDIA H200 (capability 90)", "A100"})
    EXPECT_NE(other.error().message.find(word), std::string::npos) << other.error().message;
  const auto absent = find_heuristic(h200, "/nowhere/model.json");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, Code::environment);
  EXPECT_NE(absent.error().message.find("SLUICE_HEURISTIC"), std::string::npos) << absent.error().message;

  DeviceInfo unknown = h200;
  unknown.name = "NVIDIA Z900";
  const auto none = find_heuristic(unknown, dir.path().string());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->heuristic, nullptr);
  EXPECT_EQ(none->searched.back(), "none: the schedules' own order decides");
}

TEST(LazyHeuristic, ReadsTheUsersAtOnceAndTheLibrarysWhenAsked) {
  const TempDir dir;
  const DeviceInfo h200 = device("h200");
  EXPECT_EQ(LazyHeuristic().get(), nullptr);
  const auto shipped = LazyHeuristic::open(h200, "");
  ASSERT_TRUE(shipped.ok());
  const LazyHeuristic copy = *shipped;
  const Heuristic* const first = copy.get();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->origin(), find_heuristic(h200, "")->heuristic->origin());
  EXPECT_EQ(shipped->get(), first) << "read once for all copies";

  write_file(dir / "mine.json", with_trees());
  const auto mine = LazyHeuristic::open(h200, (dir / "mine.json").string());
  ASSERT_TRUE(mine.ok()) << mine.error().message;
  EXPECT_EQ(mine->get()->origin(), (dir / "mine.json").string());
  EXPECT_FALSE(LazyHeuristic::open(h200, "/nowhere/model.json").ok()) << "before anybody asks for it";

  DeviceInfo unknown = h200;
  unknown.name = "NVIDIA Z900";
  const auto none = LazyHeuristic::open(unknown, "");
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->get(), nullptr);
}

// A schedule that has changed since is worth a look, and measuring again; a model only orders, so it is no error.
TEST(FindHeuristic, WhatIsShippedIsReadAndHoldsNoError) {
  ASSERT_FALSE(embedded_heuristic_json().empty());
  for (const EmbeddedFile& file : embedded_heuristic_json()) {
    const auto model = Heuristic::from_json(file.content, std::string(file.path));
    ASSERT_TRUE(model.ok()) << model.error().message;
    for (const Finding& finding : lint(*model)) EXPECT_FALSE(finding.error) << file.path << ": " << finding.what;
  }
}

std::string findings(const std::string& json) {
  std::string all;
  for (const Finding& f : lint(heuristic(json)))
    all += std::string(f.error ? "error " : "look ") + f.where + ": " + f.what + "\n";
  return all;
}

TEST(LintHeuristic, DeadBranchesAndOldBuilds) {
  std::string every;
  for (const Schedule* schedule : all_schedules()) {
    every += (every.empty() ? "" : ", ") + trees_json(std::string(schedule->name), leaf_json(1));
  }
  EXPECT_EQ(findings(heuristic_json(every)), "");
  const std::string l = leaf_json(1);
  const auto has = [](const std::string& found, const char* part) {
    EXPECT_NE(found.find(part), std::string::npos) << part << "\n" << found;
  };
  const auto tree = [&](const std::string& one) { return findings(heuristic_json(trees_json("dw_flat", one))); };
  has(tree(l), "look schedule dw_row8: not in the model");
  has(tree(branch_json("n", 8, branch_json("n", 8, l, l), l)), "reaches its \"no\"");
  has(tree(branch_json("n", 8, l, branch_json("n", 4, l, l))), "reaches its \"yes\"");
  has(tree(word_json("dtype", "f16", word_json("dtype", "f32", l, l), l)), "reaches its \"yes\"");
  has(tree(word_json("dtype", "f16", word_json("dtype", "f16", l, l), l)), "reaches its \"no\"");
  has(tree(word_json("dtype", "f16", l, word_json("dtype", "f16", l, l))), "reaches its \"yes\"");
  EXPECT_EQ(tree(branch_json("n", 8, branch_json("n", 4, l, l), branch_json("n", 16, l, l))).find("error"),
            std::string::npos);
  std::string old = heuristic_json(every);
  old.replace(old.find(build_of("dw_band")), 32, std::string(32, '0'));
  has(findings(old), "look schedule dw_band: learned from another build");
  std::string worse = heuristic_json(every);
  worse.replace(worse.find("1.05"), 4, "1.25");
  has(findings(worse), "no better than the default order");
}

TEST(Heuristic, DecidesWhatIsPicked) {
  const DeviceInfo h200 = device("h200");
  const CandidateSet set = set_for(dw3(), h200);
  const std::string first(set.candidates.front().schedule->name);
  EXPECT_EQ(picked(nullptr, dw3(), h200).find(first), 0U);
  for (const Candidate& candidate : set.candidates) {
    const std::string name(candidate.schedule->name);
    const Heuristic model = heuristic(heuristic_json(trees_json(name, leaf_json(5))));
    EXPECT_EQ(picked(&model, dw3(), h200).find(name + " "), 0U) << "the only one it knows";
  }
}

}  // namespace
}  // namespace sl::test
