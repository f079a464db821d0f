// Shared memory, 64-bit decoding and loads of kernel code on the host device.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>

#include "device/host/sanitizers.hpp"
#include "jit/host_kernels.hpp"

namespace sl::test {
namespace {

TEST(HostMemory, AWriteOutsideASharedArrayNamesItAndWhere) {
  struct Case {
    std::int64_t at;
    const char* want;
  };
  const Case cases[] = {{16, "written at byte 64, 0 bytes past its end"},
                        {20, "written at byte 80, 16 bytes past its end"},
                        {-1, "written at byte -4, 4 bytes before its start"}};
  for (const Case& c : cases) {
    const KernelSpec spec = testing_kernel("overrun", "memory", {{"AT", c.at}});
    const auto run = [&] { return run_on_host(spec, "", 1, 256, {.threads = 2, .grid = 6, .aux0 = 4}); };
    if (asan::enabled) {
      EXPECT_DEATH(run(), "use-after-poison");
      continue;
    }
    const RunOutcome got = run();
    ASSERT_FALSE(got.status.ok()) << c.at;
    EXPECT_EQ(got.status.error().code, Code::wrong_result);
    const std::string& message = got.status.error().message;
    EXPECT_NE(message.find(spec.entry() + ", block 4: shared array 'victim' (64 bytes) was " + c.want),
              std::string::npos)
        << message;
  }
}

TEST(HostMemory, AWriteInsideIsFine) {
  const RunOutcome got = run_on_host(testing_kernel("overrun", "memory", {{"AT", 15}}), "", 1, 256, {.grid = 6});
  EXPECT_TRUE(got.status.ok()) << got.status.error().message;
}

TEST(HostMemory, DynamicSharedMemoryStartsAsNanAndHasRedzones) {
  const KernelSpec spec = testing_kernel("dynamic", "memory");
  const RunOutcome got = run_on_host(spec, "", 1, 64, {.dynamic_smem = 100, .aux0 = 3});
  ASSERT_TRUE(got.status.ok()) << got.status.error().message;
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(got.at<unsigned char>(i), i == 3 ? 7 : 0xff) << i;

  const auto overrun = [&] { return run_on_host(spec, "", 1, 64, {.dynamic_smem = 100, .aux0 = 101}); };
  if (asan::enabled) {
    EXPECT_DEATH(overrun(), "use-after-poison");
    return;
  }
  const RunOutcome bad = overrun();
  ASSERT_FALSE(bad.status.ok());
  EXPECT_EQ(bad.status.error().code, Code::wrong_result);
  EXPECT_NE(bad.status.error().message.find("dynamic shared memory (100 bytes) was written at byte 101"),
            std::string::npos)
      << bad.status.error().message;
}

TEST(HostMemory, LargeDynamicSharedMemory) {
  const RunOutcome got =
      run_on_host(testing_kernel("dynamic", "memory"), "", 1, 64, {.dynamic_smem = 200000, .aux0 = 199999});
  EXPECT_TRUE(got.status.ok()) << got.status.error().message;
}

TEST(HostMemory, IndicesDecodeIn64Bits) {
  const long long stride = (1LL << 40) + 1;
  const RunOutcome got = run_on_host(testing_kernel("decode", "memory"), "", 1, 8 * 50,
                                     {.threads = 3, .grid = 50, .block = 48, .aux0 = stride});
  ASSERT_TRUE(got.status.ok()) << got.status.error().message;
  for (long long block = 0; block < 50; ++block)
    EXPECT_EQ(got.at<long long>(static_cast<std::size_t>(block)), block * stride + 50 * 48) << block;
}

TEST(HostMemory, LoadsOfEverySizeAndTheirAlignment) {
  std::array<unsigned char, 16 * 34> x{};
  std::iota(x.begin(), x.end(), static_cast<unsigned char>(1));
  for (const int bytes : {1, 2, 4, 8, 16}) {
    const KernelSpec spec = testing_kernel("load", "memory", {{"BYTES", bytes}}, 32);
    const std::size_t size = 32 * static_cast<std::size_t>(bytes);
    const RunOutcome got = run_on_host(spec, x.data(), x.size(), size, {.aux0 = bytes});
    ASSERT_TRUE(got.status.ok()) << got.status.error().message;
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(got.at<unsigned char>(i), x[i + static_cast<std::size_t>(bytes)]) << bytes << " " << i;
    if (bytes == 1) continue;
    const RunOutcome bad = run_on_host(spec, x.data(), x.size(), size, {.aux0 = bytes / 2});
    ASSERT_FALSE(bad.status.ok()) << "a GPU faults on a misaligned load of " << bytes << " bytes";
    EXPECT_EQ(bad.status.error().code, Code::device);
    EXPECT_NE(bad.status.error().message.find("loads " + std::to_string(bytes) + " bytes"), std::string::npos)
        << bad.status.error().message;
  }
}

}  // namespace
}  // namespace sl::test
