// cuDNN as a rival on a real GPU: it computes right, and is captured into graph replays.
#include "gpu_fixture.hpp"
#include "tuner/cudnn/rival.hpp"

namespace sl::test {
namespace {

class CudnnOnGpu : public Gpu {};

TEST_F(CudnnOnGpu, HasARightAndTimedEngineForOrdinaryCalls) {
  const auto library = cudnn::load_library("", Environment{});
  if (!library.ok()) GTEST_SKIP() << library.error().message;
  const auto opened = cudnn::Rival::open(*device, *library);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const OwnStream stream(*device);
  for (const char* const text : {
           "g144mb32ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc",
           "g144mb32ic144ih56oc144oh56kh3ph1 dt=f32 tag=nchw",
           "g144mb1ic144ih56oc144oh28kh5sh2ph2 dt=bf16 tag=nchw",
           "g32mb1ic128ih56oc128oh56kh3ph1 dt=f16 tag=nhwc wtag=ohwi",
       }) {
    const ConvProblem problem = parse(text).value();
    const auto workspace = Workspace::create(*device, stream, problem, {});
    ASSERT_TRUE(workspace.ok()) << workspace.error().message;
    const cudnn::Chosen chosen = (*opened)->prepare(problem, problem, **workspace, stream, {.every_engine = true});
    std::string attempts;
    for (const cudnn::Attempt& one : chosen.attempts) {
      attempts += one.mode + " " + one.engine + ": " + one.outcome + " " + std::to_string(one.us) + " us\n";
    }
    ASSERT_TRUE(chosen.work) << text << ": " << chosen.error << "\n" << attempts;
    EXPECT_GT(chosen.attempts[chosen.best].us, 0.5) << "an empty graph was timed\n" << attempts;
    EXPECT_LE(chosen.attempts[chosen.best].us, chosen.best_heuristic_us());
    RecordProperty(problem.descriptor(), attempts);
  }
}

}  // namespace
}  // namespace sl::test
