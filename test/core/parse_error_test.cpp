// Descriptors that are refused, and what the message must say: the token, where it stands, and what would be right.
#include <gtest/gtest.h>

#include <vector>

#include "core/conv_problem.hpp"

namespace sl {
namespace {

struct Case {
  const char* text;
  std::vector<const char*> said;  // each must be in the message
};

const Case cases[] = {
    // Not a descriptor.
    {"", {"empty", "g32mb1ic32"}},
    {"   ", {"empty"}},
    {"hello", {"`hello`", "character 1:", "unknown", "mb"}},
    {"g8mb1ic8ih10oc8kx3", {"`kx3`", "character 16:", "unknown"}},
    {"g8mb1ic8ih10oc8kh3;ls", {"`;ls`", "character 19:"}},
    {"g8mb1ic8,ih10oc8kh3", {"`,ih10oc8kh3`", "character 9:"}},
    {"\"g8mb1ic8ih10oc8kh3\"", {"character 1:", "unknown"}},
    // A token without its number, or with one that is none.
    {"g8mb1ic8ihoc8kh3", {"`ihoc8kh3`", "character 9:", "`ih3`"}},
    {"g8mb1ic8ih10oc8kh", {"`kh`", "character 16:", "whole number"}},
    {"g8mb1ic8ih10oc8kh+3", {"`kh+3`", "character 16:", "whole number"}},
    {"g8mb1ic8ih 10oc8kh3", {"`ih`", "character 9:", "whole number"}},
    {"g8mb1ic8ih10oc8kh3.5", {"`.5`", "character 19:"}},
    {"g8mb1ic8ih10oc8kh0x3", {"`x3`", "character 19:"}},
    // Out of range: refused where it stands, before any arithmetic.
    {"g8mb1ic8ih-10oc8kh3", {"`ih-10`", "character 9:", "from 0 to 2147483647"}},
    {"g8mb-1ic8ih10oc8kh3", {"`mb-1`", "character 3:", "from 0 to 1099511627775"}},
    {"g8mb1ic8ih2147483648oc8kh3", {"`ih2147483648`", "character 9:", "2147483647"}},
    {"g8mb1ic8ih10oc8kh3ph9223372036854775807", {"`ph9223372036854775807`", "character 19:", "2147483647"}},
    {"g8mb1ic8ih10oc8kh3ph9223372036854775808", {"`ph9223372036854775808`", "character 19:", "2147483647"}},
    {"g8mb1ic8ih10oc8kh3ph99999999999999999999999", {"`ph99999999999999999999999`", "2147483647"}},
    {"g8mb1ic8ih10oc8kh3sh9223372036854775806", {"`sh9223372036854775806`", "2147483647"}},
    {"g8mb1ic8ih10oc8kh3dh9223372036854775806", {"`dh9223372036854775806`", "2147483646"}},
    {"mb1099511627776ic8ih10oc8kh3", {"`mb1099511627776`", "character 1:"}},
    // Zero where it means nothing.
    {"g0mb1ic8ih10oc8kh3", {"`g0`", "character 1:", "at least 1"}},
    {"g8mb1ic0ih10oc8kh3", {"`ic0`", "character 6:", "at least 1"}},
    {"g8mb1ic8ih10oc0kh3", {"`oc0`", "character 13:", "at least 1"}},  // Paddle PR 78237: k = 0
    {"g8mb1ic8ih10oc8kh0", {"`kh0`", "character 16:", "at least 1"}},
    {"mb1ic1ih32oc1kh3ph0pw1sh0", {"`sh0`", "character 23:", "at least 1"}},  // pytorch#27598: stride 0
    {"g8mb1ic8ih10iw10oc8kh3kw3sw0", {"`sw0`", "at least 1"}},
    // Missing.
    {"g8mb1ih10oc8kh3", {"`ic` is missing", "at least 1"}},
    {"g8mb1ic8ih10kh3", {"`oc` is missing"}},
    {"g8mb1ic8oc8kh3", {"`ih` is missing"}},
    {"g8mb1ic8ih10oc8", {"`kh` is missing"}},
    {"g8mb1ic8ih10oc8kh3kw5", {"`iw` is missing"}},  // a width was begun, so benchdnn wants all of it
    {"g8mb1ic8oc8", {"iw and kw", "conv1d"}},
    // 3-D.
    {"g8mb1ic8id4ih4iw4oc8kd3kh3kw3", {"`id4`", "character 9:", "3-D"}},
    {"g8mb1ic8ih4oc8kh3kd3", {"`kd3`", "3-D"}},
    {"g8mb1ic8ih4oc8kh3pd1", {"`pd1`", "3-D"}},
    {"g8mb1ic8ih4oc8kh3sd2", {"`sd2`", "3-D"}},
    // The name.
    {"g8mb1ic8ih10oc8kh3n\"open", {"`n\"open`", "character 19:", "double quote"}},
    {"g8mb1ic8ih10oc8kh3n\"a\"ph1", {"`ph1`", "last token"}},
    // The kernel does not fit: pytorch#9592 (effective 5 over 4), keras#6649, Paddle#76955.
    {"mb1ic1ih4oc1kh3dh1sh2ph0", {"`ih4`", "character 7:", "padded input, 4", "effective kernel, 5"}},
    {"mb1ic1ih4oc1kh3dh1", {"padded input, 4", "effective kernel, 5"}},
    {"mb1ic1ih4oc1kh6ph0", {"padded input, 4", "effective kernel, 6"}},
    {"mb1ic1ih11iw12oc1kh13kw1", {"`ih11`", "padded input, 11", "effective kernel, 13"}},
    // Sizes that do not go together.
    {"g8mb1ic8ih10oc8oh5kh3ph1", {"p (oh) is 5", "pad_bottom -4", "must be at least 9"}},
    {"g8mb1ic8ih10oc8oh9kh3ph2147483640", {"pad_top (ph) is 2147483640", "below 2147483648"}},
    {"g3mb1ic8ih10oc9kh3", {"groups (g) is 3", "divide c (ic), which is 8"}},
    {"g4mb1ic8ih10oc9kh3", {"groups (g) is 4", "divide k (oc), which is 9"}},
    {"mb1099511627775ic65536ih65535oc1kh1", {"x: n * c * h * w"}},
    {"g1mb1ic65536ih65536oc65536kh65536ph32768", {"w: k * c / groups * r * s", "beyond 64 bits"}},
    {"mb1048576ic1ih32768oc1kh3000ph1500", {"multiply-adds", "beyond 64 bits"}},
    // Attributes.
    {"g8mb1ic8ih10oc8kh3 dt=f64", {"`dt=f64`", "character 20:", "f32, f16 or bf16"}},
    {"g8mb1ic8ih10oc8kh3 dt=F16", {"`dt=F16`", "f32, f16 or bf16"}},
    {"g8mb1ic8ih10oc8kh3 tag=nhw", {"`tag=nhw`", "nchw or nhwc"}},
    {"g8mb1ic8ih10oc8kh3 tag=", {"`tag=`", "nchw or nhwc"}},
    {"g8mb1ic8ih10oc8kh3 wtag=nhwc", {"`wtag=nhwc`", "oihw or ohwi"}},
    {"g8mb1ic8ih10oc8kh3 bias=1", {"`bias=1`", "none, same or f32"}},
    {"g8mb1ic8ih10oc8kh3 act=swish", {"`act=swish`", "silu", "hard_swish"}},
    {"g8mb1ic8ih10oc8kh3 act=clip alpha=zero beta=6", {"`alpha=zero`", "character 29:", "a number"}},
    {"g8mb1ic8ih10oc8kh3 act=clip alpha=0,5 beta=6", {"`alpha=0,5`", "a number"}},
    {"g8mb1ic8ih10oc8kh3 act=clip alpha=1e99 beta=6", {"`alpha=1e99`", "a number"}},
    {"g8mb1ic8ih10oc8kh3 act=clip alpha=nan beta=6", {"alpha is nan", "numbers for clip"}},
    {"g8mb1ic8ih10oc8kh3 act=leaky_relu alpha=inf", {"alpha is inf", "finite"}},
    {"g8mb1ic8ih10oc8kh3 act=clip alpha=7 beta=6", {"alpha is 7", "at most beta, which is 6"}},
    {"g8mb1ic8ih10oc8kh3 act=relu alpha=0.5", {"alpha is 0.5", "must be 0", "relu"}},
    {"g8mb1ic8ih10oc8kh3 act=leaky_relu alpha=0.1 beta=1", {"beta is 1", "must be 0", "leaky_relu"}},
    {"g8mb1ic8ih10oc8kh3 z=2", {"`z=2`", "0 or 1"}},
    {"g8mb1ic8ih10oc8kh3 align=32", {"align is 32", "4, 8 or 16"}},
    {"g8mb1ic8ih10oc8kh3 align=2", {"align is 2", "4, 8 or 16", "f32"}},
    {"g8mb1ic8ih10oc8kh3 align=8B", {"`align=8B`", "2, 4, 8 or 16"}},
    {"g8mb1ic8ih10oc8kh3 dt=f16 dt=f16", {"`dt=f16`", "character 27:", "twice"}},
    {"g8mb1ic8ih10oc8kh3 f16", {"`f16`", "character 20:", "dt="}},
    {"g8mb1ic8ih10oc8kh3 stag=nhwc", {"`stag=nhwc`", "tag="}},
    {"g8mb1ic8ih10oc8kh3 =3", {"`=3`", "dt="}},
};

TEST(ParseErrors, NameTheTokenItsPlaceAndWhatIsRight) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto parsed = parse(c.text);
    ASSERT_FALSE(parsed.ok()) << "read as " << parsed->to_string();
    EXPECT_EQ(parsed.error().code, Code::invalid);
    for (const char* said : c.said) {
      EXPECT_NE(parsed.error().message.find(said), std::string::npos)
          << "the message is: " << parsed.error().message << "\n  it lacks: " << said;
    }
  }
}

// Whatever the bytes, the answer is a problem or a message: no crash, no overflow (the sanitizer build looks).
TEST(ParseErrors, EveryPrefixAndEveryByteIsHandled) {
  const std::string whole = "g8mb1ic8ih10iw11oc8oh10ow11kh3kw3sh1sw1ph1pw1dh0dw0n\"x\" dt=f16 act=clip beta=6 align=8";
  for (std::size_t i = 0; i <= whole.size(); ++i) {
    const auto prefix = parse(std::string_view(whole).substr(0, i));
    EXPECT_TRUE(prefix.ok() || !prefix.error().message.empty()) << i;
    EXPECT_TRUE(prefix.ok() || i < whole.size());
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = whole;
      changed[i] = static_cast<char>(byte);
      const auto parsed = parse(changed);
      EXPECT_TRUE(!parsed.ok() || validate(*parsed).ok()) << changed;
    }
  }
}

TEST(ParseErrors, LongTokensAreCut) {
  const auto parsed = parse("x" + std::string(100000, 'y'));
  ASSERT_FALSE(parsed.ok());
  EXPECT_LT(parsed.error().message.size(), 400U);
}

}  // namespace
}  // namespace sl
