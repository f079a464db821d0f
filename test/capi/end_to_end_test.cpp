// The whole path through the C ABI on the host device: compiled by the system's compiler, run on the CPU, checked
// against the reference.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capi/call_builder.hpp"
#include "dispatch/counted.hpp"
#include "sluice/sluice.hpp"
#include "support/check.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

constexpr std::uint64_t seed = 20240601;

ConvProblem small(DType dtype, Layout layout) {
  ConvProblem problem;
  problem.n = 2;
  problem.c = problem.k = problem.groups = 8;
  problem.h = problem.p = 7;
  problem.w = problem.q = 9;
  problem.r = 3, problem.s = 5;
  problem.pad_top = 1, problem.pad_left = 2;
  problem.dtype = dtype;
  problem.layout = layout;
  return problem;
}

testing::AssertionResult right(const ConvProblem& problem, const CallBuilder& call, std::uint64_t data_seed = seed) {
  return output_is_right({problem, data_seed, Fill::random, Arithmetic::mma, "C ABI"}, make_data(problem, data_seed),
                         call.y);
}

std::vector<ConvProblem> problems() {
  ConvProblem grouped = small(DType::bf16, Layout::nhwc);
  grouped.groups = 2, grouped.k = 12, grouped.stride_h = 2, grouped.p = 4, grouped.bias = Bias::f32;
  ConvProblem epilogue = small(DType::f32, Layout::nchw);
  epilogue.bias = Bias::same, epilogue.residual = true, epilogue.activation = Activation::clip, epilogue.beta = 6.0F;
  return {small(DType::f32, Layout::nchw), small(DType::f16, Layout::nhwc), grouped, epilogue};
}

TEST(EndToEnd, LookUpAndRunAndPrepareAndRun) {
  const HostContext context;
  for (const ConvProblem& problem : problems()) {
    ASSERT_TRUE(validate(problem).ok()) << validate(problem).error().message;
    SCOPED_TRACE(problem.to_string());
    CallBuilder call(problem, seed);
    ASSERT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
    EXPECT_TRUE(right(problem, call));

    CallBuilder prepared(problem, seed);
    sluice_plan* plan = nullptr;
    ASSERT_EQ(sluice_prepare(context, &prepared.args, nullptr, &plan), SLUICE_OK) << sluice_last_error();
    const sluice_conv2d_args& a = prepared.args;
    EXPECT_EQ(sluice_plan_run(plan, a.x.data, a.w.data, a.bias.data, a.z.data, a.y.data, nullptr), SLUICE_OK)
        << sluice_last_error();
    EXPECT_TRUE(right(problem, prepared));
    EXPECT_EQ(prepared.y, call.y) << "the same plan gives the same bits";
    EXPECT_EQ(sluice_plan_run(plan, nullptr, a.w.data, a.bias.data, a.z.data, a.y.data, nullptr), SLUICE_INVALID);
    EXPECT_EQ(sluice_plan_run(plan, a.y.data, a.w.data, a.bias.data, a.z.data, a.y.data, nullptr), SLUICE_INVALID);
    sluice_plan_destroy(plan);
  }
  EXPECT_EQ(context.counters().tunings, 0u);
}

TEST(EndToEnd, ResidualInPlace) {
  const HostContext context;
  ConvProblem problem = small(DType::f32, Layout::nhwc);
  problem.residual = true;
  CallBuilder call(problem, seed);
  call.y = call.z;
  call.args.y.data = call.args.z.data = call.y.data();
  ASSERT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
  EXPECT_TRUE(right(problem, call));
}

TEST(EndToEnd, Conv1d) {
  const HostContext context;
  ConvProblem problem = small(DType::f32, Layout::nchw);
  problem.h = problem.p = problem.r = 1;
  problem.pad_top = 0;
  CallBuilder call(problem, seed);
  call.conv1d();
  call.args.stride[0] = call.args.dilation[0] = call.args.pad[0] = call.args.pad[2] = -99;  // do not count
  ASSERT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
  EXPECT_TRUE(right(problem, call));
}

TEST(EndToEnd, AnEmptyPlanRunsWithoutData) {
  const HostContext context;
  ConvProblem problem = small(DType::f16, Layout::nchw);
  problem.n = 0;
  CallBuilder call(problem, seed);
  sluice_plan* plan = nullptr;
  ASSERT_EQ(sluice_prepare(context, &call.args, nullptr, &plan), SLUICE_OK) << sluice_last_error();
  EXPECT_EQ(sluice_plan_run(plan, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), SLUICE_OK)
      << sluice_last_error();
  EXPECT_EQ(sluice_plan_run(plan, nullptr, call.w.data(), nullptr, nullptr, nullptr, nullptr), SLUICE_OK)
      << sluice_last_error();
  sluice_plan_destroy(plan);
}

