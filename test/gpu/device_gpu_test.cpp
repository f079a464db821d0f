// Query, memory and errors of a real GPU.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "gpu_fixture.hpp"

namespace sl::test {
namespace {

TEST_F(Gpu, QueryMakesSense) {
  const DeviceInfo& info = device->info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.capability, 70) << info.name;
  EXPECT_GT(info.sm_count, 0);
  EXPECT_GE(info.l2_bytes, 1 << 18);
  EXPECT_GE(info.smem_optin, 48 << 10);
  EXPECT_GE(info.smem_per_sm, info.smem_optin);
  EXPECT_GE(info.registers_per_sm, 32768);
  EXPECT_GE(info.max_threads_per_sm, 1024);
  const auto use = device->memory();
  ASSERT_OK(use);
  EXPECT_LE(use->free_bytes, use->total_bytes);
  EXPECT_EQ(static_cast<std::int64_t>(use->total_bytes), info.memory_bytes);
  EXPECT_NE(device->driver().find("CUDA 1"), std::string::npos) << device->driver();
  EXPECT_GE(device->clock_mhz(), 0);
  RecordProperty("device", info.name + ", driver " + device->driver());
}

TEST_F(Gpu, AnOrdinalThatDoesNotExistNamesTheCount) {
  const auto count = cuda_device_count(machine().environment);
  ASSERT_OK(count);
  const auto missing = open_cuda_device(*count, machine().environment, machine().log);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_NE(missing.error().message.find(std::to_string(*count) + " CUDA device"), std::string::npos)
      << missing.error().message;
}

TEST_F(Gpu, CopiesAndFillsArriveWhole) {
  const OwnStream stream(*device);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4097}, std::size_t{64} << 20}) {
    auto a = device->allocate(bytes), b = device->allocate(bytes);
    ASSERT_OK(a);
    ASSERT_OK(b);
    std::vector<unsigned char> in(bytes);
    for (std::size_t i = 0; i < bytes; ++i) in[i] = static_cast<unsigned char>(i * 131 >> 3);
    ASSERT_OK(device->copy_in((*a)->data(), in.data(), bytes, stream));
    ASSERT_OK(device->copy((*b)->data(), (*a)->data(), bytes, stream));
    EXPECT_EQ(read<unsigned char>(*device, **b, bytes, stream), in);
    ASSERT_OK(device->fill((*b)->data(), 0xa5, bytes, stream));
    EXPECT_EQ(read<unsigned char>(*device, **b, bytes, stream), std::vector<unsigned char>(bytes, 0xa5));
  }
}

TEST_F(Gpu, OutOfMemoryIsACodeAndHarmsNothing) {
  const auto huge = device->allocate(std::size_t{1} << 50);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code, Code::out_of_memory) << huge.error().message;
  EXPECT_NE(huge.error().message.find("1125899906842624 bytes"), std::string::npos) << huge.error().message;
  ASSERT_OK(device->allocate(1 << 20));
  ASSERT_OK(device->synchronize(nullptr));
}

TEST_F(Gpu, DamagedCodeIsRefusedAndTheContextLives) {
  Binary binary;
  binary.entry = "sluice_nothing";
  binary.arch = "sm_90";
  binary.compiler = "nobody";
  for (const auto format : {Binary::Format::cubin, Binary::Format::ptx})
    for (const std::string& code : {std::string("\x7f"
                                                "ELF"),
                                    std::string(5000, 'x'), std::string(".version 99.0\n")}) {
      binary.format = format;
      binary.code = code;
      EXPECT_FALSE(device->load(binary, 0).ok());
    }
  ASSERT_OK(device->synchronize(nullptr));
}

TEST_F(Gpu, AForkedChildIsToldAndTearsDownQuietly) {
  auto buffer = device->allocate(1 << 20);
  ASSERT_OK(buffer);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto refused = device->allocate(64);
    const bool said = !refused.ok() && refused.error().message.find("fork") != std::string::npos;
    buffer->reset();
    _exit(said ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  ASSERT_OK(device->fill((*buffer)->data(), 1, 1 << 20, nullptr));
  ASSERT_OK(device->synchronize(nullptr));
}

TEST_F(Gpu, EveryDeviceOfTheMachineWorks) {
  const auto count = cuda_device_count(machine().environment);
  ASSERT_OK(count);
  if (*count < 2) GTEST_SKIP() << "this machine has one GPU";
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    const auto opened = open_cuda_device(ordinal, machine().environment, machine().log);
    ASSERT_OK(opened);
    Device& other = **opened;
    auto buffer = other.allocate(16);
    ASSERT_OK(buffer);
    ASSERT_OK(other.fill((*buffer)->data(), static_cast<unsigned char>(ordinal + 1), 16, nullptr));
    EXPECT_EQ(read<unsigned char>(other, **buffer, 16)[15], ordinal + 1);
  }
}

}  // namespace
}  // namespace sl::test
