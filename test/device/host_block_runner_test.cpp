// The fiber scheduler and the thread pool by themselves: kernels are plain functions here.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "device/host/block_runner.hpp"
#include "device/host/thread_pool.hpp"

namespace sl::test {
namespace {

/// What the functions below read and write: they get it as params->y.
struct Record {
  std::vector<int> started;            // thread ids, in order
  std::set<const void*> stacks;        // address of a local, rounded to 4 KiB
  std::vector<int> after;              // thread ids, in the order they passed the barrier
  const SlHostArray* array = nullptr;  // to touch
};
Record& record(const SlParams* params) { return *static_cast<Record*>(params->y); }

void never_waits(const SlParams* params, SlHostThread* thread) {
  int local = 0;
  record(params).started.push_back(thread->thread_id);
  record(params).stacks.insert(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&local) >> 12));
}

void meets_barrier(const SlParams* params, SlHostThread* thread) {
  record(params).started.push_back(thread->thread_id);
  thread->ops->collective(thread, SL_HOST_BARRIER, 0, 0);
  const bool all_arrived = record(params).started.size() == static_cast<std::size_t>(thread->block_dim);
  record(params).after.push_back(all_arrived ? thread->thread_id : -1);
}

void touches_array(const SlParams* params, SlHostThread* thread) { thread->ops->shared(thread, record(params).array); }

class BlockRunnerTest : public testing::Test {
 protected:
  Status run(SlHostEntry entry, int threads, std::uint64_t seed = 0, std::int64_t block = 0) {
    record_ = {};
    record_.array = array_;
    params_.y = &record_;
    return runner_.run({entry, &name_, 1, &params_, {1000, threads, 0}, seed, 232448}, block);
  }
  const std::string name_ = "kernel_under_test";
  SlParams params_{};
  Record record_;
  const SlHostArray* array_ = nullptr;
  BlockRunner runner_;
};

TEST_F(BlockRunnerTest, ThreadsThatDoNotWaitShareOneFiber) {
  ASSERT_TRUE(run(never_waits, 1024).ok());
  EXPECT_EQ(record_.started.size(), 1024U);
  EXPECT_EQ(record_.stacks.size(), 1U);
  for (int i = 0; i < 1024; ++i) EXPECT_EQ(record_.started[static_cast<std::size_t>(i)], i);
}

TEST_F(BlockRunnerTest, NobodyPassesABarrierBeforeAllArrive) {
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
    for (const int threads : {1, 31, 32, 33, 256, 1024}) {
      ASSERT_TRUE(run(meets_barrier, threads, seed).ok());
      EXPECT_EQ(record_.started.size(), static_cast<std::size_t>(threads));
      EXPECT_EQ(record_.after.size(), static_cast<std::size_t>(threads));
      const std::set<int> passed(record_.after.begin(), record_.after.end());
      EXPECT_EQ(passed.size(), static_cast<std::size_t>(threads));
      EXPECT_FALSE(passed.contains(-1)) << "seed " << seed << " threads " << threads;
    }
  }
}

TEST_F(BlockRunnerTest, OrderFollowsSeedAndBlockOnly) {
  const auto order = [&](std::uint64_t seed, std::int64_t block) {
    EXPECT_TRUE(run(meets_barrier, 64, seed, block).ok());
    std::vector<int> all = record_.started;
    all.insert(all.end(), record_.after.begin(), record_.after.end());
    return all;
  };
  const std::vector<int> first = order(7, 3);
  EXPECT_EQ(order(7, 3), first);
  EXPECT_NE(order(8, 3), first);
  EXPECT_NE(order(7, 4), first);
  EXPECT_NE(std::vector<int>(first.begin(), first.begin() + 64), std::vector<int>(first.begin() + 64, first.end()))
      << "who starts first must not wake first";
  BlockRunner other;
  record_ = {};
  ASSERT_TRUE(other.run({meets_barrier, &name_, 1, &params_, {1000, 64, 0}, 7, 232448}, 3).ok());
  EXPECT_EQ(record_.started, std::vector<int>(first.begin(), first.begin() + 64));
}

TEST_F(BlockRunnerTest, MoreStaticSharedMemoryThanAGpuAllowsIsAnError) {
  const SlHostArray fits = {"fits", 48 * 1024}, too_large = {"too_large", 48 * 1024 + 1};
  array_ = &fits;
  EXPECT_TRUE(run(touches_array, 4).ok());
  array_ = &too_large;
  const Status status = run(touches_array, 4, 0, 12);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::device);
  EXPECT_NE(status.error().message.find("kernel_under_test, block 12: static shared memory is 49168 bytes"),
            std::string::npos)
      << status.error().message;
}

class CountingJob final : public PoolJob {
 public:
  explicit CountingJob(int items) : items_(items) {}
  void participate() noexcept override {
    while (next_++ < items_) ++done_;
  }
  int done() const { return done_; }

 private:
  int items_;
  std::atomic<int> next_{0}, done_{0};
};

TEST(ThreadPool, EveryJobEndsWhoeverAsks) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::atomic<int> wrong{0};
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 6; ++caller) {
      callers.emplace_back([&] {
        for (int round = 0; round < 50; ++round) {
          CountingJob job(round);
          pool.run(job);
          if (job.done() != round) ++wrong;
        }
      });
    }
    callers.clear();
    EXPECT_EQ(wrong, 0) << threads;
  }
}

}  // namespace
}  // namespace sl::test
