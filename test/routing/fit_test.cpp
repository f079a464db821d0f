// Learning from tuned calls with a known structure: it is found again, also where it was not seen.
#include "routing/fit.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "routing/fixture.hpp"
#include "routing/grow_tree.hpp"
#include "routing/left_out.hpp"

namespace sl::test {
namespace {

using Time = std::function<double(const ConvProblem&, const Candidate&, int rank)>;

/// Calls of many shapes, whose times are `time`'s.
std::vector<TunedCall> calls_of(const Time& time) {
  std::vector<TunedCall> calls;
  const DeviceInfo h200 = device("h200");
  for (const int channels : {32, 64, 96, 144, 192}) {
    for (const int size : {7, 10, 14, 20, 28, 40, 56}) {
      for (const char* rest : {"dt=f32 tag=nhwc", "dt=f32 tag=nchw"}) {
        const std::string c = std::to_string(channels), h = std::to_string(size);
        TunedCall call;
        call.problem = problem("g" + c + "mb8ic" + c + "ih" + h + "oc" + c + "oh" + h + "kh3ph1 " + rest);
        call.set = candidates(call.problem, h200, {}, {});
        std::map<const Schedule*, int> ranks;
        for (const Candidate& candidate : call.set.candidates) {
          call.time_us.push_back(time(call.problem, candidate, ranks[candidate.schedule]++));
        }
        calls.push_back(std::move(call));
      }
    }
  }
  return calls;
}

bool is(const Candidate& candidate, const char* schedule) { return candidate.schedule->name == schedule; }

/// dw_direct is best on small planes, dw_row8 on large ones; of each, the second choice is.
double structured(const ConvProblem& call, const Candidate& candidate, int rank) {
  const bool small = call.p * call.q <= 200;
  double time = 10;
  if (is(candidate, "dw_direct")) time = small ? 1 : 4;
  if (is(candidate, "dw_row8")) time = small ? 3 : 1;
  return time * (rank == 1 ? 1 : 1.4) * static_cast<double>(call.macs());
}

Fitted fitted(std::vector<TunedCall> calls, const FitOptions& options = {}) {
  auto result = fit(std::move(calls), device("h200"), options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return std::move(result).value();
}

TEST(Fit, FindsTheStructureAgainAndOnShapesLeftOut) {
  const auto calls = calls_of(structured);
  const Fitted found = fitted(calls);
  EXPECT_EQ(found.heuristic.predicts(), Predicts::time);
  EXPECT_DOUBLE_EQ(found.own.quality.picked, 1) << found.own.worst_call;
  EXPECT_DOUBLE_EQ(found.left_out.quality.picked, 1) << found.left_out.worst_call;
  EXPECT_DOUBLE_EQ(found.left_out.quality.worst, 1);
  EXPECT_GT(found.left_out.quality.default_order, 1.5);
  EXPECT_GT(found.left_out.quality.default_worst, found.left_out.quality.default_order);
  EXPECT_EQ(found.left_out.quality.calls, static_cast<std::int64_t>(calls.size())) << "each call is left out once";
  EXPECT_EQ(found.left_out_by, "shapes");
  EXPECT_LE(found.branches, 16U) << "no larger than what is there to learn";
  EXPECT_GE(found.branches, 2U);
  // A shape and a batch that nobody measured.
  const DeviceInfo h200 = device("h200");
  for (const auto& [text, schedule] : {std::pair("g80mb2ic80ih12oc80oh12kh3ph1 dt=f32 tag=nhwc", "dw_direct"),
                                       std::pair("g80mb2ic80ih48oc80oh48kh3ph1 dt=f32 tag=nchw", "dw_row8")}) {
    const ConvProblem call = problem(text);
    const CandidateSet set = candidates(call, h200, {}, {});
    const Ranking ranked = ranking(&found.heuristic, call, h200, set, set);
    const Candidate& best = set.candidates[ranked.order.front()];
    EXPECT_EQ(best.schedule->name, schedule) << text;
    std::vector<Config> configs;
    for (const Candidate& other : set.candidates) {
      if (other.schedule == best.schedule) configs.push_back(other.config);
    }
    ASSERT_GT(configs.size(), 1U) << text;
    EXPECT_EQ(best.config, configs[1]) << text;
  }
}

TEST(Fit, IsTheSameWhateverTheOrderOfTheCalls) {
  auto calls = calls_of(structured);
  const std::string first = fitted(calls).heuristic.to_json();
  std::mt19937 random(7);
  for (int i = 0; i < 2; ++i) {
    std::shuffle(calls.begin(), calls.end(), random);
    EXPECT_EQ(fitted(calls).heuristic.to_json(), first);
  }
}

TEST(Fit, WritesWhatReadsBack) {
  Fitted found = fitted(calls_of(structured));
  HeuristicEvidence evidence;
  evidence.calls = 70;
  evidence.left_out = found.left_out_by;
  evidence.groups = found.groups;
  evidence.quality = found.left_out.quality;
  found.heuristic.describe(evidence, "a note");
  const auto read = Heuristic::from_json(found.heuristic.to_json(), "fitted.json");
  ASSERT_TRUE(read.ok()) << read.error().message << found.heuristic.to_json();
  EXPECT_EQ(read->to_json(), found.heuristic.to_json());
  EXPECT_TRUE(read->matches(device("h200")));
  const DeviceInfo h200 = device("h200");
  for (const TunedCall& call : calls_of(structured)) {
    EXPECT_EQ(ranking(&*read, call.problem, h200, call.set, call.set).predicted,
              ranking(&found.heuristic, call.problem, h200, call.set, call.set).predicted);
  }
}

TEST(Fit, WholeNetworksAreLeftOut) {
  auto calls = calls_of(structured);
  for (TunedCall& call : calls) call.networks = {call.problem.c <= 64 ? "narrow" : "wide"};
  std::vector<std::string> steps;
  FitOptions options;
  options.step = [&steps](const std::string& name, std::size_t of) {
    steps.push_back(name);
    EXPECT_EQ(of, 3U);
  };
  const Fitted found = fitted(calls, options);
  EXPECT_EQ(found.left_out_by, "networks");
  EXPECT_EQ(found.groups, 2);
  EXPECT_EQ(steps, (std::vector<std::string>{"narrow", "wide", "nothing"}));
  EXPECT_EQ(found.left_out.quality.calls, static_cast<std::int64_t>(calls.size()));
  EXPECT_DOUBLE_EQ(found.left_out.quality.picked, 1) << found.left_out.worst_call;
}

// What no feature tells is not learned: with times that only noise orders, no model does better on shapes left out.
TEST(Fit, NoiseIsNotLearned) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(1, 1.05);
  const auto result =
      fit(calls_of([&](const ConvProblem&, const Candidate&, int) { return 100 * noise(random); }), device("h200"), {});
  ASSERT_FALSE(result.ok()) << result->heuristic.to_json();
  EXPECT_EQ(result.error().code, Code::invalid);
  EXPECT_NE(result.error().message.find("nothing learned"), std::string::npos);
}

TEST(Fit, ADefaultOrderThatIsRightIsLeftAlone) {
  auto calls = calls_of(structured);
  for (TunedCall& call : calls) {
    for (std::size_t i = 0; i < call.time_us.size(); ++i) call.time_us[i] = 100 + static_cast<double>(i);
  }
  const auto result = fit(calls, device("h200"), {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("schedules' own order"), std::string::npos) << result.error().message;
}

TEST(Fit, FailedCandidatesAreAvoided) {
  const Fitted found = fitted(calls_of([](const ConvProblem& call, const Candidate& candidate, int rank) {
    return is(candidate, "dw_row8") ? 0.0 : structured(call, candidate, rank);
  }));
  EXPECT_DOUBLE_EQ(found.left_out.quality.picked, 1) << found.left_out.worst_call;
  auto calls = calls_of(structured);
  for (TunedCall& call : calls) call.time_us.front() = 0;  // the default order's pick
  EXPECT_GE(fitted(calls).own.quality.default_worst, 10) << "counts as ten times the best";
}

TEST(Fit, WinnersAloneTeachSchedules) {
  auto calls = calls_of(structured);
  for (TunedCall& call : calls) {
    const auto best = std::min_element(call.time_us.begin(), call.time_us.end()) - call.time_us.begin();
    call.winner = call.set.candidates[static_cast<std::size_t>(best)].schedule;
    call.time_us.clear();
  }
  const Fitted found = fitted(calls);
  EXPECT_EQ(found.heuristic.predicts(), Predicts::winner);
  EXPECT_EQ(found.left_out.quality.picked, 0) << "no winning schedule is missed";
  EXPECT_GT(found.left_out.quality.default_order, 0.5);
  for (const ScheduleTrees& trees : found.heuristic.schedules()) EXPECT_TRUE(trees.config.empty()) << trees.name;
  // Of a schedule its own first choice is taken.
  const DeviceInfo h200 = device("h200");
  const TunedCall& call = calls.front();
  const Ranking ranked = ranking(&found.heuristic, call.problem, h200, call.set, call.set);
  const Candidate& best = call.set.candidates[ranked.order.front()];
  const auto first = std::find_if(call.set.candidates.begin(), call.set.candidates.end(),
                                  [&](const Candidate& one) { return one.schedule == best.schedule; });
  EXPECT_EQ(best.config, first->config);
}

TEST(Fit, TooLittleToLearnFrom) {
  EXPECT_FALSE(fit({}, device("h200"), {}).ok());
  auto calls = calls_of(structured);
  calls.resize(1);
  const auto result = fit(calls, device("h200"), {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("one shape only"), std::string::npos);
  calls = calls_of(structured);
  for (TunedCall& call : calls) call.networks = {"mine"};
  const auto one = fit(calls, device("h200"), {});
  ASSERT_FALSE(one.ok());
  EXPECT_NE(one.error().message.find("one network, mine"), std::string::npos) << one.error().message;
}

TEST(LeftOut, AllOfAShapeTogether) {
  std::vector<ConvProblem> problems;
  for (const char* rest : {"dt=f32 tag=nhwc", "dt=f16 tag=nchw"}) {
    for (const char* batch : {"1", "32"}) {
      for (const int c : {8, 16, 24, 32, 40, 48}) {
        const std::string n = std::to_string(c);
        problems.push_back(problem("g" + n + "mb" + batch + "ic" + n + "ih14oc" + n + "oh14kh3ph1 " + rest));
      }
    }
  }
  EXPECT_EQ(count_shapes(problems), 6U);
  const auto folds = folds_by_shape(problems);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    EXPECT_LT(folds[i], shape_folds);
    for (std::size_t j = 0; j < i; ++j) {
      if (shape_of(problems[i]) != shape_of(problems[j])) continue;
      EXPECT_EQ(folds[i], folds[j]);
    }
  }
}

TEST(GrowTree, BranchesComeInTheOrderOfWhatTheyTell) {
  TreeSamples loud, quiet;
  for (TreeSamples* one : {&loud, &quiet}) {
    one->columns.push_back({"plane", "", {}});
    one->columns.push_back({"dtype", "f16", {}});
    for (int i = 0; i < 16; ++i) {
      one->columns[0].values.push_back(i < 8 ? 49 : 784);
      one->columns[1].values.push_back(i % 2);
      one->weight.push_back(1);
      one->target.push_back(one == &loud ? (i < 8 ? 0 : 4) + 0.1 * (i % 2) : i % 2);
    }
  }
  const Grove grove({quiet, loud}, 10, 2);
  EXPECT_EQ(grove.branches(), 4U) << "no branch where nothing is left to tell";
  const auto same = [](double mean, std::int64_t) { return mean; };
  EXPECT_EQ(grove.tree(0, 0, same).size(), 1U);
  EXPECT_EQ(grove.tree(0, 1, same).size(), 1U) << "the first branch is the loud tree's";
  const Tree first = grove.tree(1, 1, same);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[0].feature, "plane");
  EXPECT_EQ(first[0].at_most, 196) << "the middle of 49 and 784 as sizes go";
  EXPECT_DOUBLE_EQ(first[first[0].yes].value, 0.05);
  EXPECT_DOUBLE_EQ(first[first[0].no].value, 4.05);
  EXPECT_EQ(first[first[0].yes].cases, 8);
  const Tree second = grove.tree(0, 2, same);
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(second[0].is, "f16");
  EXPECT_DOUBLE_EQ(second[second[0].yes].value, 1) << "a word's yes is where it is that word";
  EXPECT_EQ(Grove({loud}, 10, 9).branches(), 0U) << "a leaf rests on so many cases";
}

}  // namespace
}  // namespace sl::test
