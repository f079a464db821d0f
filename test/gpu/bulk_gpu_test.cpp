// Bulk copies and mbarriers of kernels/common/bulk.cuh on a real GPU: the host device's ring, and schedules whose
// blocks go on from unit to unit.
#include <numeric>

#include "gpu_fixture.hpp"
#include "schedule_cases.hpp"
#include "support/bulk_cases.hpp"
#include "support/check.hpp"

namespace sl::test {
namespace {

TEST_F(GpuJit, ARingOfBulkCopiesMovesEveryByte) {
  if (!device_supports(90, device->info())) GTEST_SKIP() << device->info().name << " has no bulk copies";
  constexpr int words = 64, pieces = 1000;
  const OwnStream stream(*device);
  std::vector<unsigned> x(std::size_t{words} * pieces), want(x.size());
  std::iota(x.begin(), x.end(), 1U);
  for (std::size_t i = 0; i < x.size(); ++i) want[i] = x[i / words * words + words - 1 - i % words];
  auto in = device->allocate(4 * x.size()), out = device->allocate(4 * x.size());
  ASSERT_OK(in);
  ASSERT_OK(out);
  ASSERT_OK(device->copy_in((*in)->data(), x.data(), 4 * x.size(), stream));
  for (const int stages : {1, 2, 5}) {
    KernelSpec spec = testing_spec("bulk", {{"STAGES", stages}, {"FAULT", 0}});
    spec.source = "testing/bulk.cuh";
    spec.threads = words;
    const int smem = 4 * words * (stages + 2) + 8 * stages;
    const auto kernel = load(spec, smem);
    ASSERT_NE(kernel, nullptr);
    ASSERT_OK(device->fill((*out)->data(), 0xff, 4 * x.size(), stream));
    SlParams params{};
    params.x = (*in)->data();
    params.y = (*out)->data();
    params.aux[0] = pieces;
    ASSERT_OK(device->launch(*kernel, {.grid = 1, .block = words, .dynamic_smem = smem}, params, stream));
    EXPECT_EQ(read<unsigned>(*device, **out, x.size(), stream), want) << stages << " stages";
  }
}

TEST_F(GpuJit, BulkCopiesOfBlocksThatGoOn) {
  if (!device_supports(90, device->info())) GTEST_SKIP() << device->info().name << " has no bulk copies";
  std::vector<ScheduleCase> cases;
  for (BulkCase& c : bulk_cases()) cases.push_back({c.problem, c.schedule, std::move(c.config)});
  EXPECT_EQ(check_cases(cases, test_seed(6)), cases.size());
}

}  // namespace
}  // namespace sl::test
