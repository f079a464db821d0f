#include "tuning/workspace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tuning/fake_device.hpp"
#include "tuning/tuning_data.hpp"

namespace sl {
namespace {

using test::FakeRig;

std::unique_ptr<Workspace> make(FakeRig& rig, WorkspaceOptions options = {}) {
  auto made = Workspace::create(rig.device, nullptr, rig.problem, options);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? std::move(made).value() : nullptr;
}

std::byte* y_of(const Workspace& workspace, int set) {
  return static_cast<std::byte*>(workspace.bind(SlParams{}, set).y);
}

TEST(Workspace, HoldsEverySetWithTheSameDataInTheRightPlaces) {
  FakeRig rig;
  rig.problem.bias = Bias::f32;
  rig.problem.residual = true;
  const auto workspace = make(rig);
  ASSERT_NE(workspace, nullptr);
  EXPECT_GT(workspace->sets(), 1);
  const HostData& host = workspace->host_data();
  EXPECT_EQ(host.x.size(), static_cast<std::size_t>(rig.problem.x_elements()) * 2);
  EXPECT_EQ(host.bias.size(), 16U);
  std::vector<const void*> inputs;
  for (int set = 0; set < workspace->sets(); ++set) {
    SlParams params{};
    params.n = 42;
    params = workspace->bind(params, set);
    EXPECT_EQ(params.n, 42);
    EXPECT_EQ(std::memcmp(params.x, host.x.data(), host.x.size()), 0);
    EXPECT_EQ(std::memcmp(params.weight, host.w.data(), host.w.size()), 0);
    EXPECT_EQ(std::memcmp(params.bias, host.bias.data(), host.bias.size()), 0);
    EXPECT_EQ(std::memcmp(params.z, host.z.data(), host.z.size()), 0);
    EXPECT_EQ(std::count(inputs.begin(), inputs.end(), params.x), 0) << "sets share x";
    inputs.push_back(params.x);
  }
  EXPECT_EQ(workspace->bytes(), rig.device.live_bytes);
  EXPECT_TRUE(rig.device.violations.empty()) << rig.device.violations.front();
}

TEST(Workspace, AbsentTensorsAreNull) {
  FakeRig rig;
  const SlParams params = make(rig)->bind(SlParams{}, 0);
  EXPECT_EQ(params.bias, nullptr);
  EXPECT_EQ(params.z, nullptr);
}

TEST(Workspace, PointersHaveExactlyTheProblemsAlignment) {
  for (const int align : {2, 4, 8}) {
    FakeRig rig;
    rig.problem.align = align;
    rig.problem.residual = true;
    const auto workspace = make(rig);
    const SlParams params = workspace->bind(SlParams{}, workspace->sets() - 1);
    for (const void* pointer : {params.x, params.weight, params.z, static_cast<const void*>(params.y)}) {
      const auto address = reinterpret_cast<std::uintptr_t>(pointer);
      EXPECT_EQ(address & (~address + 1), static_cast<std::uintptr_t>(align));
    }
  }
  FakeRig rig;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(y_of(*make(rig), 0)) % 256, 0U);
}

TEST(Workspace, PoisonIsNanInEveryDtype) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    FakeRig rig;
    rig.problem.dtype = dtype;
    const auto workspace = make(rig);
    ASSERT_TRUE(workspace->poison(0).ok());
    const std::vector<std::byte> y = *workspace->read_y(0);
    for (std::int64_t i = 0; i < rig.problem.y_elements(); ++i) {
      EXPECT_TRUE(std::isnan(load_element(dtype, y.data(), i)));
    }
  }
}

TEST(Workspace, RedzonesSayWhatWasWrittenAndWhere) {
  FakeRig rig;
  const auto workspace = make(rig);
  const std::size_t bytes = static_cast<std::size_t>(rig.problem.y_elements()) * 2;
  std::byte* const y = y_of(*workspace, 0);
  ASSERT_TRUE(workspace->poison(0).ok());
  std::memset(y, 0, bytes);
  EXPECT_TRUE(workspace->check_redzones(0).ok()) << "writing all of y is right";

  y[bytes] = y[bytes + 7] = std::byte{1};
  const Status after = workspace->check_redzones(0);
  ASSERT_FALSE(after.ok());
  EXPECT_EQ(after.error().code, Code::wrong_result);
  EXPECT_EQ(after.error().message, "wrote outside y: 2 bytes after its last byte, the nearest 1 away");

  ASSERT_TRUE(workspace->poison(0).ok());
  EXPECT_TRUE(workspace->check_redzones(0).ok()) << "poison arms them again";
  y[-3] = std::byte{1};
  EXPECT_EQ(workspace->check_redzones(0).error().message,
            "wrote outside y: 1 bytes before its first byte, the nearest 3 away");

  ASSERT_TRUE(workspace->poison(0).ok());
  y[bytes + Workspace::redzone_bytes - 1] = std::byte{1};
  EXPECT_FALSE(workspace->check_redzones(0).ok()) << "the last fenced byte counts";
}

TEST(Workspace, OutOfMemoryHalvesTheSets) {
  FakeRig rig;
  const auto all = make(rig);
  const int sets = all->sets();
  const std::size_t needed = all->bytes();
  ASSERT_GE(sets, 8);
  rig.device.memory_limit = rig.device.live_bytes + needed / 2;
  const auto fewer = make(rig);
  ASSERT_NE(fewer, nullptr);
  EXPECT_LE(fewer->sets(), sets / 2);
  EXPECT_GE(fewer->sets(), sets / 8);
  EXPECT_GE(rig.device.failed_allocations, 1U);
}

