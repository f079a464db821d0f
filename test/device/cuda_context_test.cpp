// The primary context: current for every call, never left behind, and harmless after a fork, at exit and when it died.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "device/cuda/driver_api.hpp"
#include "test/device/cuda_fixture.hpp"

namespace sl {
namespace {

using cuda::CUcontext;
using cuda::CUresult;

class CudaContext : public FakeCuda {
 protected:
  CUresult push(void* context) { return control.symbol<CUresult (*)(void*)>("cuCtxPushCurrent_v2")(context); }
  void* pop() {
    void* context = nullptr;
    control.symbol<CUresult (*)(void**)>("cuCtxPopCurrent_v2")(&context);
    return context;
  }
  /// One of each call that needs the context.
  void use(Device& device) {
    auto buffer = device.allocate(64);
    ASSERT_TRUE(buffer.ok()) << buffer.error().message;
    char bytes[64] = {};
    EXPECT_TRUE(device.copy_in((*buffer)->data(), bytes, sizeof bytes, nullptr).ok());
    EXPECT_TRUE(device.fill((*buffer)->data(), 7, sizeof bytes, nullptr).ok());
    EXPECT_TRUE(device.copy_out(bytes, (*buffer)->data(), sizeof bytes, nullptr).ok());
    EXPECT_EQ(bytes[63], 7);
    EXPECT_TRUE(device.memory().ok());
    const auto kernel = device.load(tiny_cubin(), 0);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_TRUE(device.launch(**kernel, {1, 32, 0}, {}, nullptr).ok());
    EXPECT_EQ(control.last_launch().context, control.fake_primary(device.ordinal()));
    const auto stream = device.create_stream();
    ASSERT_TRUE(stream.ok());
    EXPECT_TRUE(device.launch(**kernel, {1, 32, 0}, {}, *stream).ok());
    EXPECT_TRUE(device.try_launch(**kernel, {1, 32, 0}, {}, *stream));
    EXPECT_EQ(control.last_launch().context, control.fake_primary(device.ordinal()));
    EXPECT_EQ(control.last_launch().stream, *stream);
    EXPECT_FALSE(device.capturing(*stream));
    EXPECT_TRUE(device.synchronize(*stream).ok());
    device.destroy_stream(*stream);
  }
};

TEST_F(CudaContext, AThreadWithoutAContextIsServed) {
  const auto device = open();
  use(*device);
  std::thread([&] {
    use(*device);
    EXPECT_EQ(control.fake_context_depth(), 0);
  }).join();
}

TEST_F(CudaContext, AnotherDevicesContextIsPutBack) {
  const auto device = open(1);
  ASSERT_EQ(push(control.fake_primary(0)), 0);
  use(*device);
  EXPECT_EQ(control.fake_context_depth(), 1);
  EXPECT_EQ(pop(), control.fake_primary(0));
}

TEST_F(CudaContext, NothingIsPushedWhereItIsCurrentAlready) {
  const auto device = open();
  ASSERT_EQ(push(control.fake_primary(0)), 0);
  const int before = control.fake_calls("cuCtxPushCurrent_v2");
  use(*device);
  EXPECT_EQ(control.fake_calls("cuCtxPushCurrent_v2"), before);
  pop();
}

TEST_F(CudaContext, AGlobalCaptureOfAnotherThreadIsNotBroken) {
  const auto device = open();
  const auto stream = device->create_stream();
  ASSERT_TRUE(stream.ok());
  push(control.fake_primary(0));
  ASSERT_EQ(control.symbol<CUresult (*)(void*, int)>("cuStreamBeginCapture_v2")(*stream, cuda::capture_global), 0);
  std::thread([&] {
    auto buffer = device->allocate(64);
    EXPECT_TRUE(buffer.ok()) << buffer.error().message;
    const auto kernel = device->load(tiny_cubin(), 0);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    const auto recording = device->record(nullptr, [](Stream) -> Status { return {}; });
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    EXPECT_TRUE((*recording)->replay().ok());
  }).join();
  void* graph = nullptr;
  EXPECT_EQ(control.symbol<CUresult (*)(void*, void**)>("cuStreamEndCapture")(*stream, &graph), 0);
  control.symbol<CUresult (*)(void*)>("cuGraphDestroy")(graph);
  pop();
  device->destroy_stream(*stream);
}

TEST_F(CudaContext, WaitingOnACapturingStreamIsRefusedAndLeavesTheCaptureValid) {
  const auto device = open();
  const auto stream = device->create_stream();
  ASSERT_TRUE(stream.ok());
  push(control.fake_primary(0));
  ASSERT_EQ(control.symbol<CUresult (*)(void*, int)>("cuStreamBeginCapture_v2")(*stream, cuda::capture_relaxed), 0);
  EXPECT_TRUE(device->capturing(*stream));
  EXPECT_TRUE(device->capturing(nullptr)) << "the legacy stream may not be used while another captures";
  char byte = 0;
  EXPECT_EQ(device->synchronize(*stream).error().code, Code::not_prepared);
  EXPECT_EQ(device->copy_in(&byte, &byte, 1, *stream).error().code, Code::not_prepared);
  EXPECT_EQ(device->copy_out(&byte, &byte, 1, *stream).error().code, Code::not_prepared);
  void* graph = nullptr;
  EXPECT_EQ(control.symbol<CUresult (*)(void*, void**)>("cuStreamEndCapture")(*stream, &graph), 0);
  control.symbol<CUresult (*)(void*)>("cuGraphDestroy")(graph);
  EXPECT_FALSE(device->capturing(*stream));
  pop();
  device->destroy_stream(*stream);
}

TEST_F(CudaContext, TheDeviceMayDieBeforeItsKernelsAndBuffers) {
  auto device = open();
  auto buffer = device->allocate(64);
  auto kernel = device->load(tiny_cubin(), 0);
  ASSERT_TRUE(buffer.ok() && kernel.ok());
  device.reset();
  EXPECT_EQ(control.live().retains, 1) << "the context lives while something of it does";
}

/// Everything a device can own, destroyed when the test wants it to be.
struct Everything {
  std::shared_ptr<Device> device;
  std::unique_ptr<Buffer> buffer;
  std::shared_ptr<const Kernel> kernel;
  std::unique_ptr<Recording> recording;
  explicit Everything(std::shared_ptr<Device> d)
      : device(std::move(d)),
        buffer(device->allocate(64).value()),
        kernel(device->load(tiny_cubin(), 0).value()),
        recording(device->record(nullptr, [](Stream) -> Status { return {}; }).value()) {}
};

TEST_F(CudaContext, TeardownAfterTheDriverIsGoneCallsNothingThatFails) {
  {
    Everything everything(open());
    control.fake_deinitialise();
  }
  EXPECT_EQ(control.fake_calls("cuMemFree_v2"), 0) << "what cannot be reached is not touched";
  EXPECT_EQ(control.fake_calls("cuModuleUnload"), 0);
  leaves_remains = true;
}

TEST_F(CudaContext, TeardownAfterTheContextDied) {
  {
    Everything everything(open());
    control.fake_destroy_contexts();
    const auto more = everything.device->allocate(64);
    ASSERT_FALSE(more.ok());
    EXPECT_NE(more.error().message.find("cudaDeviceReset"), std::string::npos) << more.error().message;
  }
  EXPECT_EQ(control.fake_calls("cuMemFree_v2"), 0);
  leaves_remains = true;
}

TEST_F(CudaContext, AForkedChildCallsNothingAndSaysWhy) {
  auto everything = std::make_unique<Everything>(open());
  const int pushes = control.fake_calls("cuCtxPushCurrent_v2");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto refused = everything->device->allocate(64);
    const bool said = !refused.ok() && refused.error().message.find("fork") != std::string::npos;
    const bool idle = !everything->device->capturing(nullptr) && everything->device->clock_mhz() == 0;
    everything.reset();
    bool silent = true;
    for (const char* const call :
         {"cuMemFree_v2", "cuModuleUnload", "cuGraphExecDestroy", "cuEventDestroy_v2", "cuDevicePrimaryCtxRelease_v2"})
      silent = silent && control.fake_calls(call) == 0;
    silent = silent && control.fake_calls("cuCtxPushCurrent_v2") == pushes;
    _exit((said ? 0 : 1) + (idle ? 0 : 2) + (silent ? 0 : 4));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: no message, 2: a query called the driver, 4: teardown called the driver";
  everything.reset();
}

}  // namespace
}  // namespace sl
