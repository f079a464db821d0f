// Running a program: output, exit codes, signals, time-outs, and applications that ignore their children.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "jit/host_compiler_process.hpp"

namespace sl::test {
namespace {

using std::chrono::milliseconds;

class HostProcess : public testing::Test {
 protected:
  Result<ProcessOutcome> shell(const std::string& command, milliseconds timeout = milliseconds(20000)) {
    return run_process({"/bin/sh", "-c", command}, scratch_.path(), timeout);
  }
  PrivateDirectory scratch_ = PrivateDirectory::create().value();
};

TEST_F(HostProcess, OutputAndExitCode) {
  struct Case {
    const char* command;
    int exit_code;
    const char* output;
  };
  const Case cases[] = {{"echo out; echo err >&2", 0, "out\nerr\n"},
                        {"exit 7", 7, ""},
                        {"kill -9 $$", 128 + 9, ""},
                        {"cat", 0, ""},  // nothing to read
                        {"echo $LC_ALL", 0, "C\n"}};
  for (const Case& c : cases) {
    const auto outcome = shell(c.command);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_EQ(outcome->exit_code, c.exit_code) << c.command;
    EXPECT_EQ(outcome->output, c.output) << c.command;
    EXPECT_EQ(outcome->failed(), c.exit_code != 0) << c.command;
    EXPECT_FALSE(outcome->timed_out) << c.command;
  }
}

TEST_F(HostProcess, TemporaryFilesGoToTheScratchDirectory) {
  const auto outcome = shell("echo $TMPDIR");
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, scratch_.path().string() + "\n");
}

TEST_F(HostProcess, TimeOutEndsTheWholeGroup) {
  // The grandchild would write its mark after the time-out if it lived on.
  const std::string mark = (scratch_.path() / "mark").string();
  const auto outcome = shell("(sleep 1; touch " + mark + ") & echo started; wait", milliseconds(200));
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->timed_out);
  EXPECT_TRUE(outcome->failed());
  EXPECT_EQ(outcome->output, "started\n");
  ASSERT_TRUE(shell("sleep 1.2").ok());
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(HostProcess, WhatCannotStartIsAnError) {
  const auto outcome = run_process({"/nonexistent/program"}, scratch_.path(), milliseconds(1000));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, Code::environment);
  EXPECT_NE(outcome.error().message.find("/nonexistent/program"), std::string::npos);
}

TEST_F(HostProcess, AnApplicationThatIgnoresItsChildren) {
  struct sigaction ignore {
  }, old{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &old);
  // The child itself must be able to wait for its own.
  const auto outcome = shell("/bin/sh -c 'exit 3'; echo child said $?");
  sigaction(SIGCHLD, &old, nullptr);
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome->status_known);
  EXPECT_FALSE(outcome->failed());
  EXPECT_EQ(outcome->output, "child said 3\n");
}

TEST_F(HostProcess, FindsExecutables) {
  EXPECT_EQ(find_executable("sh", "/nonexistent:/bin"), "/bin/sh");
  EXPECT_EQ(find_executable("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_executable("sh", "/nonexistent"), std::nullopt);
  EXPECT_EQ(find_executable("/bin", ""), std::nullopt) << "a directory";
  EXPECT_EQ(find_executable("sh", "::"), std::nullopt) << "never from the current directory";
  EXPECT_TRUE(find_executable("sh", "").has_value()) << "an unset PATH is the system's";
}

TEST_F(HostProcess, PrivateDirectoriesGoAway) {
  std::filesystem::path path;
  {
    const PrivateDirectory directory = PrivateDirectory::create().value();
    path = directory.path();
    ASSERT_TRUE(write_text_file(path / "a" / "b", "x").ok());
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
    EXPECT_EQ(read_binary_file(path / "a" / "b"), "x");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(read_binary_file(path / "a" / "b"), std::nullopt);
}

}  // namespace
}  // namespace sl::test
