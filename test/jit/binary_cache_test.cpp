// One compile per key, whoever asks and however often; failures are told and forgotten.
#include "jit/binary_cache.hpp"

#include <gtest/gtest.h>

#include <barrier>

#include "binary_cache_fixture.hpp"

namespace sl {
namespace {

using test::CountingCompiler;
using test::fake_spec;
using test::fake_specs;
using test::h200;

class BinaryCacheTest : public testing::Test {
 protected:
  Log log;
  std::shared_ptr<CountingCompiler> compiler = std::make_shared<CountingCompiler>();
  BinaryCache cache{compiler, nullptr, log};
};

TEST_F(BinaryCacheTest, ResultsComeInOrderFromOneBatch) {
  const auto specs = fake_specs(5);
  const auto results = cache.get(specs, h200(), 3);
  ASSERT_EQ(results.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(results[i].ok());
    EXPECT_EQ((*results[i])->entry, specs[i].entry());
  }
  EXPECT_EQ(compiler->batches, 1);
  EXPECT_EQ(compiler->last_threads, 3);
  EXPECT_EQ(cache.counters().compiles, 5U);
  EXPECT_TRUE(cache.get({}, h200(), 1).empty());
}

TEST_F(BinaryCacheTest, OnlyWhatIsMissingIsCompiled) {
  (void)cache.get(fake_specs(3), h200(), 1);
  const auto results = cache.get(fake_specs(5), h200(), 1);
  EXPECT_EQ(compiler->compiled, 5);
  EXPECT_EQ(cache.counters().binary_memory_hits, 3U);
  EXPECT_TRUE(results[0].ok() && results[4].ok());
}

TEST_F(BinaryCacheTest, WhatIsThereIsToldBeforeTheRestIsCompiled) {
  (void)cache.get(fake_specs(2), h200(), 1);
  std::vector<std::size_t> order;
  std::vector<int> compiled_then;
  const std::vector<KernelSpec> specs = {fake_spec(7), fake_spec(0), fake_spec(8), fake_spec(1), fake_spec(7)};
  cache.get(specs, h200(), 1, [&](std::size_t i, const Result<std::shared_ptr<const Binary>>& binary) {
    EXPECT_TRUE(binary.ok() && (*binary)->entry == specs[i].entry()) << i;
    order.push_back(i);
    compiled_then.push_back(compiler->compiled);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 3, 0, 2, 4}));
  EXPECT_EQ(compiled_then, (std::vector<int>{2, 2, 3, 4, 4}));
}

TEST_F(BinaryCacheTest, TheSameSpecTwiceInABatchIsOneCompile) {
  const std::vector<KernelSpec> specs = {fake_spec(1), fake_spec(1), fake_spec(2), fake_spec(1)};
  const auto results = cache.get(specs, h200(), 1);
  EXPECT_EQ(compiler->compiled, 2);
  ASSERT_TRUE(results[0].ok() && results[3].ok());
  EXPECT_EQ(*results[0], *results[3]) << "the same object";
}

TEST_F(BinaryCacheTest, SixteenThreadsOneKeyOneCompile) {
  compiler->delay = std::chrono::milliseconds(30);
  const KernelSpec spec = fake_spec(7);
  std::barrier start(16);
  std::vector<std::shared_ptr<const Binary>> got(16);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      const auto results = cache.get({&spec, 1}, h200(), 1);
      if (results[0].ok()) got[i] = *results[0];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiler->compiled, 1);
  EXPECT_EQ(cache.counters().compiles, 1U);
  EXPECT_EQ(cache.counters().binary_memory_hits, 15U);
  for (const auto& binary : got) EXPECT_EQ(binary, got[0]);
  EXPECT_NE(got[0], nullptr);
}

