// What needs a second process: store hits without NVRTC, and a device that static destruction takes down. The program
// starts itself again with a role in the environment.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gpu_fixture.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

constexpr const char* role_variable = "SLUICE_GPU_TEST_ROLE";
constexpr const char* store_variable = "SLUICE_GPU_TEST_STORE";

// Made before main, so destroyed after everything that the driver registers to run at exit.
std::shared_ptr<Device> own;
std::unique_ptr<Buffer> buffer;
std::shared_ptr<const Kernel> kernel_at_exit;
std::unique_ptr<Recording> recording;

/// Runs one test of this program in a new process; its exit code.
int run_self(const std::string& test, const std::string& store) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(role_variable, "child", 1);
    setenv(store_variable, store.c_str(), 1);
    const std::string filter = "--gtest_filter=" + test;
    execl("/proc/self/exe", "sluice_gpu_tests", filter.c_str(), "--gtest_brief=1", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_child() { return std::getenv(role_variable) != nullptr; }

bool nvrtc_is_mapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libnvrtc") != std::string::npos) return true;
  return false;
}

/// A cache over the store, as a new process makes it.
BinaryCache open_cache(const std::string& directory) {
  StoreOptions options;
  options.directory = directory;
  options.kind = 1;
  return {make_nvrtc_compiler(machine().environment, machine().log),
          std::make_shared<FileStore>(options, machine().log), machine().log};
}

void launch_from(BinaryCache& cache, Device& device) {
  const KernelSpec spec = testing_spec("decode");
  const auto binary = cache.get({&spec, 1}, device.info(), 1)[0];
  ASSERT_OK(binary);
  const auto kernel = device.load(**binary, 0);
  ASSERT_OK(kernel);
  auto y = device.allocate(8);
  ASSERT_OK(y);
  SlParams params{};
  params.y = (*y)->data();
  ASSERT_OK(device.launch(**kernel, {1, 64, 0}, params, nullptr));
  EXPECT_EQ(read<long long>(device, **y, 1)[0], 64);
}

TEST_F(GpuJit, ASecondProcessHitsTheStoreWithoutOpeningNvrtc) {
  const TempDir directory;
  const std::string store = (directory / "binaries").string();
  BinaryCache cache = open_cache(store);
  launch_from(cache, *device);
  EXPECT_EQ(cache.counters().compiles, 1U);
  EXPECT_EQ(run_self("GpuChild.ServesFromTheStore", store), 0);
}

TEST_F(Gpu, ADeviceLeftToStaticDestructionEndsCleanly) {
  EXPECT_EQ(run_self("GpuChild.LeavesItsDeviceToStaticDestruction", ""), 0);
}

class GpuChild : public Gpu {
 protected:
  void SetUp() override {
    if (!is_child()) GTEST_SKIP() << "run by another test, in a process of its own";
    Gpu::SetUp();
  }
};

TEST_F(GpuChild, ServesFromTheStore) {
  BinaryCache cache = open_cache(std::getenv(store_variable));
  launch_from(cache, *device);
  EXPECT_EQ(cache.counters().compiles, 0U);
  EXPECT_EQ(cache.counters().binary_hits, 1U);
  EXPECT_FALSE(nvrtc_is_mapped());
}

TEST_F(GpuChild, LeavesItsDeviceToStaticDestruction) {
  const auto opened = open_cuda_device(0, machine().environment, machine().log);
  ASSERT_OK(opened);
  own = *opened;
  buffer = own->allocate(1 << 20).value();
  recording =
      own->record(nullptr, [&](Stream stream) { return own->fill(buffer->data(), 1, 1 << 20, stream); }).value();
  ASSERT_OK(recording->replay());
  if (machine().no_compiler.empty()) kernel_at_exit = load(testing_spec("decode"));
}

}  // namespace
}  // namespace sl::test
