// How Conv nodes are read: pads, groups, types, shapes; what is no problem of ours, and what is wrong.
#include <gtest/gtest.h>

#include "models.hpp"

namespace sl::test {
namespace {

struct Case {
  const char* name;
  const char* inputs;  ///< x and w, perhaps b
  const char* attributes;
  const char* want;  ///< the problem; or part of the reason after "reason: "; or of the error after "error: "
};

const Case cases[] = {
    {"depthwise", "float[2,8,6,5] x, float[8,1,3,3] w", "group=8, pads=[1,1,1,1]",
     "g8mb2ic8ih6iw5oc8oh6ow5kh3kw3ph1pw1 dt=f32 tag=nchw"},
    {"half_bias", "float16[2,8,6,5] x, float16[8,1,3,3] w, float16[8] b", "group=8",
     "g8mb2ic8ih6iw5oc8oh4ow3kh3kw3ph0pw0 dt=f16 tag=nchw bias=same"},
    {"bfloat", "bfloat16[1,8,6,6] x, bfloat16[16,2,1,1] w", "group=4", "g4mb1ic8ih6oc16oh6kh1ph0 dt=bf16 tag=nchw"},
    {"asymmetric", "float[1,8,9,7] x, float[8,1,3,3] w", "group=8, strides=[2,2], pads=[0,0,1,1]",
     "g8mb1ic8ih9iw7oc8oh4ow3kh3kw3sh2sw2ph0pw0 dt=f32 tag=nchw"},
    {"all_different", "float[1,8,20,30] x, float[8,1,3,5] w",
     "group=8, strides=[2,3], dilations=[2,1], pads=[3,1,0,2], kernel_shape=[3,5]",
     "g8mb1ic8ih20iw30oc8oh10ow10kh3kw5sh2sw3ph3pw1dh1dw0 dt=f32 tag=nchw"},
    {"same_upper", "float[1,8,10,10] x, float[8,1,4,4] w", "group=8, auto_pad=\"SAME_UPPER\"",
     "g8mb1ic8ih10oc8oh10kh4ph1 dt=f32 tag=nchw"},
    {"same_lower", "float[1,8,10,10] x, float[8,1,4,4] w", "group=8, auto_pad=\"SAME_LOWER\"",
     "g8mb1ic8ih10oc8oh10kh4ph2 dt=f32 tag=nchw"},
    {"same_strided", "float[1,8,11,14] x, float[8,1,3,3] w", "group=8, auto_pad=\"SAME_UPPER\", strides=[3,1]",
     "g8mb1ic8ih11iw14oc8oh4ow14kh3kw3sh3sw1ph0pw1 dt=f32 tag=nchw"},
    {"same_negative", "float[1,8,3,1] x, float[8,1,1,1] w", "group=8, auto_pad=\"SAME_UPPER\", strides=[3,1]",
     "g8mb1ic8ih3iw1oc8oh1ow1kh1kw1sh3sw1ph0pw0 dt=f32 tag=nchw"},
    {"valid", "float[1,8,10,10] x, float[8,1,3,3] w", "group=8, auto_pad=\"VALID\"",
     "g8mb1ic8ih10oc8oh8kh3ph0 dt=f32 tag=nchw"},
    {"conv1d", "float[1,8,30] x, float[8,1,5] w", "group=8, pads=[2,0], strides=[2]",
     "g8mb1ic8ih1iw30oc8oh1ow14kh1kw5sh1sw2ph0pw2 dt=f32 tag=nchw"},
    {"dense", "float[1,8,6,6] x, float[4,8,1,1] w", "group=1", "mb1ic8ih6oc4oh6kh1ph0 dt=f32 tag=nchw"},
    {"double", "double[1,8,6,6] x, double[8,1,1,1] w", "group=8", "reason: only float, float16 and bfloat16"},
    {"three_d", "float[1,8,6,6,6] x, float[8,1,1,1,1] w", "group=8", "reason: only 1-d and 2-d"},
    {"unknown_rows", "float[1,8,H,6] x, float[8,1,1,1] w", "group=8", "reason: dimension 2 is not fixed"},
    {"unknown_batch", "float[N,8,6,6] x, float[8,1,1,1] w", "group=8", "reason: --batch N"},
    {"unknown_weights", "float[1,8,6,6] x, float[8,1,R,1] w", "group=8", "reason: w is"},
    {"negative_pad", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, pads=[-1,0,0,0]", "reason: negative pad"},
    {"unknown_attribute", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, colour=1", "reason: \"colour\""},
    {"groups", "float[1,8,6,6] x, float[8,1,1,1] w", "group=4", "error: w's times group"},
    {"group_zero", "float[1,8,6,6] x, float[8,1,1,1] w", "group=0", "error: group = 0"},
    {"types_differ", "float[1,8,6,6] x, float16[8,1,1,1] w", "group=8", "error: one element type"},
    {"bias_type", "float[1,8,6,6] x, float[8,1,1,1] w, float16[8] b", "group=8", "error: one element type"},
    {"bias_size", "float[1,8,6,6] x, float[8,1,1,1] w, float[7] b", "group=8", "error: must be [8]"},
    {"kernel_shape", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, kernel_shape=[3,3]",
     "error: kernel_shape = [3, 3]"},
    {"stride_zero", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, strides=[0,1]",
     "error: strides: must be 1 or more"},
    {"pads_short", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, pads=[1,1]", "error: must have 4 numbers"},
    {"pads_huge", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, pads=[9223372036854775807,0,0,0]", "error: pads = ["},
    {"auto_pad_word", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, auto_pad=\"FULL\"", "error: auto_pad = \"FULL\""},
    {"wrong_kind", "float[1,8,6,6] x, float[8,1,1,1] w", "group=\"8\"", "error: must be an integer"},
    {"twice", "float[1,8,6,6] x, float[8,1,1,1] w", "group=8, group=8", "error: given twice"},
    {"too_large_a_kernel", "float[1,8,6,6] x, float[8,1,9,9] w", "group=8", "error: "},
    {"rank", "float[1,8,6,6] x, float[8,1,1] w", "group=8", "error: same rank"},
    {"huge", "float[1,1073741824,1073741824,1073741824] x, float[1073741824,1,1,1] w", "group=1073741824", "reason: "},
};

class Reading : public testing::TestWithParam<Case> {};

TEST_P(Reading, ConvNode) {
  const Case& row = GetParam();
  const bool bias = std::string(row.inputs).ends_with("] b");
  const auto model = model_of(std::string("g (") + row.inputs + ") => (y) { y = Conv<" + row.attributes + ">(x, w" +
                              (bias ? ", b" : "") + ") }");
  const std::string want = row.want;
  graph::OnnxOptions options = forced();
  options.dry_run = true;
  const Replaced replaced = replace_in(model, options);
  const graph::Outcome& outcome = replaced.outcome;
  if (want.starts_with("error: ")) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code, Code::invalid);
    EXPECT_NE(outcome.error->message.find(want.substr(7)), std::string::npos) << outcome.error->message;
    return;
  }
  ASSERT_FALSE(outcome.error) << outcome.error->message;
  ASSERT_EQ(outcome.report.nodes.size(), 1U);
  const graph::NodeReport& node = outcome.report.nodes[0];
  if (want.starts_with("reason: ")) {
    EXPECT_EQ(node.verdict, Verdict::unsupported);
    EXPECT_NE(node.reason.find(want.substr(8)), std::string::npos) << node.reason;
    EXPECT_TRUE(node.signature.starts_with("Conv ")) << node.signature;
  } else {
    EXPECT_EQ(node.signature, "Conv " + parse(want).value().to_string());
  }
}

INSTANTIATE_TEST_SUITE_P(All, Reading, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OnnxSignature, NamesShapesTypesLayoutAndAttributesOfWhatIsNoProblemOfOurs) {
  const auto model = model_of(
      "g (float[1,8,H,6] x, float[8,1,3,3] w, float[8] b) => (y) { "
      "y = Conv<group=8, auto_pad=\"SAME_UPPER\", strides=[2,1]>(x, w, b) }");
  const Replaced replaced = replace_in(model);
  ASSERT_EQ(replaced.outcome.report.nodes.size(), 1U);
  EXPECT_EQ(replaced.outcome.report.nodes[0].signature,
            "Conv x float [1, 8, ?, 6], w float [8, 1, 3, 3], bias float [8], nchw, group 8, auto_pad SAME_UPPER, "
            "strides [2, 1]");
}

TEST(OnnxBatch, ASymbolIsPlannedForTheBatchThatIsAskedFor) {
  const auto model = model_of(
      "g (float[N,8,6,6] x, float[8,1,3,3] w) => (float[N,8,6,6] z) {"
      " y = Relu(x)  z = Conv<group=8, pads=[1,1,1,1]>(y, w) }");
  graph::OnnxOptions options = forced();
  const std::string unchanged = model.graph().input(0).SerializeAsString();
  options.batch = 32;
  const Replaced replaced = replace_in(model, options);
  ASSERT_FALSE(replaced.outcome.error);
  EXPECT_NE(replaced.outcome.report.nodes.at(0).signature.find("mb32"), std::string::npos);
  EXPECT_EQ(text_of(replaced.model.graph()), "Relu(x)->y; ai.sluice::Conv2d(y,w)->z");
  EXPECT_EQ(replaced.model.graph().input(0).SerializeAsString(), unchanged) << "the model's batch stays a symbol";
  EXPECT_EQ(replaced.model.graph().value_info_size(), 0) << "inference works on a copy";
}

}  // namespace
}  // namespace sl::test
