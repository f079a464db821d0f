// The system's C++ compiler as a Compiler: good and bad kernels together, a missing or hanging compiler, clean-up.
#include "jit/host_compiler.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "jit/backends.hpp"
#include "jit/host_kernels.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

namespace fs = std::filesystem;

const Log silent;

Environment environment() { return read_environment().value(); }

KernelSpec good(int threads) { return testing_kernel("broken", "memory", {{"BROKEN", 0}}, threads); }
KernelSpec bad() { return testing_kernel("broken", "memory", {{"BROKEN", 1}}); }

/// An executable shell script that stands for a compiler.
std::string script(const TempDir& directory, const std::string& body) {
  const fs::path path = directory / "fake-c++";
  write_file(path, "#!/bin/sh\n" + body);
  fs::permissions(path, fs::perms::owner_all);
  return path.string();
}

/// Points TMPDIR at a fresh directory, so that a test sees what is left behind.
class ScopedTmpdir {
 public:
  ScopedTmpdir() {
    const char* old = std::getenv("TMPDIR");
    had_ = old != nullptr;
    if (had_) old_ = old;
    setenv("TMPDIR", directory_.path().c_str(), 1);
  }
  ~ScopedTmpdir() {
    if (had_) {
      setenv("TMPDIR", old_.c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
  }
  bool empty() const { return fs::is_empty(directory_.path()); }

 private:
  TempDir directory_;
  std::string old_;
  bool had_ = false;
};

TEST(HostCompiler, ABadKernelHarmsNoOther) {
  const ScopedTmpdir tmpdir;
  const auto compiler = make_host_compiler(environment(), silent);
  const KernelSpec specs[] = {good(32), bad(), good(64), good(32)};
  const auto results = compiler->compile(specs, "host", 1);
  ASSERT_EQ(results.size(), 4U);
  for (const std::size_t i : {0U, 2U, 3U}) {
    ASSERT_TRUE(results[i].ok()) << results[i].error().message;
    EXPECT_EQ(results[i].value().entry, specs[i].entry());
    EXPECT_EQ(results[i].value().format, Binary::Format::shared_object);
    EXPECT_EQ(results[i].value().arch, "host");
    EXPECT_EQ(results[i].value().compiler, compiler->version().value());
  }
  ASSERT_FALSE(results[1].ok());
  EXPECT_EQ(results[1].error().code, Code::compile);
  const std::string& message = results[1].error().message;
  for (const std::string& want : {bad().canonical(), std::string("this kernel is broken on purpose"),
                                  std::string("-std=c++20"), compiler->identity().path, compiler->version().value()})
    EXPECT_NE(message.find(want), std::string::npos) << "no '" << want << "' in: " << message;
  EXPECT_TRUE(tmpdir.empty()) << "temporary files are left behind";
}

TEST(HostCompiler, KernelsOfOneUnitShareItsBytes) {
  const auto compiler = make_host_compiler(environment(), silent);
  const KernelSpec specs[] = {good(32), good(64)};
  const auto results = compiler->compile(specs, "host", 1);
  ASSERT_TRUE(results[0].ok() && results[1].ok());
  EXPECT_EQ(results[0].value().code, results[1].value().code);
  EXPECT_NE(results[0].value().entry, results[1].value().entry);
}

TEST(HostCompiler, AnUnknownSourceIsNamed) {
  KernelSpec spec = good(32);
  spec.source = "no_such.cuh";
  const auto results = make_host_compiler(environment(), silent)->compile({&spec, 1}, "host", 1);
  ASSERT_FALSE(results[0].ok());
  EXPECT_EQ(results[0].error().code, Code::compile);
  EXPECT_NE(results[0].error().message.find("no_such.cuh"), std::string::npos) << results[0].error().message;
}

TEST(HostCompiler, AMissingCompilerSaysWhereItWasLookedFor) {
  Environment none;
  none.path = "/nonexistent:/also/nonexistent";
  Environment wrong = environment();
  wrong.host_cxx = "/nonexistent/c++";
  Environment not_executable = environment();
  const TempDir directory;
  write_file(directory / "plain", "x");
  not_executable.host_cxx = (directory / "plain").string();
  struct Case {
    Environment environment;
    std::string want;
  };
  const Case cases[] = {{none, "clang++ is on PATH (/nonexistent:/also/nonexistent)"},
                        {wrong, "SLUICE_HOST_CXX=/nonexistent/c++"},
                        {not_executable, "SLUICE_HOST_CXX=" + not_executable.host_cxx}};
  for (const Case& c : cases) {
    const auto compiler = make_host_compiler(c.environment, silent);
    EXPECT_FALSE(compiler->identity().available);
    EXPECT_NE(compiler->identity().why_not.find(c.want), std::string::npos) << compiler->identity().why_not;
    const KernelSpec spec = good(32);
    const auto results = compiler->compile({&spec, 1}, "host", 1);
    ASSERT_FALSE(results[0].ok());
    EXPECT_EQ(results[0].error().code, Code::environment);
    EXPECT_NE(results[0].error().message.find(c.want), std::string::npos) << results[0].error().message;
    EXPECT_FALSE(compiler->version().ok());
  }
}

TEST(HostCompiler, AHangingCompilerIsStopped) {
  const TempDir directory;
  const ScopedTmpdir tmpdir;
  Environment hanging = environment();
  hanging.host_cxx =
      script(directory, "case \"$1\" in --version) echo fake 1.0;; *) echo half-way; sleep 600;; esac\n");
  HostCompiler compiler(hanging, silent, std::chrono::milliseconds(300));
  const KernelSpec specs[] = {good(32), good(64)};
  for (const auto& result : compiler.compile(specs, "host", 1)) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::compile);
    EXPECT_NE(result.error().message.find("was stopped after 300 ms"), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find("half-way"), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find("fake 1.0"), std::string::npos) << result.error().message;
  }
  EXPECT_TRUE(tmpdir.empty());
}

