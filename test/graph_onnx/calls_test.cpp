// What a model calls: every node, with the reason why it is no call of ours.
#include <gtest/gtest.h>

#include <map>

#include "graph_onnx/model.hpp"
#include "models.hpp"

namespace sl::test {
namespace {

Result<std::vector<graph::OnnxCall>> calls_of(const std::string& graph, std::optional<std::int64_t> batch = {}) {
  SL_ASSIGN(graph::OnnxModel model, graph::OnnxModel::parse(model_of(graph).SerializeAsString(), "test.onnx"));
  const std::string before = model.bytes();
  auto calls = model.calls(batch);
  EXPECT_EQ(model.bytes(), before) << "the model is only looked at";
  return calls;
}

constexpr const char* two =
    "g (float[1,8,6,6] x, float[8,1,3,3] w, float[8] b) => (float[1,8,6,6] z) {"
    " y = Conv<group=8, pads=[1,1,1,1]>(x, w, b) r = Relu(y) z = Conv<group=8, pads=[1,1,1,1]>(r, w) }";

TEST(OnnxCalls, AreTheNodesInOrderWithWhatIsFolded) {
  const auto calls = calls_of(two);
  ASSERT_TRUE(calls.ok()) << calls.error().message;
  ASSERT_EQ(calls->size(), 3u);
  EXPECT_EQ((*calls)[0].reason, "");
  EXPECT_EQ((*calls)[0].problem.to_string(), "g8mb1ic8ih6oc8oh6kh3ph1 dt=f32 tag=nchw bias=same act=relu");
  EXPECT_EQ((*calls)[1].reason, "no convolution");
  EXPECT_EQ((*calls)[2].problem.to_string(), "g8mb1ic8ih6oc8oh6kh3ph1 dt=f32 tag=nchw");
}

TEST(OnnxCalls, ABatchThatIsNotFixedSaysSoUnlessItIsGiven) {
  const char* const graph = "g (float[N,8,6,6] x, float[8,1,3,3] w) => (float[N,8,4,4] z) { z = Conv<group=8>(x, w) }";
  const auto open = calls_of(graph);
  ASSERT_TRUE(open.ok()) << open.error().message;
  EXPECT_TRUE((*open)[0].open_batch);
  EXPECT_NE((*open)[0].reason.find("--batch"), std::string::npos) << (*open)[0].reason;
  const auto given = calls_of(graph, 5);
  ASSERT_TRUE(given.ok()) << given.error().message;
  EXPECT_FALSE((*given)[0].open_batch);
  EXPECT_EQ((*given)[0].problem.n, 5);
}

TEST(OnnxCalls, ReasonsAreSharedByTheirNodes) {
  const auto calls = calls_of(
      "g (double[1,8,6,6] x, double[8,1,3,3] w, float[1,8,6,6,6] v, float[8,1,1,1,1] u, float[1,8,6,6] t,"
      " float[8,8,3,3] s) => (double[1,8,2,2] z, float[1,8,6,6,6] q, float[1,8,8,8] p) {"
      " y = Conv<group=8>(x, w) z = Conv<group=8>(y, w) q = Conv<group=8>(v, u) p = ConvTranspose(t, s) }");
  ASSERT_TRUE(calls.ok()) << calls.error().message;
  std::map<std::string, int> reasons;
  for (const auto& call : *calls) ++reasons[call.reason];
  const std::map<std::string, int> want = {{"only float, float16 and bfloat16 are served", 2},
                                           {"only 1-d and 2-d convolutions are served", 1},
                                           {"op ConvTranspose", 1}};
  EXPECT_EQ(reasons, want);
}

TEST(OnnxCalls, AModelThatContradictsItselfIsAnErrorThatNamesIt) {
  const auto calls =
      calls_of("g (float[1,8,6,6] x, float[8,1,1,1] w) => (float[1,8,6,6] z) { z = Conv<group=4>(x, w) }");
  ASSERT_FALSE(calls.ok());
  EXPECT_NE(calls.error().message.find("test.onnx"), std::string::npos) << calls.error().message;
  EXPECT_NE(calls.error().message.find("w's times group"), std::string::npos) << calls.error().message;
}

}  // namespace
}  // namespace sl::test
