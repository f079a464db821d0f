// Matrix instructions, copies and exchanges of kernels/common/platform.cuh on a real GPU: the host device's cases.
#include "gpu_fixture.hpp"
#include "support/matrix_cases.hpp"

namespace sl::test {
namespace {

TEST_F(GpuJit, EveryMatrixInstructionMovesWhatItSays) {
  const OwnStream stream(*device);
  for (const MatrixCase& c : matrix_cases()) {
    KernelSpec spec = testing_spec(c.kernel, c.constants);
    spec.source = "testing/matrix.cuh";
    spec.threads = 32;
    const auto kernel = load(spec);
    ASSERT_NE(kernel, nullptr) << c.what();
    auto x = device->allocate(c.x.size()), y = device->allocate(c.want.size() * 4);
    ASSERT_OK(x);
    ASSERT_OK(y);
    ASSERT_OK(device->copy_in((*x)->data(), c.x.data(), c.x.size(), stream));
    ASSERT_OK(device->fill((*y)->data(), 0xff, c.want.size() * 4, stream));
    SlParams params{};
    params.x = (*x)->data();
    params.y = (*y)->data();
    ASSERT_OK(device->launch(*kernel, {.grid = 1, .block = 32, .dynamic_smem = 0}, params, stream));
    EXPECT_EQ(read<std::uint32_t>(*device, **y, c.want.size(), stream), c.want) << c.what();
  }
}

}  // namespace
}  // namespace sl::test