TEST(HostCompiler, ACompilerThatWritesNothingIsAFailure) {
  const TempDir directory;
  Environment lazy = environment();
  lazy.host_cxx = script(directory, "echo did nothing\n");
  const KernelSpec spec = good(32);
  const auto results = make_host_compiler(lazy, silent)->compile({&spec, 1}, "host", 1);
  ASSERT_FALSE(results[0].ok());
  EXPECT_NE(results[0].error().message.find("did nothing"), std::string::npos) << results[0].error().message;
}

TEST(HostCompiler, IdentityFollowsTheCompilersFile) {
  const TempDir directory;
  Environment fake = environment();
  fake.host_cxx = script(directory, "exit 1\n");
  const CompilerIdentity before = make_host_compiler(fake, silent)->identity();
  EXPECT_TRUE(before.available);
  EXPECT_EQ(before.path, fake.host_cxx);
  EXPECT_NE(before.text.find("-O1"), std::string::npos) << before.text;
  EXPECT_EQ(make_host_compiler(fake, silent)->identity().text, before.text);
  fs::last_write_time(fake.host_cxx, fs::last_write_time(fake.host_cxx) - std::chrono::seconds(10));
  EXPECT_NE(make_host_compiler(fake, silent)->identity().text, before.text) << "a new mtime is another compiler";
}

TEST(HostCompiler, BuildsForTheHostDeviceOnly) {
  const auto compiler = make_host_compiler(environment(), silent);
  DeviceInfo host;
  host.backend = "host";
  ASSERT_TRUE(compiler->arch_for(host).ok());
  EXPECT_TRUE(compiler->arch_for(host).value().starts_with("host"));
  DeviceInfo gpu;
  gpu.name = "NVIDIA H200";
  const auto refused = compiler->arch_for(gpu);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("NVIDIA H200"), std::string::npos);
}

TEST(HostCompiler, ManyThreadsAtOnce) {
  const auto compiler = make_host_compiler(environment(), silent);
  std::vector<std::string> failures(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < failures.size(); ++i) {
      threads.emplace_back([&, i] {
        const KernelSpec spec = good(32 * (1 + static_cast<int>(i % 2)));
        const auto results = compiler->compile({&spec, 1}, "host", 2);
        if (!results[0].ok()) failures[i] = results[0].error().message;
      });
    }
  }
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace sl::test
