// SLUICE_RECORD: every call that is new is one line, and nothing that goes wrong with the file reaches the caller.
#include "dispatch/recorder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <thread>

#include "dispatch/counted.hpp"
#include "dispatch/fakes.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

struct Recording : testing::Test {
  TempDir folder;
  std::filesystem::path file = folder / "calls.txt";
  Rig rig;

  void SetUp() override { rig.environment.record = file; }
  Code call(const ConvProblem& problem, Regular regular = Regular::yes) {
    Error error;
    return rig->conv2d(problem, any_tensors(), nullptr, regular, error);
  }
};

TEST_F(Recording, TakenKeptFailedAndRejectedCallsAreALineEach) {
  rig.make();
  EXPECT_EQ(call(depthwise()), Code::ok);
  ConvProblem other = depthwise(3);
  other.bias = Bias::same;
  other.activation = Activation::clip;
  other.beta = 6.0F;
  EXPECT_EQ(call(other), Code::ok);
  rig.routing = keep_everything();
  rig.make();
  EXPECT_EQ(call(depthwise(5)), Code::kept);
  rig.environment.disabled = true;
  rig.make();
  EXPECT_EQ(call(depthwise(6)), Code::kept);
  EXPECT_EQ(call(depthwise(7), Regular::no), Code::unsupported);
  rig.environment.disabled = false;
  rig.routing = std::make_shared<RoutingTable>(RoutingTable::take_everything("test"));
  rig.compiler->error = "it does not compile";
  rig.make();
  ConvProblem failing = depthwise(8);
  failing.r = failing.s = 5;
  failing.pad_top = failing.pad_left = 2;
  EXPECT_EQ(call(failing), Code::kept);
  EXPECT_EQ(call(failing), Code::kept) << "a failure is tried again, and recorded once";
  const std::vector<ConvProblem> made = {depthwise(), other, depthwise(5), depthwise(6), depthwise(7), failing};
  const auto lines = lines_of(file);
  ASSERT_EQ(lines.size(), made.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const auto read = parse(lines[i]);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, made[i]) << lines[i];
  }
}

TEST_F(Recording, PreparingIsACallAndExplainingIsNone) {
  rig.make();
  ASSERT_TRUE(rig->explain(depthwise(2), Regular::yes, true).ok());
  ASSERT_TRUE(rig->explain(depthwise(3), Regular::yes, false).ok());
  EXPECT_EQ(read_file(file), "");
  ASSERT_TRUE(rig->prepare(depthwise(4), nullptr, Regular::yes).ok());
  EXPECT_EQ(read_file(file), depthwise(4).to_string() + "\n");
  ConvProblem broken = depthwise();
  broken.groups = 5;
  EXPECT_EQ(call(broken), Code::invalid);
  EXPECT_EQ(call(depthwise(0)), Code::ok);
  EXPECT_EQ(lines_of(file).size(), 1u) << "neither what is no convolution nor what computes nothing";
}

TEST_F(Recording, AKnownCallCostsNothingMore) {
  rig.make();
  ASSERT_EQ(call(depthwise()), Code::ok);
  const ConvProblem problem = depthwise();
  Error error;
  const Counted before = counted();
  for (int i = 0; i < 100; ++i) {
    if (rig.dispatcher->conv2d(problem, any_tensors(), nullptr, Regular::yes, error) != Code::ok) FAIL();
  }
  EXPECT_EQ(counted().allocations, before.allocations);
  EXPECT_EQ(counted().locks, before.locks);
  EXPECT_EQ(lines_of(file).size(), 1u);
}

TEST_F(Recording, WhatTheFileHasIsNotAddedAgain) {
  write_file(file, "# of yesterday\n" + depthwise(1).to_string() + "  # the first\n\n" + depthwise(2).to_string());
  rig.make();
  for (const std::int64_t n : {1, 2, 3}) EXPECT_EQ(call(depthwise(n)), Code::ok);
  EXPECT_EQ(read_file(file), "# of yesterday\n" + depthwise(1).to_string() + "  # the first\n\n" +
                                 depthwise(2).to_string() + "\n" + depthwise(3).to_string() + "\n");
  EXPECT_TRUE(rig.warnings().empty());
}

