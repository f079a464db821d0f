// Recording through the C ABI: by the environment's variable and by the option, taken and kept calls, several threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "capi/call_builder.hpp"
#include "sluice/sluice.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

std::vector<ConvProblem> recorded(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  std::vector<ConvProblem> problems;
  for (std::string line; std::getline(text, line);) {
    const auto problem = parse(line);
    EXPECT_TRUE(problem.ok()) << line << ": " << problem.error().message;
    if (problem.ok()) problems.push_back(*problem);
  }
  return problems;
}

ConvProblem call_of(std::int64_t n, Layout layout) {
  ConvProblem problem;
  problem.n = n;
  problem.c = problem.k = problem.groups = 8;
  problem.h = problem.p = 6;
  problem.w = problem.q = 5;
  problem.r = problem.s = 3;
  problem.pad_top = problem.pad_left = 1;
  problem.layout = layout;
  problem.bias = Bias::same;
  problem.activation = Activation::relu;
  return problem;
}

std::vector<std::string> warnings;
void note_warning(sluice_log_level, const char* message, void*) { warnings.emplace_back(message); }

sluice_context* context_of(const char* device, sluice_policy policy, const char* record) {
  sluice_options options = SLUICE_OPTIONS_INIT;
  options.device = device;
  options.policy = policy;
  options.cache_dir = "off";
  options.log = note_warning;
  options.record = record;
  sluice_context* context = nullptr;
  EXPECT_EQ(sluice_context_create(&options, &context), SLUICE_OK) << sluice_last_error();
  return context;
}

TEST(Record, CallsOfTheHostDeviceReadBackAsTheyWereMade) {
  const TempDir folder;
  const std::string file = folder / "calls.txt";
  sluice_context* const context = context_of("host", SLUICE_IMMEDIATE, file.c_str());
  std::vector<ConvProblem> made;
  for (const std::int64_t n : {1, 2, 1}) {
    CallBuilder call(call_of(n, Layout::nhwc), 1);
    ASSERT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
    if (made.size() < 2) made.push_back(call_of(n, Layout::nhwc));
  }
  CallBuilder prepared(call_of(3, Layout::nchw), 1);
  sluice_plan* plan = nullptr;
  ASSERT_EQ(sluice_prepare(context, &prepared.args, nullptr, &plan), SLUICE_OK) << sluice_last_error();
  made.push_back(call_of(3, Layout::nchw));
  sluice_plan_destroy(plan);
  EXPECT_NE(explained(context, prepared.args), "");
  sluice_context_destroy(context);
  auto found = recorded(file);
  ASSERT_EQ(found.size(), made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    found[i].align = made[i].align;  // the tensors' own
    EXPECT_EQ(found[i], made[i]) << found[i].to_string();
  }
}

TEST(Record, KeptCallsOfAMachineWithoutAGpuAreRecordedToo) {
  const TempDir folder;
  const std::string file = folder / "calls.txt";
  setenv("SLUICE_RECORD", file.c_str(), 1);
  sluice_context* const context = context_of("cuda", SLUICE_OFF, nullptr);
  sluice_context* const silent = context_of("cuda", SLUICE_OFF, "");
  unsetenv("SLUICE_RECORD");
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t n = 1; n <= 20; ++n) {
        CallBuilder call(call_of(n, Layout::nchw), 1);
        EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_KEPT);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CallBuilder call(call_of(99, Layout::nchw), 1);
  EXPECT_EQ(sluice_conv2d(silent, &call.args, nullptr), SLUICE_KEPT) << "\"\" overrides the environment";
  sluice_context_destroy(context);
  sluice_context_destroy(silent);
  std::vector<std::int64_t> batches;
  for (const ConvProblem& problem : recorded(file)) batches.push_back(problem.n);
  std::sort(batches.begin(), batches.end());
  std::vector<std::int64_t> each(20);
  for (std::size_t i = 0; i < each.size(); ++i) each[i] = static_cast<std::int64_t>(i) + 1;
  EXPECT_EQ(batches, each);
}

TEST(Record, AnUnwritableFileIsOneWarningAndCallsGoOn) {
  warnings.clear();
  sluice_context* const context = context_of("cuda", SLUICE_OFF, "/nowhere/calls.txt");
  for (const std::int64_t n : {1, 2}) {
    CallBuilder call(call_of(n, Layout::nchw), 1);
    EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_KEPT);
  }
  sluice_context_destroy(context);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("/nowhere/calls.txt"), std::string::npos) << warnings[0];
}

TEST(Record, TheCppOptionsNameTheFile) {
  const TempDir folder;
  const std::string file = folder / "calls.txt";
  const sluice::Options options = sluice::Options().record(file);
  EXPECT_EQ(options.raw().record, file);
  EXPECT_EQ(sluice::Options().raw().record, nullptr);
}

}  // namespace
}  // namespace sl::test
