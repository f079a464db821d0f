// Names, digests, key builder, log.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/digest.hpp"
#include "core/log.hpp"
#include "core/types.hpp"

namespace sl {
namespace {

template <class E>
void names_round_trip(int count, std::optional<E> (*parse_name)(std::string_view)) {
  for (int i = 0; i < count; ++i) {
    const E value = static_cast<E>(i);
    ASSERT_NE(name(value), "?") << i;
    EXPECT_EQ(parse_name(name(value)), value);
  }
  EXPECT_EQ(name(static_cast<E>(count)), "?");
  for (const char* wrong : {"", "?", "F32", "nchw ", "relu6"}) EXPECT_EQ(parse_name(wrong), std::nullopt) << wrong;
}

TEST(Types, NamesRoundTrip) {
  names_round_trip<DType>(3, parse_dtype);
  names_round_trip<Layout>(2, parse_layout);
  names_round_trip<WeightLayout>(2, parse_weight_layout);
  names_round_trip<Bias>(3, parse_bias);
  names_round_trip<Activation>(8, parse_activation);
}

TEST(Digest, HexIsThirtyTwoLowerCaseDigits) {
  EXPECT_EQ((Digest{0x0123456789ABCDEFULL, 0xFEDCBA9876543210ULL}).hex(), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(Digest{}.hex(), std::string(32, '0'));
}

// XXH3's published value for no input with seed 0: files of another implementation of it are the same files.
TEST(Digest, IsXxh3) { EXPECT_EQ(digest_text("").hex(), "99aa06d3014798d86001c324468d497f"); }

TEST(KeyBuilder, PartsDoNotRunTogether) {
  const auto key = [](std::string_view label_a, std::string_view a, std::string_view label_b, std::string_view b) {
    return KeyBuilder().add(label_a, a).add(label_b, b).finish();
  };
  const Digest base = key("arch", "sm_90", "options", "-O3");
  EXPECT_EQ(base, key("arch", "sm_90", "options", "-O3"));
  EXPECT_NE(base, key("arch", "sm_90o", "ptions", "-O3"));
  EXPECT_NE(base, key("arch", "sm_9", "0options", "-O3"));
  EXPECT_NE(base, key("options", "-O3", "arch", "sm_90"));
  EXPECT_NE(base, key("arch", "sm_90", "options", "-O2"));
  EXPECT_NE(KeyBuilder().add("n", "1").finish(), KeyBuilder().add("n", std::int64_t{1}).finish());
  EXPECT_NE(KeyBuilder().finish(), KeyBuilder().add("", "").finish());
}

struct Line {
  LogLevel level;
  std::string text;
};

TEST(Log, ThresholdHolds) {
  std::vector<Line> lines;
  const Log log(
      [&](LogLevel level, std::string_view text) {
        lines.push_back({level, std::string(text)});
      },
      LogLevel::warning);
  log.write(LogLevel::debug, "a");
  log.write(LogLevel::info, "b");
  log.write(LogLevel::warning, "c");
  log.write(LogLevel::error, "d");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text, "c");
  EXPECT_EQ(lines[1].level, LogLevel::error);
}

TEST(Log, SilentWithoutSink) {
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  const Log log;
  log.write(LogLevel::error, "x");
  log.warn_once("cause", "x");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Log, OneCauseWarnsOnceAndMemoryIsBounded) {
  std::vector<std::string> lines;
  const Log log([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  log.warn_once("damaged a", "first");
  log.warn_once("damaged a", "second");
  log.warn_once("damaged b", "third");
  EXPECT_EQ(lines, (std::vector<std::string>{"first", "third"}));
  for (int i = 0; i < 1000; ++i) log.warn_once("cause " + std::to_string(i), "more");
  EXPECT_EQ(lines.size(), 257U);  // 256 causes and the line that says the rest is not shown
  EXPECT_NE(lines.back().find("further"), std::string::npos);
}

TEST(Log, ACauseBelowTheThresholdIsNotSpent) {
  std::vector<std::string> lines;
  const Log log([&](LogLevel, std::string_view text) { lines.emplace_back(text); }, LogLevel::error);
  log.warn_once("cause", "x");
  EXPECT_TRUE(lines.empty());
}

TEST(Log, ASinkThatThrowsIsHarmless) {
  const Log log([](LogLevel, std::string_view) { throw 1; });
  log.write(LogLevel::error, "x");
  log.warn_once("cause", "x");
}

TEST(Log, OnceAlsoAcrossThreads) {
  std::atomic<int> count{0};
  const Log log([&](LogLevel, std::string_view) { ++count; });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) log.warn_once("cause " + std::to_string(i), "x");
      });
    }
  }
  EXPECT_EQ(count, 50);
}

}  // namespace
}  // namespace sl
