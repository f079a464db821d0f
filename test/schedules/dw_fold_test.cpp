// Shapes of dw_fold that the problem table, which is small, does not reach: planes of several tiles, unrolled ends,
// runs of two rows, warps that are not full.
#include <gtest/gtest.h>

#include <utility>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"
#include "support/check.hpp"
#include "support/full_tests.hpp"

namespace sl::test {
namespace {

constexpr const char* calls[] = {
    "g24mb2ic24ih14oc24oh14kh7ph3",                        // an odd number of pairs of rows
    "g19mb1ic19ih14oc19oh14kh7ph3 bias=f32 act=relu z=1",  // warps that are not full, weights 4 bytes a copy
    "g6mb3ic6ih28oc6oh28kh7ph3 bias=same act=silu",        // channels wrap inside a warp
    "g3mb2ic3ih28oc3oh28kh9ph4",                           //
    "g3mb1ic3ih56oc3oh56kh7ph3 z=1",                       // one warp a block at most widths
    "g10mb1ic10ih32oc10oh32kh9ph4 bias=same",              // reads of 16 bytes
    "g5mb1ic5ih64oc5oh64kh5ph2",                           // 16 tiles
    "g8mb1ic8ih16oc8oh16kh5ph2",                           //
    "g9mb2ic9ih12oc9oh12kh5ph2 act=clip",                  //
    "g7mb1ic7ih10iw18oc7oh10ow18kh5kw3ph2pw1",             // 9 columns, kernel not square
    "g4mb2ic4ih20iw24oc4oh20ow24kh3kw5ph1pw2",             // 3 rows of the kernel
    "g5mb1ic5ih20iw20oc5oh14ow16kh7kw5ph0pw0",             // no padding
    "g5mb1ic5ih12iw10oc5oh16ow12kh5kw3ph4pw2",             // pads of the kernel less one
    "g4mb1ic4ih13iw16oc4oh14ow16kh4kw5ph2pw2",             // an even kernel, an odd height
    "g4mb1ic4ih12iw26oc4oh12ow26kh5kw7ph2pw3",             // 13 columns
    "g3mb1ic3ih16iw19oc3oh16ow16kh3kw7ph1pw0 bias=f32 act=leaky_relu alpha=0.1",  // odd rows, even outputs
    "g3mb1ic3ih14iw14oc3oh14ow16kh9kw7ph4pw5",                                    // more padding on one side
    "g40mb3ic40ih12oc40oh12kh7ph3",  // more heads and tails than rows between
    "g5mb2ic5ih10oc5oh10kh9ph4",     //
};

TEST(DwFold, EveryConfigurationOfItsCalls) {
  std::string why_not;
  if (!host_compiler_present(&why_not)) GTEST_SKIP() << why_not;
  HostRunner runner;
  std::vector<Job> jobs;
  for (const char* call : calls) {
    const Result<ConvProblem> problem = parse(call);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    ASSERT_FALSE(dw_fold.can_run(*problem, runner.info())) << call << ": " << *dw_fold.can_run(*problem, runner.info());
    std::vector<Config> configs = dw_fold.configs(*problem, runner.info());
    for (std::size_t i = 0; i < configs.size(); ++i) {
      Config& config = configs[i];
      if (!full_tests() && (i + jobs.size()) % 3 != 0) continue;  // a third of them, others in every call
      ASSERT_FALSE(dw_fold.fits(*problem, config)) << call << ": " << *dw_fold.fits(*problem, config);
      jobs.push_back({.problem = *problem, .schedule = &dw_fold, .config = std::move(config), .seed = test_seed(41)});
    }
  }
  test_jobs(runner, std::move(jobs));
}

}  // namespace
}  // namespace sl::test
