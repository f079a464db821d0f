#include "dispatch/counters.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sl {
namespace {

// More threads than rows, so that the last share one: none may lose a count.
TEST(HotCounters, AreExactForAnyNumberOfThreads) {
  HotCounters counters;
  constexpr int threads = static_cast<int>(HotCounters::rows) + 40, times = 2000;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&counters] {
      for (int i = 0; i < times; ++i) {
        counters.add(HotCounters::hit_launched);
        if (i % 2 == 0) counters.add(HotCounters::hit_kept);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(counters.sum(HotCounters::hit_launched), static_cast<std::uint64_t>(threads) * times);
  EXPECT_EQ(counters.sum(HotCounters::hit_kept), static_cast<std::uint64_t>(threads) * times / 2);
  EXPECT_EQ(counters.sum(HotCounters::plan_launched), 0u);
}

TEST(HotCounters, OfTwoObjectsAreApart) {
  HotCounters one, other;
  one.add(HotCounters::plan_launched);
  EXPECT_EQ(one.sum(HotCounters::plan_launched), 1u);
  EXPECT_EQ(other.sum(HotCounters::plan_launched), 0u);
}

TEST(DispatchCounters, JoinTheHotAndTheRest) {
  DispatchCounters counters;
  counters.hot.add(HotCounters::plan_launched);
  counters.hot.add(HotCounters::hit_launched);
  counters.hot.add(HotCounters::hit_launched);
  counters.hot.add(HotCounters::hit_kept);
  counters.launches = 10, counters.kept = 20, counters.plan_hits = 30, counters.plan_misses = 40;
  const DispatchCounts counts = counters.now();
  EXPECT_EQ(counts.launches, 13u);
  EXPECT_EQ(counts.kept, 21u);
  EXPECT_EQ(counts.plan_hits, 33u);
  EXPECT_EQ(counts.plan_misses, 40u);
}

}  // namespace
}  // namespace sl
