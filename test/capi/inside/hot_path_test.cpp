// The C ABI's hot path on a device that counts: what a known call does and, above all, does not do.
#include <gtest/gtest.h>
#include <unistd.h>

#include "capi/call_builder.hpp"
#include "capi/context.hpp"
#include "dispatch/counted.hpp"
#include "dispatch/fakes.hpp"

namespace sl::test {
namespace {

/// A context on the fakes, as make_context() would fill it.
struct Inside {
  explicit Inside(std::shared_ptr<const RoutingTable> routing = nullptr) : context({}, LogLevel::error) {
    if (routing) rig.routing = std::move(routing);
    rig.options.policy = Policy::immediate;
    rig.make();  // for the binary cache
    rig.dispatcher.reset();
    context.owner = getpid();
    context.device = rig.device;
    context.binaries = rig.binaries;
    context.dispatcher.emplace(rig.device, rig.binaries, nullptr, rig.routing, nullptr, Environment{}, rig.options,
                               context.log);
  }
  sluice_counters counters() const {
    sluice_counters counters = SLUICE_COUNTERS_INIT;
    EXPECT_EQ(sluice_get_counters(&context, &counters), SLUICE_OK);
    return counters;
  }

  Rig rig;
  sluice_context context;
};

struct Variant {
  const char* name;
  ConvProblem problem;
  bool conv1d = false;
};

std::vector<Variant> variants() {
  const ConvProblem plain = depthwise(2);
  ConvProblem biased = plain, added = plain, row = plain, clipped = plain;
  biased.bias = Bias::f32;
  added.residual = true;
  clipped.activation = Activation::clip, clipped.beta = 6.0F;
  row.h = row.p = row.r = 1, row.pad_top = 0;
  return {{"plain", plain}, {"bias", biased}, {"residual", added}, {"clip", clipped}, {"conv1d", row, true}};
}

/// 100 calls of `body`, none of which may allocate or lock.
template <class Body>
void expect_bare(const Body& body) {
  const Counted before = counted();
  int failures = 0;
  for (int i = 0; i < 100; ++i) failures += body() ? 0 : 1;
  const Counted after = counted();
  EXPECT_EQ(failures, 0) << sluice_last_error();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.locks, before.locks);
}

TEST(CHotPath, AKnownCallIsOneLookUpAndOneLaunch) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Inside inside;
    CallBuilder call(variant.problem, 1);
    if (variant.conv1d) call.conv1d();
    ASSERT_EQ(sluice_conv2d(&inside.context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
    expect_bare([&] { return sluice_conv2d(&inside.context, &call.args, nullptr) == SLUICE_OK; });
    const sluice_counters counters = inside.counters();
    EXPECT_EQ(counters.plan_hits, 100u);
    EXPECT_EQ(counters.plan_misses, 1u);
    EXPECT_EQ(counters.launches, 101u);
    EXPECT_EQ(inside.rig.device->launched, 101u);
    EXPECT_EQ(inside.rig.device->last_y, call.y.data());
    EXPECT_EQ(inside.rig.device->last_n, 2);
  }
}

TEST(CHotPath, AKeptCallIsOneLookUp) {
  Inside inside(keep_everything());
  CallBuilder call(depthwise(), 1);
  ASSERT_EQ(sluice_conv2d(&inside.context, &call.args, nullptr), SLUICE_KEPT);
  expect_bare([&] { return sluice_conv2d(&inside.context, &call.args, nullptr) == SLUICE_KEPT; });
  EXPECT_STREQ(sluice_last_error(), "kept: run your own convolution; sluice_explain gives the reason");
  EXPECT_EQ(inside.counters().plan_hits, 100u);
  EXPECT_EQ(inside.counters().kept, 101u);
  EXPECT_EQ(inside.rig.device->launched, 0u);
}

TEST(CHotPath, APlanLaunchesAndLooksNothingUp) {
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    Inside inside;
    CallBuilder call(variant.problem, 1);
    if (variant.conv1d) call.conv1d();
    sluice_plan* plan = nullptr;
    ASSERT_EQ(sluice_prepare(&inside.context, &call.args, nullptr, &plan), SLUICE_OK) << sluice_last_error();
    const sluice_conv2d_args& a = call.args;
    const sluice_counters before = inside.counters();
    expect_bare([&] {
      return sluice_plan_run(plan, a.x.data, a.w.data, a.bias.data, a.z.data, a.y.data, nullptr) == SLUICE_OK;
    });
    const sluice_counters after = inside.counters();
    EXPECT_EQ(after.launches, before.launches + 100);
    EXPECT_EQ(after.plan_hits, before.plan_hits);
    EXPECT_EQ(after.plan_misses, before.plan_misses);
    sluice_plan_destroy(plan);
  }
}

TEST(CHotPath, PointersAreCheckedWithEveryKnownCall) {
  for (const bool keeps : {false, true}) {
    Inside inside(keeps ? keep_everything() : nullptr);
    CallBuilder call(depthwise(), 1);
    ASSERT_EQ(sluice_conv2d(&inside.context, &call.args, nullptr), keeps ? SLUICE_KEPT : SLUICE_OK);
    const std::uint64_t launched = inside.rig.device->launched;
    call.args.y.data = call.x.data() + 16;
    EXPECT_EQ(sluice_conv2d(&inside.context, &call.args, nullptr), SLUICE_INVALID);
    EXPECT_NE(std::string(sluice_last_error()).find("overlaps x.data"), std::string::npos) << sluice_last_error();
    call.args.y.data = nullptr;
    EXPECT_EQ(sluice_conv2d(&inside.context, &call.args, nullptr), SLUICE_INVALID);
    EXPECT_NE(std::string(sluice_last_error()).find("y.data = NULL"), std::string::npos) << sluice_last_error();
    EXPECT_EQ(inside.rig.device->launched, launched);
  }
}

TEST(CHotPath, ALaunchThatFailsIsKeptWithItsReasonOrAnError) {
  Inside inside;
  CallBuilder call(depthwise(), 1);
  sluice_plan* plan = nullptr;
  ASSERT_EQ(sluice_prepare(&inside.context, &call.args, nullptr, &plan), SLUICE_OK);
  ASSERT_EQ(sluice_conv2d(&inside.context, &call.args, nullptr), SLUICE_OK);
  const int compiled = inside.rig.compiler->compiled;
  inside.rig.device->launch_error = "the device fell off the bus";
  EXPECT_EQ(sluice_conv2d(&inside.context, &call.args, nullptr), SLUICE_KEPT);
  EXPECT_NE(std::string(sluice_last_error()).find("fell off the bus"), std::string::npos) << sluice_last_error();
  EXPECT_EQ(sluice_plan_run(plan, call.x.data(), call.w.data(), nullptr, nullptr, call.y.data(), nullptr),
            SLUICE_DEVICE_ERROR);
  EXPECT_NE(std::string(sluice_last_error()).find("fell off the bus"), std::string::npos) << sluice_last_error();
  const sluice_counters counters = inside.counters();
  EXPECT_EQ(counters.launches, 1u);
  EXPECT_EQ(counters.fallbacks, 1u);
  EXPECT_EQ(counters.plan_hits, 2u) << "a known call whose launch fails is not decided anew";
  EXPECT_EQ(counters.plan_misses, 0u);
  EXPECT_EQ(inside.rig.compiler->compiled, compiled);
  sluice_plan_destroy(plan);
}

}  // namespace
}  // namespace sl::test
