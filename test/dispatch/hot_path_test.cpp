// The hot path: no lock, no allocation, one look-up, whatever its answer is.
#include <gtest/gtest.h>

#include "dispatch/counted.hpp"
#include "dispatch/fakes.hpp"

namespace sl::test {
namespace {

TEST(HotPath, TheCountersCount) {
  if (!counts()) GTEST_SKIP() << "a sanitizer owns operator new and pthread_mutex_lock";
  const Counted before = counted();
  std::mutex mutex;
  { const std::lock_guard lock(mutex); }
  int* volatile kept = new int(1);  // volatile: an optimiser may elide the pair
  delete kept;
  EXPECT_EQ(counted().locks, before.locks + 1);
  EXPECT_EQ(counted().allocations, before.allocations + 1);
}

TEST(HotPath, AKnownCallLaunchesWithoutLockOrAllocation) {
  Rig rig;
  rig.make();
  Error error;
  ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::ok) << error.message;
  const std::uint64_t launched = rig.device->launched, hits = rig->counters().plan_hits;
  const ConvProblem problem = depthwise();
  const Tensors tensors = any_tensors();
  const Counted before = counted();
  for (int i = 0; i < 100; ++i) {
    if (rig.dispatcher->conv2d(problem, tensors, nullptr, Regular::yes, error) != Code::ok) FAIL() << error.message;
  }
  const Counted after = counted();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.locks, before.locks);
  EXPECT_EQ(rig.device->launched, launched + 100);
  EXPECT_EQ(rig->counters().plan_hits, hits + 100);
  EXPECT_EQ(rig.device->last_y, tensors.y);
}

TEST(HotPath, AKeptCallCostsOneLookUp) {
  Rig rig;
  rig.routing = keep_everything();
  rig.make();
  Error error;
  ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::kept);
  EXPECT_NE(error.message.find("default"), std::string::npos) << error.message;
  Error untouched;
  const Counted before = counted();
  for (int i = 0; i < 100; ++i) {
    if (rig.dispatcher->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, untouched) != Code::kept) FAIL();
  }
  const Counted after = counted();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.locks, before.locks);
  EXPECT_TRUE(untouched.message.empty());
  EXPECT_EQ(rig->counters().plan_hits, 100u);
  EXPECT_EQ(rig->counters().kept, 101u);
  EXPECT_EQ(rig.device->launched, 0u);
  const auto record = rig->explain(depthwise(), Regular::yes, true);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->route, "keep");
  EXPECT_NE(record->reason, "");
}

TEST(HotPath, APreparedPlanLooksNothingUp) {
  Rig rig;
  rig.make();
  const auto plan = rig->prepare(depthwise(), nullptr, Regular::yes);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const std::uint64_t hits = rig->counters().plan_hits, misses = rig->counters().plan_misses;
  const Counted before = counted();
  for (int i = 0; i < 100; ++i) {
    if (!rig.dispatcher->run(**plan, any_tensors(), nullptr).ok()) FAIL();
  }
  const Counted after = counted();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.locks, before.locks);
  EXPECT_EQ(rig->counters().plan_hits, hits);
  EXPECT_EQ(rig->counters().plan_misses, misses);
  EXPECT_EQ(rig->counters().launches, 100u);
}

TEST(HotPath, AnEmptyCallReturnsAtOnce) {
  Rig rig;
  rig.make();
  Error error;
  EXPECT_EQ(rig->conv2d(depthwise(0), {}, nullptr, Regular::no, error), Code::ok) << error.message;
  const auto plan = rig->prepare(depthwise(0), nullptr, Regular::yes);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(rig->run(**plan, {}, nullptr).ok());
  EXPECT_EQ(rig.device->launched, 0u);
  EXPECT_EQ(rig.tuner.calls, 0);
  ConvProblem broken = depthwise(0);
  broken.groups = 5;
  EXPECT_EQ(rig->conv2d(broken, {}, nullptr, Regular::yes, error), Code::invalid);
  EXPECT_NE(error.message.find("groups"), std::string::npos) << error.message;
}

TEST(HotPath, ALaunchThatFailsIsKeptOrAnErrorWithItsSignature) {
  Rig rig;
  rig.make();
  Error error;
  ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::ok);
  ASSERT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::no, error), Code::ok);
  rig.device->launch_error = "the device fell off the bus";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::yes, error), Code::kept);
  }
  EXPECT_EQ(rig->counters().fallbacks, 3u);
  EXPECT_EQ(rig.warnings().size(), 1u) << "one cause warns once";
  EXPECT_EQ(rig->conv2d(depthwise(), any_tensors(), nullptr, Regular::no, error), Code::device);
  EXPECT_NE(error.message.find(depthwise().to_string()), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("fell off the bus"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace sl::test
