// The hot path: what reaches the driver, what is refused, and that nothing is allocated.
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "device/cuda/driver_api.hpp"
#include "test/device/cuda_fixture.hpp"

namespace {
std::atomic<long> allocations{0};
void* counted(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
}  // namespace

// Replaced for the whole test program: a launch is surrounded by two readings of the count.
void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace sl {
namespace {

TEST_F(FakeCuda, ALaunchArrivesWholeAndAllocatesNothing) {
  const auto device = open();
  const auto kernel = device->load(tiny_cubin(), 0);
  ASSERT_TRUE(kernel.ok());
  const auto stream = device->create_stream();
  ASSERT_TRUE(stream.ok());
  SlParams params{};
  params.work = 1234567890123;
  const Geometry geometry{std::numeric_limits<std::int32_t>::max(), 256, 2048};
  for (int i = 0; i < 3; ++i) {
    const long before = allocations;
    const bool ok = device->launch(**kernel, geometry, params, *stream).ok() && !device->capturing(*stream);
    EXPECT_EQ(allocations - before, 0);
    EXPECT_TRUE(ok);
  }
  const fake::Launch launch = control.last_launch();
  EXPECT_EQ(launch.count, 3);
  EXPECT_EQ(launch.grid, 2147483647U);
  EXPECT_EQ(launch.block, 256U);
  EXPECT_EQ(launch.smem, 2048U);
  EXPECT_EQ(launch.stream, *stream);
  EXPECT_EQ(launch.context, control.fake_primary(0));
  EXPECT_EQ(launch.params_work, 1234567890123);
  device->destroy_stream(*stream);
}

TEST_F(FakeCuda, TheCounterCounts) {  // or the test above could not fail
  const long before = allocations;
  const auto text = std::make_unique<std::string>(100, 'x');
  EXPECT_GE(allocations - before, 2);
}

TEST_F(FakeCuda, AnEmptyGridIsNoLaunch) {
  const auto device = open();
  const auto kernel = device->load(tiny_cubin(), 0);
  ASSERT_TRUE(kernel.ok());
  EXPECT_TRUE(device->launch(**kernel, {0, 128, 0}, {}, nullptr).ok());
  EXPECT_EQ(control.last_launch().count, 0);
}

TEST_F(FakeCuda, GeometryThatTheDriverWouldCutIsRefused) {
  const auto device = open();
  const auto kernel = device->load(tiny_cubin(), 0);
  ASSERT_TRUE(kernel.ok());
  for (const Geometry& geometry :
       {Geometry{std::int64_t{1} << 31, 128, 0}, Geometry{(std::int64_t{1} << 32) + 1, 128, 0}, Geometry{-1, 128, 0},
        Geometry{1, 0, 0}, Geometry{1, 32, -1}}) {
    const Status status = device->launch(**kernel, geometry, {}, nullptr);
    ASSERT_FALSE(status.ok()) << geometry.grid;
    EXPECT_EQ(status.error().code, Code::invalid);
    EXPECT_NE(status.error().message.find("grid " + std::to_string(geometry.grid)), std::string::npos)
        << status.error().message;
  }
  EXPECT_EQ(control.last_launch().count, 0);
}

TEST_F(FakeCuda, AKernelOfAnotherDeviceIsRefused) {
  const auto first = open(0), second = open(1);
  const auto kernel = first->load(tiny_cubin(), 0);
  ASSERT_TRUE(kernel.ok());
  const Status status = second->launch(**kernel, {1, 32, 0}, {}, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("another Device (cuda:0)"), std::string::npos) << status.error().message;
  EXPECT_EQ(control.last_launch().count, 0);
}

// With the context current and a stream of its own, a launch is one call of the driver.
TEST_F(FakeCuda, NothingButTheLaunchIsAskedOfTheDriver) {
  const auto device = open();
  const auto kernel = device->load(tiny_cubin(), 0);
  ASSERT_TRUE(kernel.ok());
  const auto stream = device->create_stream();
  ASSERT_TRUE(stream.ok());
  ASSERT_EQ(control.symbol<cuda::CUresult (*)(void*)>("cuCtxPushCurrent_v2")(control.fake_primary(0)), 0);
  const int asked = control.fake_calls("cuCtxGetCurrent"), pushed = control.fake_calls("cuCtxPushCurrent_v2");
  EXPECT_TRUE(device->try_launch(**kernel, {1, 32, 0}, {}, *stream));
  EXPECT_EQ(control.fake_calls("cuCtxGetCurrent"), asked);
  EXPECT_EQ(control.last_launch().count, 1);
  control.fake_fault("cuLaunchKernel", 700, 1);
  EXPECT_FALSE(device->try_launch(**kernel, {1, 32, 0}, {}, *stream)) << "a failure in the right context is final";
  EXPECT_EQ(control.last_launch().count, 1);
  EXPECT_EQ(control.fake_calls("cuCtxPushCurrent_v2"), pushed);
  void* popped = nullptr;
  control.symbol<cuda::CUresult (*)(void**)>("cuCtxPopCurrent_v2")(&popped);
  device->destroy_stream(*stream);
}

TEST_F(FakeCuda, AFailedLaunchNamesKernelAndGeometry) {
  const auto device = open();
  const auto kernel = device->load(tiny_cubin(), 0);
  ASSERT_TRUE(kernel.ok());
  control.fake_fault("cuLaunchKernel", 700, 1);
  const Status status = device->launch(**kernel, {7, 32, 0}, {}, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::device);
  for (const char* const text : {"sluice_test", "grid 7", "block 32", "CUDA_ERROR_ILLEGAL_ADDRESS"})
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace sl