TEST(Workspace, NotEvenOneSetIsAnErrorAndLeavesNothing) {
  FakeRig rig;
  rig.device.memory_limit = 100'000;
  const auto made = Workspace::create(rig.device, nullptr, rig.problem, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::out_of_memory);
  EXPECT_EQ(rig.device.live_bytes, 0U);
}

TEST(Workspace, StaysWithinItsBytesAndHalfOfWhatIsFree) {
  for (const std::uint64_t limit : {200'000ULL, 400'000ULL, 1'000'000ULL, 5'000'000ULL}) {
    FakeRig rig;
    const auto bounded = make(rig, {.max_bytes = limit});
    ASSERT_NE(bounded, nullptr) << limit;
    EXPECT_LE(rig.device.peak_bytes, limit);

    FakeRig crowded;
    crowded.device.reported_free = limit * 2;
    make(crowded);
    EXPECT_LE(crowded.device.peak_bytes, limit + 10'000) << "the weights come on top";
  }
  FakeRig rig;
  EXPECT_EQ(make(rig, {.max_sets = 3})->sets(), 3);
  const auto tight = Workspace::create(rig.device, nullptr, rig.problem, {.max_bytes = 100'000});
  ASSERT_FALSE(tight.ok());
  EXPECT_EQ(tight.error().code, Code::out_of_memory);
  EXPECT_NE(tight.error().message.find("SLUICE_TUNE_SCRATCH_MB"), std::string::npos);
}

TEST(Workspace, AProblemBeyondAllMemoryIsRefusedBeforeAnythingIsMade) {
  FakeRig rig;
  rig.problem.n = 1LL << 39;
  const auto made = Workspace::create(rig.device, nullptr, rig.problem, {.max_bytes = ~0ULL >> 20});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::out_of_memory);
  EXPECT_EQ(rig.device.allocations, 0U);
}

TEST(Workspace, TheCopyMovesAsManyBytesAndLeavesTheInputsAlone) {
  struct Row {
    const char* what;
    std::int64_t k, stride;
    bool residual;
  };
  for (const Row& row : {Row{"equal", 4, 1, false},
                         {"x larger", 4, 2, false},
                         {"y larger", 12, 1, false},
                         {"residual", 4, 1, true},
                         {"residual, y larger", 12, 1, true}}) {
    FakeRig rig;
    rig.problem.k = row.k;
    rig.problem.stride_h = rig.problem.stride_w = row.stride;
    rig.problem.p = (9 - 1) / row.stride + 1, rig.problem.q = (7 - 1) / row.stride + 1;
    rig.problem.residual = row.residual;
    const auto workspace = make(rig);
    ASSERT_NE(workspace, nullptr) << row.what;
    const int set = workspace->sets() - 1;
    ASSERT_TRUE(workspace->copy_same_bytes(set, nullptr).ok());
    EXPECT_TRUE(rig.device.violations.empty()) << row.what << ": " << rig.device.violations.front();
    const SlParams params = workspace->bind(SlParams{}, set);
    const HostData& host = workspace->host_data();
    EXPECT_EQ(std::memcmp(params.x, host.x.data(), host.x.size()), 0) << row.what;
    if (row.residual) {
      EXPECT_EQ(std::memcmp(params.z, host.z.data(), host.z.size()), 0) << row.what;
    }
  }
}

TEST(TuningData, LargeTensorsAreQuickPeriodicAndNeverAlike) {
  ConvProblem problem = FakeRig::small_problem();
  problem.n = 1000;
  problem.h = problem.w = problem.p = problem.q = 24;
  problem.bias = Bias::f32;
  problem.residual = true;
  const TuningData data = make_tuning_data(problem, 7, Fill::random);
  ASSERT_EQ(data.host.x.size(), static_cast<std::size_t>(problem.x_elements()) * 2);
  ASSERT_EQ(data.host.w.size(), static_cast<std::size_t>(problem.w_elements()) * 2);
  ASSERT_EQ(data.host.bias.size(), 16U);
  ASSERT_EQ(data.host.z.size(), static_cast<std::size_t>(problem.y_elements()) * 2);
  const auto x = [&](std::int64_t i) { return load_element(DType::f16, data.host.x.data(), i); };
  double low = 0, high = 0;
  std::int64_t same_as_next_image = 0;
  const std::int64_t image = problem.x_elements() / problem.n;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    low = std::min(low, x(i)), high = std::max(high, x(i));
    same_as_next_image += x(i) == x(i + image) ? 1 : 0;
    EXPECT_EQ(x(i), x(i + 1'048'573));
  }
  EXPECT_LT(low, -0.99);
  EXPECT_GT(high, 0.99);
  EXPECT_LT(same_as_next_image, 200);
  EXPECT_LE(data.x_max, 1.0);
  EXPECT_GT(data.x_max, 0.99);
  EXPECT_NE(make_tuning_data(problem, 8, Fill::random).host.x, data.host.x);
  EXPECT_EQ(make_tuning_data(problem, 7, Fill::random).host.x, data.host.x);
}

TEST(TuningData, IntegersComeFromTheReference) {
  const ConvProblem problem = FakeRig::small_problem();
  const TuningData data = make_tuning_data(problem, 3, Fill::integer);
  EXPECT_EQ(data.host.x, make_data(problem, 3, Fill::integer).x);
  EXPECT_GE(data.x_max, 1.0);
}

}  // namespace
}  // namespace sl
