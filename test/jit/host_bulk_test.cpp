// Bulk copies and mbarriers of kernel code on the host device: what is right, and that what is wrong shows.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "jit/host_kernels.hpp"

namespace sl::test {
namespace {

constexpr std::uint64_t seeds[] = {0, 1, 2, 3, 77, 0xdeadbeefULL};
constexpr int words = 64, pieces = 9;

KernelSpec bulk(int stages, int fault) {
  return testing_kernel("bulk", "bulk", {{"STAGES", stages}, {"FAULT", fault}}, words);
}

RunOutcome run(int stages, int fault, std::uint64_t seed) {
  std::vector<unsigned> x(words * pieces);
  std::iota(x.begin(), x.end(), 1U);
  return run_on_host(bulk(stages, fault), x.data(), 4 * x.size(), 4 * x.size(),
                     {.seed = seed, .dynamic_smem = 4 * words * (stages + 2) + 8 * stages, .aux0 = pieces});
}

std::size_t wrong_words(const RunOutcome& got) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < std::size_t{words} * pieces; ++i)
    wrong += got.at<unsigned>(i) != i / words * words + words - i % words ? 1U : 0U;
  return wrong;
}

TEST(HostBulk, ARingMovesEveryByteInAnyOrder) {
  prefetch({bulk(1, 0), bulk(2, 0), bulk(5, 0)});
  for (const int stages : {1, 2, 5}) {
    for (const std::uint64_t seed : seeds) {
      const RunOutcome got = run(stages, 0, seed);
      ASSERT_TRUE(got.status.ok()) << got.status.error().message;
      EXPECT_EQ(wrong_words(got), 0U) << "stages " << stages << " seed " << seed;
    }
  }
}

TEST(HostBulk, AMissingWaitShows) {
  for (const int fault : {1, 2}) {
    std::size_t wrong = 0;
    for (const std::uint64_t seed : seeds) {
      const RunOutcome got = run(2, fault, seed);
      wrong += got.status.ok() ? wrong_words(got) : 1;
    }
    EXPECT_NE(wrong, 0U) << "fault " << fault;
  }
}

TEST(HostBulk, PhasesThatNeverEndAreErrors) {
  struct Case {
    int fault;
    std::uint64_t seed;
    const char* says;
  };
  const Case cases[] = {{3, 0, "at mbarrier_wait()"},           {3, 3, "at mbarrier_wait()"},
                        {4, 0, "at mbarrier_wait()"},           {4, 3, "at mbarrier_wait()"},
                        {5, 0, "bulk copies on their way"},     {6, 0, "has all its arrivals already"},
                        {6, 3, "has all its arrivals already"}, {7, 0, "must be a multiple of the size"}};
  for (const Case& c : cases) {
    const RunOutcome got = run(2, c.fault, c.seed);
    ASSERT_FALSE(got.status.ok()) << "fault " << c.fault << " seed " << c.seed;
    EXPECT_NE(got.status.error().message.find(c.says), std::string::npos) << got.status.error().message;
  }
}

}  // namespace
}  // namespace sl::test