TEST(EndToEnd, AMisalignedPointerGetsItsOwnPlan) {
  const HostContext context;
  const ConvProblem problem = small(DType::f16, Layout::nhwc);
  CallBuilder aligned(problem, seed), call(problem, seed);
  ASSERT_EQ(sluice_conv2d(context, &aligned.args, nullptr), SLUICE_OK) << sluice_last_error();
  call.x.insert(call.x.begin(), 2, std::byte{0x55});
  call.args.x.data = call.x.data() + 2;
  ASSERT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
  EXPECT_TRUE(right(problem, call));
  EXPECT_EQ(context.counters().plan_misses, 2u);

  sluice_plan* plan = nullptr;
  ASSERT_EQ(sluice_prepare(context, &aligned.args, nullptr, &plan), SLUICE_OK) << sluice_last_error();
  EXPECT_EQ(sluice_plan_run(plan, call.args.x.data, call.w.data(), nullptr, nullptr, call.y.data(), nullptr),
            SLUICE_INVALID);
  EXPECT_NE(std::string(sluice_last_error()).find("aligned to 2"), std::string::npos) << sluice_last_error();
  sluice_plan_destroy(plan);
}

TEST(EndToEnd, FirstUseTunesAndASecondContextNeedsNeitherCompilerNorTuner) {
  const TempDir cache;
  const ConvProblem problem = small(DType::f32, Layout::nhwc);
  std::vector<std::byte> first;
  {
    const HostContext context(SLUICE_FIRST_USE, cache.path().c_str());
    CallBuilder call(problem, seed);
    ASSERT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
    EXPECT_TRUE(right(problem, call));
    EXPECT_EQ(context.counters().tunings, 1u);
    EXPECT_GT(context.counters().compiles, 0u);
    first = call.y;
    const std::string record = explained(context, call.args);
    EXPECT_NE(record.find("\"tuned\""), std::string::npos) << record;
  }
  setenv("SLUICE_HOST_CXX", "/nowhere/c++", 1);
  const HostContext context(SLUICE_FIRST_USE, cache.path().c_str());
  unsetenv("SLUICE_HOST_CXX");
  CallBuilder call(problem, seed);
  ASSERT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
  EXPECT_EQ(call.y, first);
  const sluice_counters counters = context.counters();
  EXPECT_EQ(counters.compiles, 0u);
  EXPECT_EQ(counters.tunings, 0u);
  EXPECT_EQ(counters.decision_hits, 1u);
  EXPECT_GE(counters.binary_hits, 1u);
}

TEST(EndToEnd, NoCompilerIsKeptOrAnErrorThatSaysSo) {
  setenv("SLUICE_HOST_CXX", "/nowhere/c++", 1);
  const HostContext context;
  unsetenv("SLUICE_HOST_CXX");
  CallBuilder call;
  EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_KEPT);
  EXPECT_NE(std::string(sluice_last_error()).find("/nowhere/c++"), std::string::npos) << sluice_last_error();
  EXPECT_EQ(context.counters().fallbacks, 1u);
  call.args.regular = 0;
  EXPECT_NE(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK);
  EXPECT_NE(std::string(sluice_last_error()).find("REQUIRED call g4"), std::string::npos) << sluice_last_error();
}

TEST(EndToEnd, TheKeptPathAllocatesAndLocksNothing) {
  if (!counts()) GTEST_SKIP() << "a sanitizer owns operator new and pthread_mutex_lock";
  const std::uint64_t untouched = counted().allocations;
  const HostContext context(SLUICE_OFF);
  ASSERT_GT(counted().allocations, untouched) << "the library's allocations are not counted";
  CallBuilder call, strided;
  strided.x_strides = {1, 2, 3, 4};
  strided.args.x.strides = strided.x_strides.data();
  for (const sluice_conv2d_args* args : {&call.args, &strided.args}) {
    ASSERT_EQ(sluice_conv2d(context, args, nullptr), SLUICE_KEPT);
    const Counted before = counted();
    for (int i = 0; i < 100; ++i) {
      if (sluice_conv2d(context, args, nullptr) != SLUICE_KEPT) FAIL();
    }
    const Counted after = counted();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.locks, before.locks);
    EXPECT_NE(std::string(sluice_last_error()), "");
  }
  EXPECT_EQ(context.counters().kept, 202u);
}