TEST_F(Recording, AnEmptiedFileIsFilledAgain) {
  const Log log;
  Recorder recorder(file, log);
  recorder.note(depthwise(1));
  recorder.note(depthwise(2));
  write_file(file, "");
  recorder.note(depthwise(3));
  recorder.note(depthwise(1));
  EXPECT_EQ(read_file(file), depthwise(3).to_string() + "\n" + depthwise(1).to_string() + "\n");
}

TEST_F(Recording, ThreadsAndContextsWriteEachLineOnce) {
  const Log log;
  Recorder one(file, log), two(file, log);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t n = 1; n <= 100; ++n) (t % 2 == 0 ? one : two).note(depthwise(n));
    });
  }
  for (std::thread& thread : threads) thread.join();
  auto lines = lines_of(file);
  EXPECT_EQ(lines.size(), 100u);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(std::unique(lines.begin(), lines.end()), lines.end());
  for (const auto& line : lines) EXPECT_TRUE(parse(line).ok()) << line;
}

TEST_F(Recording, ProcessesWriteWholeLines) {
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      const Log log;
      Recorder recorder(file, log);
      for (std::int64_t n = 1; n <= 100; ++n) recorder.note(depthwise(n));
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  auto lines = lines_of(file);
  for (const auto& line : lines) EXPECT_TRUE(parse(line).ok()) << line;
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  EXPECT_EQ(lines.size(), 100u);
}

TEST_F(Recording, AHeldLockHoldsNobodyUp) {
  write_file(file, "");
  const Fd holder(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(holder.get(), LOCK_EX | LOCK_NB), 0);
  const Log log;
  Recorder recorder(file, log);
  recorder.note(depthwise());
  EXPECT_EQ(read_file(file), depthwise().to_string() + "\n");
}

TEST_F(Recording, WhatIsNoRecordingIsOneWarningAndStaysAsItIs) {
  const auto spoilt = [&](const std::filesystem::path& path) {
    Rig own;  // its log has said nothing yet
    own.environment.record = path;
    own.make();
    Error error;
    EXPECT_EQ(own->conv2d(depthwise(1), any_tensors(), nullptr, Regular::yes, error), Code::ok);
    EXPECT_EQ(own->conv2d(depthwise(2), any_tensors(), nullptr, Regular::yes, error), Code::ok);
    const auto warnings = own.warnings();
    ASSERT_EQ(warnings.size(), 1u) << path;
    EXPECT_NE(warnings[0].find(path.string()), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("SLUICE_RECORD"), std::string::npos) << warnings[0];
  };
  spoilt(folder / "nowhere" / "calls.txt");
  spoilt(folder.path());
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  spoilt(folder / "pipe");
  for (const char* const text : {"[\"g8ic8ih8oc8kh3ph1\"]", "export A=1\ng8ic8ih8oc8kh3ph1\n", "\n# a\nnotes"}) {
    write_file(file, text);
    spoilt(file);
    EXPECT_EQ(read_file(file), text);
  }
  std::filesystem::resize_file(file, Recorder::most_bytes + 1);
  spoilt(file);
}

TEST_F(Recording, AFullDiskIsOneWarning) {
  // A limit on the file's size stands in for a disk without space.
  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<std::string> said;
    const Log log([&](LogLevel, std::string_view text) { said.emplace_back(text); });
    Recorder recorder(file, log);
    recorder.note(depthwise(1));
    const auto whole = static_cast<rlim_t>(std::filesystem::file_size(file));
    const rlimit limit{whole + 10, whole + 10};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    recorder.note(depthwise(2));
    recorder.note(depthwise(3));
    _exit(said.size() == 1 && said[0].find("cannot be written") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(file), depthwise(1).to_string() + "\n") << "no part of a line is left";
}

TEST_F(Recording, TheFileIsBounded) {
  std::string full;
  for (std::size_t n = 1; n <= Recorder::most_lines; ++n) {
    full += "g1mb" + std::to_string(n) + "ic1ih1oc1oh1kh1ph0 dt=f32 tag=nchw\n";
  }
  write_file(file, full);
  rig.make();
  EXPECT_EQ(call(depthwise(1)), Code::ok);
  EXPECT_EQ(read_file(file), full);
  ASSERT_EQ(rig.warnings().size(), 1u);
  EXPECT_NE(rig.warnings()[0].find("65536"), std::string::npos) << rig.warnings()[0];
}

}  // namespace
}  // namespace sl::test
