// Matrix instructions, copies and exchanges of kernel code on the host device.
#include <gtest/gtest.h>

#include <string>

#include "jit/host_kernels.hpp"
#include "support/matrix_cases.hpp"

namespace sl::test {
namespace {

TEST(HostMatrix, EveryInstructionMovesWhatItSays) {
  std::vector<KernelSpec> specs;
  for (const MatrixCase& c : matrix_cases()) specs.push_back(testing_kernel(c.kernel, "matrix", c.constants, 32));
  prefetch(specs);
  for (const MatrixCase& c : matrix_cases()) {
    const KernelSpec spec = testing_kernel(c.kernel, "matrix", c.constants, 32);
    for (const std::uint64_t seed : {0U, 1U, 99U}) {
      const RunOutcome got = run_on_host(spec, c.x.data(), c.x.size(), c.want.size() * 4, {.seed = seed});
      ASSERT_TRUE(got.status.ok()) << c.what() << ": " << got.status.error().message;
      for (std::size_t i = 0; i < c.want.size(); ++i) {
        ASSERT_EQ(got.at<std::uint32_t>(i), c.want[i]) << c.what() << " word " << i;
      }
    }
  }
}

TEST(HostMatrix, AnIncompleteWarpIsAnError) {
  const KernelSpec spec = testing_kernel("partial_mma", "matrix", {{"LIVE", 20}}, 32);
  for (const std::uint64_t seed : {0U, 5U}) {
    const RunOutcome got = run_on_host(spec, "", 1, 128, {.seed = seed, .grid = 2});
    ASSERT_FALSE(got.status.ok());
    EXPECT_EQ(got.status.error().code, Code::device);
    EXPECT_NE(got.status.error().message.find("20 of 32 lanes"), std::string::npos) << got.status.error().message;
  }
  const RunOutcome whole = run_on_host(testing_kernel("partial_mma", "matrix", {{"LIVE", 32}}, 32), "", 1, 128, {});
  EXPECT_TRUE(whole.status.ok()) << whole.status.error().message;
}

}  // namespace
}  // namespace sl::test