TEST(EndToEnd, ExplainText) {
  const HostContext context;
  char* json = nullptr;
  ASSERT_EQ(sluice_explain_text(context, "g8mb2ic8ih7oc8oh7kh3ph1 dt=f16 tag=nhwc", 1, &json), SLUICE_OK)
      << sluice_last_error();
  EXPECT_NE(std::string(json).find("\"OPTIONAL\""), std::string::npos) << json;
  sluice_string_free(json);
  ASSERT_EQ(sluice_explain_text(context, "g8mb2ic8ih7oc8oh7kh3ph1 regular=no", 1, &json), SLUICE_OK);
  EXPECT_NE(std::string(json).find("\"REQUIRED\""), std::string::npos) << json;
  sluice_string_free(json);
  EXPECT_EQ(sluice_explain_text(context, "g8mb2ic8ih7oc8oh7kh3ph1 regular=maybe", 1, &json), SLUICE_INVALID);
  EXPECT_EQ(sluice_explain_text(context, "not a descriptor", 1, &json), SLUICE_INVALID);
  EXPECT_EQ(json, nullptr);
  EXPECT_EQ(context.counters().compiles, 0u);
}

TEST(EndToEnd, TheWrapperRunsACall) {
  const ConvProblem problem = small(DType::f32, Layout::nchw);
  CallBuilder data(problem, seed);
  sluice::Context context;
  EXPECT_EQ(context.conv2d(sluice::Conv2d(), nullptr).code(), SLUICE_INVALID);
  const auto options = sluice::Options().device("host").cache_dir("off").policy(SLUICE_IMMEDIATE);
  const sluice::Status made = sluice::Context::create(options, context);
  ASSERT_TRUE(made) << made.message();
  sluice::Conv2d call;
  call.x(data.x.data(), SLUICE_F32, {2, 8, 7, 9}).w(data.w.data(), SLUICE_F32, {8, 1, 3, 5});
  call.y(data.y.data(), SLUICE_F32, {2, 8, 7, 9}).groups(8).pad(1, 2, 1, 2);
  const sluice::Status ran = context.conv2d(call, nullptr);
  ASSERT_TRUE(ran) << ran.name() << ": " << ran.message();
  EXPECT_TRUE(right(problem, data));

  sluice::Plan plan;
  ASSERT_TRUE(context.prepare(call, nullptr, plan));
  const std::vector<std::byte> once = data.y;
  data.y = poisoned_output(problem);
  const sluice::Plan moved = std::move(plan);
  ASSERT_TRUE(moved.run(data.x.data(), data.w.data(), nullptr, nullptr, data.y.data(), nullptr));
  EXPECT_EQ(data.y, once);
  std::string json;
  EXPECT_TRUE(context.explain(call, true, json));
  EXPECT_TRUE(context.explain("g8mb2ic8ih7oc8oh7kh3ph1", true, json));
  EXPECT_NE(json.find("OPTIONAL"), std::string::npos);

  call.x(data.x.data(), SLUICE_F32, {2, 8, 7, 9}, {1, 1, 1, 1});
  const sluice::Status kept = context.conv2d(call, nullptr);
  EXPECT_TRUE(kept.kept() && !kept && !kept.failed()) << kept.name();
  sluice_counters counters;
  EXPECT_TRUE(context.counters(counters));
  EXPECT_EQ(counters.launches, 2u);
}

/// Exit status of `body` run in a forked child; -1 where it was killed.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) body();
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Exit, WithALiveContextAndTuningUnderWay) {
  EXPECT_EQ(in_child([] {
              alarm(60);
              auto* context = new HostContext(SLUICE_BACKGROUND);
              auto* call = new CallBuilder(small(DType::f32, Layout::nchw), seed);
              const bool served = sluice_conv2d(*context, &call->args, nullptr) == SLUICE_OK;
              exit(served ? 0 : 1);  // NOLINT: static destructors run under the tuning thread
            }),
            0);
}

TEST(Exit, AForkedChildDestroysTheParentsContext) {
  const HostContext context;
  EXPECT_EQ(in_child([&] {
              alarm(20);
              CallBuilder call;
              const sluice_status status = sluice_conv2d(context, &call.args, nullptr);
              sluice_context_destroy(context.handle);
              _exit(status == SLUICE_ENVIRONMENT ? 0 : 1);
            }),
            0);
  CallBuilder call;
  EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
}

}  // namespace
}  // namespace sl::test
