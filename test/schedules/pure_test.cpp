// The parts of a schedule that are pure functions: configurations, geometry, parameters; and the candidates of a call.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedules/common.hpp"
#include "schedules/fixture.hpp"
#include "schedules/list.hpp"
#include "support/check.hpp"
#include "support/generators.hpp"
#include "support/problems.hpp"

namespace sl::test {
namespace {

// ---- Config ----

RC_GTEST_PROP(ConfigText, RoundTrips, ()) {
  Config config;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) config.knobs.emplace_back("knob" + std::to_string(i), *rc::gen::arbitrary<int>());
  const auto again = Config::parse(config.to_string());
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == config);
}

TEST(ConfigText, RejectsWhatIsNotOne) {
  for (const char* text : {"vec", "vec=", "=4", "vec=4,", ",vec=4", "vec=4,,cols=2", "vec=4x", "vec= 4",
                           "vec=99999999999", "vec=4,vec=2", "Vec=4", "vec=4;cols=2", "v c=1"}) {
    EXPECT_FALSE(Config::parse(text).has_value()) << text;
  }
  EXPECT_EQ(Config::parse("vec=4,cols=2")->get("cols"), 2);
}

// ---- fast_div ----

std::int64_t divide(std::int64_t a, const SlFastDiv& d) {  // as kernels/common/index.cuh does
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(a) * d.mul) >> d.shift);
}

RC_GTEST_PROP(FastDiv, IsDivision, ()) {
  const auto bits = *rc::gen::inRange(1, 32);
  const std::int64_t d = std::max<std::int64_t>(1, *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << bits) - 1);
  const std::int64_t a = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 31);
  RC_ASSERT(divide(a, fast_div(d)) == a / d);
}

TEST(FastDiv, IsDivisionAtTheEdges) {
  constexpr std::int64_t last = (std::int64_t{1} << 31) - 1;
  std::set<std::int64_t> edges = {1, 2, 3, 5, 7, 641, 6700417, last, last - 1};
  for (int bit = 1; bit < 31; ++bit) {
    for (const std::int64_t off : {-1, 0, 1}) edges.insert((std::int64_t{1} << bit) + off);
  }
  edges.erase(0);
  for (const std::int64_t d : edges) {
    const SlFastDiv fast = fast_div(d);
    EXPECT_EQ(fast.divisor, static_cast<unsigned>(d));
    for (const std::int64_t m : edges) {
      for (const std::int64_t off : {-1, 0, 1}) {
        for (const std::int64_t a : {m + off, last / d * d + off, (m % (last / d + 1)) * d + off}) {
          if (a < 0 || a > last) continue;
          ASSERT_EQ(divide(a, fast), a / d) << a << " / " << d;
        }
      }
    }
  }
}

// ---- The space ----

template <class Check>
void for_each_candidate(const Check& check) {
  std::size_t turn = 0;
  for (const NamedProblem& row : test_problems()) {
    for (const ConvProblem& problem : spread_variants(row.problem, turn++)) {
      for (const Schedule* schedule : all_schedules()) {
        if (schedule->can_run(problem, h200)) continue;
        const auto configs = schedule->configs(problem, h200);
        EXPECT_FALSE(configs.empty()) << schedule->name << " " << problem.to_string();
        EXPECT_LE(configs.size(), 8U) << schedule->name << " " << problem.to_string();
        for (const Config& config : configs) check(*schedule, problem, config);
      }
    }
  }
}

TEST(Space, EveryConfigurationFitsAndIsNamedOnce) {
  for_each_candidate([](const Schedule& schedule, const ConvProblem& problem, const Config& config) {
    const Refusal refusal = schedule.fits(problem, config);
    EXPECT_FALSE(refusal.has_value()) << schedule.name << " " << config.to_string() << " " << problem.to_string()
                                      << ": " << *refusal;
    EXPECT_EQ(Config::parse(config.to_string()), config);
    std::set<std::string> names;
    for (const auto& [name, value] : schedule.kernel(problem, config).constants) {
      EXPECT_TRUE(names.insert(name).second) << schedule.name << " has two constants " << name;
    }
  });
}

