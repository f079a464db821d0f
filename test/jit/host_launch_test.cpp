// Loading and launching real kernels on the host device: from bytes, from many threads, from streams and recordings.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "jit/backends.hpp"
#include "jit/host_kernels.hpp"

namespace sl::test {
namespace {

constexpr int block = 64;

KernelSpec sum() { return testing_kernel("sum", "collectives", {}, block); }

/// x = 1, 2, ... offset by `first`; y[b] = sum of block b.
struct SumCall {
  std::vector<float> x, y;
  SlParams params{};
  explicit SumCall(std::size_t blocks, float first) : x(blocks * block), y(blocks) {
    std::iota(x.begin(), x.end(), first);
    params.x = x.data();
    params.y = y.data();
  }
  Geometry geometry() const { return {static_cast<std::int64_t>(y.size()), block, 0}; }
  bool right() const {
    for (std::size_t b = 0; b < y.size(); ++b)
      if (y[b] != std::accumulate(&x[b * block], &x[b * block] + block, 0.0F)) return false;
    return true;
  }
};

TEST(HostLaunch, ABinaryIsItsBytesAndItsEntry) {
  const Binary original = host_binary(sum());
  Binary copy;  // what a store keeps
  copy.format = Binary::Format::shared_object;
  copy.code = std::string(original.code.begin(), original.code.end());
  copy.entry = original.entry;
  const auto first = open_host_device(), second = open_host_device();
  const auto a = first->load(original, 0), b = second->load(copy, 0);
  ASSERT_TRUE(a.ok()) << a.error().message;
  ASSERT_TRUE(b.ok()) << b.error().message;
  for (const auto& [device, kernel] : {std::pair(first, *a), std::pair(second, *b)}) {
    SumCall call(3, 1);
    const Status status = device->launch(*kernel, call.geometry(), call.params, nullptr);
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_TRUE(call.right());
  }
}

TEST(HostLaunch, ManyThreadsAtOnce) {
  const auto device = open_host_device({.threads = 3, .seed = 11});
  const auto kernel = device->load(host_binary(sum()), 0);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  std::vector<std::string> failures(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < failures.size(); ++i) {
      threads.emplace_back([&, i] {
        const Stream stream = i % 2 == 0 ? nullptr : device->create_stream().value();
        for (int round = 0; round < 25 && failures[i].empty(); ++round) {
          SumCall call(1 + i, static_cast<float>(round));
          const Status status = device->launch(**kernel, call.geometry(), call.params, stream);
          if (!status.ok()) failures[i] = status.error().message;
          if (!call.right()) failures[i] = "wrong sums in round " + std::to_string(round);
        }
        if (stream != nullptr) device->destroy_stream(stream);
      });
    }
  }
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(HostLaunch, AFailedLaunchLeavesTheDeviceUsable) {
  const auto device = open_host_device({.threads = 2, .seed = 4});
  const auto good = device->load(host_binary(sum()), 0);
  const auto bad = device->load(host_binary(testing_kernel("divergent", "collectives", {{"AT_BARRIER", 16}}, 32)), 0);
  ASSERT_TRUE(good.ok() && bad.ok());
  unsigned votes[32];
  SlParams params{};
  params.y = votes;
  for (int round = 0; round < 5; ++round) {
    EXPECT_FALSE(device->launch(**bad, {7, 32, 0}, params, nullptr).ok());
    SumCall call(7, 1);
    const Status status = device->launch(**good, call.geometry(), call.params, nullptr);
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_TRUE(call.right());
  }
}

TEST(HostLaunch, GeometryIsChecked) {
  const auto device = open_host_device();
  const auto kernel = device->load(host_binary(sum()), 0);
  ASSERT_TRUE(kernel.ok());
  struct Case {
    Geometry geometry;
    const char* want;
  };
  const Case cases[] = {{{0, block, 0}, "grid 0"},
                        {{1LL << 31, block, 0}, "grid 2147483648"},
                        {{1, 0, 0}, "block 0"},
                        {{1, block + 1, 0}, "block 65 must be 1 to 64"},
                        {{1, block, -1}, "dynamic_smem -1"},
                        {{1, block, 48 * 1024 + 1}, "dynamic_smem 49153 must be 0 to 49152"}};
  for (const Case& c : cases) {
    const Status status = device->launch(**kernel, c.geometry, SlParams{}, nullptr);
    ASSERT_FALSE(status.ok()) << c.want;
    EXPECT_EQ(status.error().code, Code::invalid);
    EXPECT_NE(status.error().message.find(c.want), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find(sum().entry()), std::string::npos) << status.error().message;
  }
}

TEST(HostLaunch, RecordsAndReplays) {
  const auto device = open_host_device();
  const auto kernel = device->load(host_binary(sum()), 0);
  ASSERT_TRUE(kernel.ok());
  const Stream stream = device->create_stream().value();
  for (const Stream where : {stream, Stream(nullptr)}) {
    SumCall call(2, 1);
    auto recording = device->record(where, [&](Stream target) -> Status {
      EXPECT_TRUE(device->capturing(target));
      SL_TRY(device->fill(call.y.data(), 0, 8, target));
      return device->launch(**kernel, call.geometry(), call.params, target);
    });
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    EXPECT_FALSE(device->capturing(where));
    EXPECT_EQ(call.y[1], 0.0F) << "recording must not run";
    call.x[64] = 1000;  // pointers are recorded, not what they point to
    const Result<double> time = (*recording)->replay();
    ASSERT_TRUE(time.ok()) << time.error().message;
    EXPECT_GT(*time, 0.0);
    EXPECT_TRUE(call.right());
  }
  device->destroy_stream(stream);
}

TEST(HostLaunch, AnEntryThatIsNotThere) {
  Binary binary = host_binary(sum());
  binary.entry = "sluice_no_such_kernel";
  const auto kernel = open_host_device()->load(binary, 0);
  ASSERT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error().message.find("sluice_no_such_kernel"), std::string::npos) << kernel.error().message;
}

TEST(HostLaunch, ATruncatedBinaryIsRefused) {
  const Binary whole = host_binary(sum());
  const auto device = open_host_device();
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, whole.code.size() / 2, whole.code.size() - 1}) {
    Binary part = whole;
    part.code.resize(size);
    const auto kernel = device->load(part, 0);
    ASSERT_FALSE(kernel.ok()) << size;
    EXPECT_EQ(kernel.error().code, Code::device);
    EXPECT_NE(kernel.error().message.find(std::to_string(size) + " bytes"), std::string::npos)
        << kernel.error().message;
  }
}

}  // namespace
}  // namespace sl::test