// Batches that overlap in opposite orders: each waits for keys of the other, and neither for ever.
TEST_F(BinaryCacheTest, OverlappingBatchesDoNotDeadlock) {
  compiler->delay = std::chrono::milliseconds(2);
  auto forward = fake_specs(12), backward = fake_specs(12);
  std::reverse(backward.begin(), backward.end());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (std::size_t from = 0; from < 12; from += 3) {
        const auto& specs = i % 2 == 0 ? forward : backward;
        for (const auto& result : cache.get(std::span(specs).subspan(from), h200(), 1)) EXPECT_TRUE(result.ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiler->compiled, 12);
}

TEST_F(BinaryCacheTest, AFailureReachesEveryWaiterAndIsForgotten) {
  compiler->delay = std::chrono::milliseconds(50);
  compiler->failures = 1;
  const KernelSpec spec = fake_spec(7);
  std::barrier start(4);
  std::atomic<int> told{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      const auto result = cache.get({&spec, 1}, h200(), 1)[0];
      if (!result.ok() && result.error().message == "no luck with " + spec.entry()) ++told;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(told, 1);  // a thread that came after the failure compiled anew
  EXPECT_EQ(cache.counters().compile_failures, 1U);
  EXPECT_TRUE(cache.get({&spec, 1}, h200(), 1)[0].ok());
  EXPECT_EQ(compiler->compiled, 2);
}

TEST_F(BinaryCacheTest, OneBadSpecHarmsNoOther) {
  compiler->failures = 1;
  const auto results = cache.get(fake_specs(3), h200(), 1);
  EXPECT_FALSE(results[0].ok());
  EXPECT_TRUE(results[1].ok() && results[2].ok());
}

TEST_F(BinaryCacheTest, AnExceptionEndsTheFlightAndDoesNotEscape) {
  compiler->throws = true;
  const KernelSpec spec = fake_spec(1);
  const auto failed = cache.get({&spec, 1}, h200(), 1)[0];
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("compiler threw"), std::string::npos) << failed.error().message;
  compiler->throws = false;
  EXPECT_TRUE(cache.get({&spec, 1}, h200(), 1)[0].ok());
}

TEST_F(BinaryCacheTest, ACompilerThatDoesNotAnswerIsAnErrorOfEachAndPoisonsNoKey) {
  compiler->silent = true;
  for (const auto& result : cache.get(fake_specs(3), h200(), 1)) EXPECT_EQ(result.error().message, "no answer");
  compiler->silent = false;
  for (const auto& result : cache.get(fake_specs(3), h200(), 1)) EXPECT_TRUE(result.ok());
}

TEST_F(BinaryCacheTest, DevicesOfOneCapabilityShareAndOthersDoNot) {
  const KernelSpec spec = fake_spec(1);
  DeviceInfo h100 = h200();
  h100.name = "NVIDIA H100";
  (void)cache.get({&spec, 1}, h200(), 1);
  (void)cache.get({&spec, 1}, h100, 1);
  EXPECT_EQ(compiler->compiled, 1);
  h100.capability = 100;
  EXPECT_EQ((*cache.get({&spec, 1}, h100, 1)[0])->arch, "sm_100");
  EXPECT_EQ(compiler->compiled, 2);
}

TEST_F(BinaryCacheTest, ADeviceNewerThanTheCompilerGetsPtx) {
  const KernelSpec spec = fake_spec(1);
  DeviceInfo future = h200();
  future.capability = 130;
  for (int i = 0; i < 2; ++i) {
    const auto result = cache.get({&spec, 1}, future, 1)[0];
    ASSERT_TRUE(result.ok());
    EXPECT_EQ((*result)->format, Binary::Format::ptx);
    EXPECT_EQ((*result)->arch, "compute_121");
  }
  EXPECT_EQ(compiler->compiled, 1);
}

TEST_F(BinaryCacheTest, NoStoreAndNoCompilerSaysBoth) {
  BinaryCache nothing(nullptr, nullptr, log);
  const KernelSpec spec = fake_spec(1);
  const auto result = nothing.get({&spec, 1}, h200(), 1)[0];
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::environment);
  for (const char* const text : {"no binary store", "no compiler", "testing_decode", "sm_90"})
    EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
  EXPECT_FALSE(nothing.compiler().identity().available);
}

TEST_F(BinaryCacheTest, MemoryIsBounded) {
  std::vector<std::weak_ptr<const Binary>> seen;
  compiler->padding = std::size_t{40} << 20;  // the second binary is too much beside the first
  for (int i = 0; i < 3; ++i) {
    const KernelSpec spec = fake_spec(i);
    seen.push_back(*cache.get({&spec, 1}, h200(), 1)[0]);
  }
  EXPECT_TRUE(seen[0].expired());
  EXPECT_FALSE(seen[2].expired());
}

TEST(BinaryKey, EveryPartCounts) {
  const KernelSpec spec = fake_spec(1);
  const CompilerIdentity one{true, "compiler 1", "/a", ""}, two{true, "compiler 2", "/a", ""};
  KernelSpec other_source = spec, other_threads = spec;
  other_source.source = "testing/arithmetic.cuh";
  other_threads.threads = 256;
  const Digest key = binary_key(spec, "sm_90", one);
  EXPECT_EQ(key, binary_key(fake_spec(1), "sm_90", one));
  EXPECT_NE(key, binary_key(spec, "sm_90", two));
  EXPECT_NE(key, binary_key(spec, "sm_80", one));
  EXPECT_NE(key, binary_key(fake_spec(2), "sm_90", one));
  EXPECT_NE(key, binary_key(other_source, "sm_90", one));
  EXPECT_NE(key, binary_key(other_threads, "sm_90", one));
  EXPECT_NE(key, binary_alias_key(spec, "sm_90"));
  EXPECT_NE(binary_alias_key(spec, "sm_90"), binary_alias_key(spec, "sm_80"));
}

}  // namespace
}  // namespace sl