TEST(Space, GeometryCoversTheWork) {
  for_each_candidate([](const Schedule& schedule, const ConvProblem& problem, const Config& config) {
    SlParams params{};
    schedule.params(problem, config, params);
    const Geometry geometry = schedule.geometry(problem, config);
    const std::string what = std::string(schedule.name) + " " + config.to_string() + " " + problem.to_string();
    EXPECT_EQ(geometry.block, config.get("threads")) << what;
    EXPECT_EQ(schedule.kernel(problem, config).threads, geometry.block) << what;
    EXPECT_LE(geometry.grid, max_grid) << what;
    EXPECT_EQ(geometry.grid == 0, problem.n == 0) << what;
    EXPECT_EQ(params.n, problem.n) << what;
    EXPECT_EQ(params.pad_left, problem.pad_left) << what;
    EXPECT_EQ(params.x, nullptr) << what;
    const std::int64_t threads = geometry.grid * geometry.block;
    const int lanes = &schedule == &grp_reduce ? config.get("lanes") : 1;
    if (&schedule == &dw_mult || &schedule == &grp_plane) {  // strips x channel lanes, `turns` strips a thread
      const std::int64_t channels = &schedule == &dw_mult ? problem.c : problem.k / config.get("outs");
      EXPECT_GE(threads * params.aux[1], params.aux[0] * channels) << what;
    } else {
      EXPECT_GE(threads, params.work * lanes) << what;
      EXPECT_LT(threads - params.work * lanes, geometry.block + lanes) << what;
    }
  });
}

TEST(Space, HugeProblemsGetAGridThatExists) {
  // 2^33 strips of one output: more blocks than a grid has, unless a thread takes several.
  ConvProblem problem = parsed("mb1g2ic4ih1oc4oh1kh1");
  problem.n = std::int64_t{1} << 35;
  ASSERT_TRUE(problem.needs_64bit_offsets());
  for (const Config& config : grp_plane.configs(problem, h200)) {
    const Geometry geometry = grp_plane.geometry(problem, config);
    EXPECT_LE(geometry.grid, max_grid);
    SlParams params{};
    grp_plane.params(problem, config, params);
    EXPECT_GE(geometry.grid * geometry.block * params.aux[1], params.aux[0] * (problem.k / config.get("outs")));
    for (const auto& [name, value] : grp_plane.kernel(problem, config).constants) {
      if (name == "INDEX64") {
        EXPECT_EQ(value, 1);
      }
    }
  }
  ConvProblem depthwise = parsed("mb1g4ic4ih1oc4oh1kh1");
  depthwise.n = std::int64_t{1} << 38;
  const Refusal refusal = dw_flat.can_run(depthwise, h200);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_NE(refusal->find("1099511627776"), std::string::npos) << *refusal;
}

// Dynamic shapes must not recompile: n is never compiled in, and a base schedule's kernel holds no size at all.
TEST(Space, KernelsHoldNoSizes) {
  for_each_candidate([](const Schedule& schedule, const ConvProblem& problem, const Config& config) {
    if (problem.n == 0) return;
    ConvProblem more = problem;
    more.n += 3;
    const std::string here = schedule.kernel(problem, config).canonical();
    EXPECT_EQ(here, schedule.kernel(more, config).canonical()) << schedule.name << " compiles n in";
    if (!schedule.size_generic) return;
    more.h += 2 * problem.stride_h;
    more.w += 5 * problem.stride_w;
    more.p += 2;
    more.q += 5;
    more.groups *= 3, more.c *= 3, more.k *= 3;
    if (schedule.fits(more, config)) return;
    EXPECT_EQ(here, schedule.kernel(more, config).canonical()) << schedule.name << " compiles a size in";
  });
}

RC_GTEST_PROP(Space, RandomProblemsHaveABase, ()) {
  const auto problem = *small_problem();
  const Schedule* base = base_schedule(problem, h200);
  RC_ASSERT(base == (problem.depthwise() ? &dw_flat : &grp_plane));
  const CandidateSet set = candidates(problem, h200, {}, {});
  RC_ASSERT(std::any_of(set.candidates.begin(), set.candidates.end(),
                        [&](const Candidate& candidate) { return candidate.schedule == base; }));
  for (const Candidate& candidate : set.candidates) {
    RC_ASSERT(!candidate.schedule->fits(problem, candidate.config).has_value());
  }
}

