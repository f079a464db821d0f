// The rival against a cuDNN that does what a script says: what is kept, what is dropped and why, and every failing
// call.
#include "tuner/cudnn/rival.hpp"

#include <gtest/gtest.h>

#include "library.hpp"

namespace sl::cudnn::test {
namespace {

/// A rival on the host device with everything that one problem needs.
struct Arena {
  FakeLibrary fake;
  std::shared_ptr<Device> device = open_host_device();
  ConvProblem problem;
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<Rival> rival;

  Arena(const char* script, const std::string& text) : fake(script), problem(parse(text).value()) {
    workspace = Workspace::create(*device, nullptr, problem, {.max_bytes = 64 << 20, .max_sets = 3}).value();
  }
  Status open() {
    SL_ASSIGN(rival, Rival::open(*device, fake.library));
    return {};
  }
  Chosen prepare(const RivalOptions& options = {.rounds = 3, .threads = 1}) {
    return rival->prepare(problem, problem, *workspace, nullptr, options);
  }
};

const Attempt* find(const Chosen& chosen, int engine) {
  const std::string start = "eng" + std::to_string(engine) + "{";
  for (const Attempt& one : chosen.attempts) {
    if (one.engine.starts_with(start)) return &one;
  }
  return nullptr;
}

TEST(CudnnRival, GraphsSayWhatTheProblemIs) {
  for (const char* const text : {
           "g8mb2ic8ih10iw12oc8oh10ow12kh3kw3ph1pw1 dt=f16 tag=nhwc",
           "g8mb2ic8ih10iw12oc8oh10ow12kh3kw3ph1pw1 dt=f16 tag=nchw bias=same",
           "g4mb2ic16ih9iw8oc16kh3kw3ph1pw1 dt=f32 tag=nhwc bias=same act=relu",
           "g4mb2ic16ih9iw8oc32kh3kw3ph1pw1 dt=bf16 tag=nhwc wtag=ohwi bias=f32 act=silu z=1",
           "g4mb1ic16ih9iw8oc16kh3kw3ph1pw1 dt=f16 tag=nchw wtag=ohwi act=gelu_erf",
           "g8mb1ic8ih11oc8kh3sh2ph1 dt=f16 tag=nhwc act=clip alpha=0 beta=6",
           "g8mb1ic8ih12oc8oh6kh3sh2ph0 dt=f32 tag=nchw act=leaky_relu alpha=0.1",
           "g8mb1ic8ih12oc8kh3dh1ph2 dt=f32 tag=nchw act=gelu_tanh bias=f32 z=1",
           "g1mb1ic4ih1iw30oc4oh1kh1kw3ph0pw1 dt=f32 tag=nhwc",
       }) {
    Arena arena("engines=ok:a", text);
    ASSERT_TRUE(arena.open().ok());
    const Chosen chosen = arena.prepare();
    ASSERT_TRUE(chosen.work) << text << ": " << chosen.error;
    EXPECT_EQ(chosen.attempts[chosen.best].outcome, "timed") << text;
    EXPECT_LT(chosen.attempts[chosen.best].error_over_bound, 1) << text;
  }
}

TEST(CudnnRival, EveryEngineHasItsOutcomeAndTheFastestRightOneIsKept) {
  Arena arena("engines=slow:a,wrong:a,unwritten:b,overrun:b,huge:f,noplan:f,noexec:a,scratch:b,ok:",
              "g8mb1ic8ih8oc8kh3ph1 dt=f16 tag=nhwc");
  ASSERT_TRUE(arena.open().ok());
  const Chosen chosen = arena.prepare();
  ASSERT_TRUE(chosen.work) << chosen.error;
  EXPECT_EQ(chosen.attempts.size(), 8U) << "what only its number names is not tried";
  const struct {
    int engine;
    const char *mode, *outcome;
  } wanted[] = {{1, "a", "wrong: "},
                {2, "b", "wrong: 1 outputs are NaN"},
                {3, "b", "wrong: wrote outside y"},
                {4, "fallback", "workspace: wants"},
                {5, "fallback", "plan: "},
                {6, "a", "launch: "},
                {7, "b", "timed"}};
  for (const auto& want : wanted) {
    const Attempt* const got = find(chosen, want.engine);
    ASSERT_NE(got, nullptr) << want.engine;
    EXPECT_EQ(got->mode, want.mode) << want.engine;
    EXPECT_TRUE(got->outcome.starts_with(want.outcome)) << want.engine << ": " << got->outcome;
    EXPECT_EQ(got->us > 0, want.engine == 7) << "timed: " << want.engine;
  }
  EXPECT_EQ(chosen.attempts[chosen.best].engine, "eng7{k2=70}");
  EXPECT_EQ(chosen.attempts[chosen.best].workspace_bytes, 4096);
  EXPECT_GT(chosen.heuristic_us(), 1000) << "mode a's first, which sleeps";
  EXPECT_LT(chosen.best_heuristic_us(), 1000);
}

TEST(CudnnRival, TryingEveryEngineFindsWhatTheHeuristicsDoNotName) {
  Arena arena("engines=slow:abif,ok:", "g8mb1ic8ih8oc8kh3ph1 dt=f16 tag=nhwc");
  ASSERT_TRUE(arena.open().ok());
  const Chosen chosen = arena.prepare({.every_engine = true, .rounds = 3, .threads = 1});
  ASSERT_TRUE(chosen.work) << chosen.error;
  EXPECT_EQ(chosen.attempts[chosen.best].mode, "every");
  EXPECT_EQ(chosen.attempts.size(), 2U) << "each choice once, whoever names it";
  EXPECT_GT(chosen.best_heuristic_us(), 10 * chosen.attempts[chosen.best].us);
}

TEST(CudnnRival, AnFp32EngineThatRoundsItsInputsIsNoRival) {
  for (const char* const type : {"f32", "f16"}) {
    Arena arena("engines=tf32:a", std::string("g8mb1ic8ih8oc8kh3ph1 tag=nhwc dt=") + type);
    ASSERT_TRUE(arena.open().ok());
    const Chosen chosen = arena.prepare();
    EXPECT_EQ(static_cast<bool>(chosen.work), std::string(type) == "f16");
    EXPECT_EQ(chosen.attempts.at(0).notes, std::vector<std::string>{"down_convert_inputs"});
  }
}

TEST(CudnnRival, WithoutAnEngineItSaysWhy) {
  const struct {
    const char *script, *problem, *error;
  } cases[] = {
      {"engines=ok:", "g8mb1ic8ih8oc8kh3ph1 dt=f16", "this mode knows nothing"},
      {"engines=wrong:a", "g8mb1ic8ih8oc8kh3ph1 dt=f16", "no engine ran right; the first: wrong"},
      {"fuse=0;engines=ok:a", "g8mb1ic8ih8oc8kh3ph1 dt=f16 bias=same", "no such pattern"},
      {"engines=ok:a", "g8mb1ic8ih8oc8kh3ph1 dt=f16 act=hard_swish", "hard_swish is no single operation"},
  };
  for (const auto& one : cases) {
    Arena arena(one.script, one.problem);
    ASSERT_TRUE(arena.open().ok());
    const Chosen chosen = arena.prepare();
    EXPECT_FALSE(chosen.work);
    EXPECT_NE(chosen.error.find(one.error), std::string::npos) << chosen.error;
  }
}

TEST(CudnnRival, AnyCallMayFail) {
  int total = 0;
  {
    Arena arena("engines=ok:a,scratch:b", "g8mb1ic8ih4oc8kh3ph1 dt=f16 tag=nhwc bias=same");
    ASSERT_TRUE(arena.open().ok());
    ASSERT_TRUE(arena.prepare({.every_engine = true, .rounds = 1, .threads = 1}).work);
    total = arena.fake.calls();
  }
  ASSERT_GT(total, 100);
  for (int call = 1; call < total; call += call < 150 ? 1 : 11) {  // each kind of call is among the first
    Arena arena(("fail=" + std::to_string(call) + ";engines=ok:a,scratch:b").c_str(),
                "g8mb1ic8ih4oc8kh3ph1 dt=f16 tag=nhwc bias=same");
    if (const Status opened = arena.open(); !opened.ok()) {
      EXPECT_EQ(call, 1);
      EXPECT_NE(opened.error().message.find("as scripted"), std::string::npos) << opened.error().message;
      continue;
    }
    {
      const Chosen chosen = arena.prepare({.every_engine = true, .rounds = 1, .threads = 1});
      EXPECT_TRUE(chosen.work || !chosen.error.empty()) << call;
      if (chosen.work) {
        EXPECT_GT(chosen.attempts[chosen.best].us, 0) << call;
      }
    }
    arena.rival.reset();
    EXPECT_EQ(arena.fake.live(), 0) << "descriptors left after call " << call << " failed";
  }
}

TEST(CudnnRival, PaddingBehindIsSymmetricWhereItMayBe) {
  const struct {
    const char* problem;
    std::int64_t rows;
  } cases[] = {
      {"g8mb1ic8ih8oc8oh8kh3ph1", 1},     // exact and symmetric
      {"g8mb1ic8ih8oc8oh4kh3sh2ph1", 1},  // one row too many: the stride skips it
      {"g8mb1ic8ih8oc8oh4kh3sh2ph0", 1},  // a row behind, none in front
      {"g8mb1ic8ih8oc8oh3kh3sh2ph0", 0},  // a row of x is never read: exact would be -1
  };
  for (const auto& one : cases) EXPECT_EQ(post_padding(parse(one.problem).value())[0], one.rows) << one.problem;
}

}  // namespace
}  // namespace sl::cudnn::test