// The GPU's test of random problems draws until one suits a schedule; some schedule must not be left out of it.
TEST(Space, RandomProblemsMeetEverySchedule) {
  std::set<std::string_view> met;
  for (std::uint64_t draw = 0; draw < most_draws && met.size() < all_schedules().size(); ++draw) {
    const ConvProblem problem = drawn_problem(test_seed(2), draw);
    for (const Schedule* schedule : all_schedules()) {
      if (met.contains(schedule->name) || problem.empty() || schedule->can_run(problem, h200)) continue;
      met.insert(schedule->name);
    }
  }
  for (const Schedule* schedule : all_schedules()) EXPECT_TRUE(met.contains(schedule->name)) << schedule->name;
}

// ---- Candidates ----

TEST(Candidates, RefusalsSayWhy) {
  const ConvProblem problem = parsed("g8ic8ih9oc8oh9kh3ph1");
  const std::vector<std::string> only = {"dw_flat", "dw_row8"}, disabled = {"dw_row8"};
  const CandidateSet set = candidates(problem, h200, only, disabled);
  for (const Candidate& candidate : set.candidates) EXPECT_EQ(candidate.schedule, &dw_flat);
  std::map<std::string, std::string> reasons;
  for (const auto& [schedule, reason] : set.refusals) reasons[schedule] = reason;
  EXPECT_EQ(reasons.size(), all_schedules().size() - 1);
  EXPECT_NE(reasons["dw_row8"].find("disabled"), std::string::npos);
  EXPECT_NE(reasons["grp_plane"].find("not among"), std::string::npos);
}

// A budget that ends early must have tried every schedule's best guess, not one schedule's whole space.
TEST(Candidates, EveryScheduleComesOnceBeforeAnyComesTwice) {
  const CandidateSet set = candidates(parsed("g64mb8ic64ih28oc64oh28kh3ph1"), h200, {}, {});
  std::map<const Schedule*, std::size_t> turns;
  std::size_t turn = 0;
  for (const Candidate& candidate : set.candidates) {
    const std::size_t mine = turns[candidate.schedule]++;
    EXPECT_GE(mine, turn) << candidate.schedule->name << " is late with " << candidate.config.to_string();
    turn = mine;
    const std::vector<Config> own = candidate.schedule->configs(parsed("g64mb8ic64ih28oc64oh28kh3ph1"), h200);
    EXPECT_EQ(candidate.config, own[mine]);
  }
  EXPECT_GE(turns.size(), 2U);
}

TEST(Candidates, CapabilityIsChecked) {
  const ConvProblem problem = parsed("g8ic8ih9oc8oh9kh3ph1");
  for (const DeviceInfo& info : {device("old", "cuda", 75, 40), device("MI300X", "rocm", 0, 304)}) {
    const CandidateSet set = candidates(problem, info, {}, {});
    EXPECT_TRUE(set.candidates.empty());
    EXPECT_EQ(set.refusals.size(), all_schedules().size());
    EXPECT_NE(set.refusals.front().reason.find("needs 80"), std::string::npos) << set.refusals.front().reason;
    EXPECT_EQ(base_schedule(problem, info), nullptr);
  }
}

TEST(Candidates, DigestsTellSchedulesAndSetsApart) {
  std::set<std::string> digests;
  for (const Schedule* schedule : all_schedules()) {
    EXPECT_TRUE(digests.insert(schedule->digest().hex()).second);
    EXPECT_EQ(find_schedule(schedule->name), schedule);
  }
  EXPECT_EQ(find_schedule("dw_nothing"), nullptr);
  const ConvProblem problem = parsed("g8ic8ih9oc8oh9kh3ph1");
  const CandidateSet all = candidates(problem, h200, {}, {});
  const std::vector<std::string> only = {"dw_flat"};
  EXPECT_EQ(all.digest(), candidates(problem, h200, {}, {}).digest());
  EXPECT_NE(all.digest(), candidates(problem, h200, only, {}).digest());
}

}  // namespace
}  // namespace sl::test
