// Opening a driver and a device: every way it can be refused has a message that says what to do.
#include "test/device/cuda_fixture.hpp"

namespace sl {
namespace {

using testing::Test;

struct Refusal {
  const char* what;
  const char* library;
  int ordinal;
  Code code;
  std::vector<const char*> says;
};

TEST(CudaOpen, RefusalsNameTheCauseAndTheCure) {
  const Log log;
  const std::vector<Refusal> refusals = {
      {"no driver",
       "/nonexistent/libcuda.so.1",
       0,
       Code::environment,
       {"no CUDA driver", "/nonexistent/libcuda.so.1", "install the NVIDIA driver"}},
      {"not a library", "/dev/null", 0, Code::environment, {"SLUICE_LIBCUDA=/dev/null: no CUDA driver"}},
      {"another library",
       "libm.so.6",
       0,
       Code::environment,
       {"SLUICE_LIBCUDA=libm.so.6: ", "has no symbol cu", "is not a CUDA driver"}},
      {"stub", FAKE_CUDA_STUB, 0, Code::environment, {"stub", "CUDA error 34", "LD_LIBRARY_PATH", FAKE_CUDA_STUB}},
      {"no device", FAKE_CUDA_NO_DEVICE, 0, Code::environment, {"no CUDA device", "CUDA_VISIBLE_DEVICES"}},
      {"old driver", FAKE_CUDA_OLD, 0, Code::environment, {"cuGraphUpload", "too old", "CUDA 13.0"}},
      {"ordinal too large", FAKE_CUDA, 2, Code::not_found, {"cuda:2", "2 CUDA devices", "cuda:0 to cuda:1"}},
      {"negative ordinal", FAKE_CUDA, -1, Code::not_found, {"cuda:-1", "2 CUDA devices"}},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.what);
    const auto device = open_cuda_device(refusal.ordinal, with_driver(refusal.library), log);
    ASSERT_FALSE(device.ok());
    EXPECT_EQ(device.error().code, refusal.code);
    for (const char* const text : refusal.says)
      EXPECT_NE(device.error().message.find(text), std::string::npos) << device.error().message;
  }
}

TEST(CudaOpen, ARefusalIsTheSameTheSecondTime) {
  for (int i = 0; i < 2; ++i) {
    const auto count = cuda_device_count(with_driver(FAKE_CUDA_STUB));
    ASSERT_FALSE(count.ok());
    EXPECT_NE(count.error().message.find("CUDA error 34"), std::string::npos) << count.error().message;
  }
}

TEST(CudaOpen, TheToolkitsStubIsToldFromADriver) {
#ifdef TOOLKIT_STUB
  const auto count = cuda_device_count(with_driver(TOOLKIT_STUB));
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().code, Code::environment);
  EXPECT_NE(count.error().message.find("link-time stub"), std::string::npos) << count.error().message;
#else
  GTEST_SKIP() << "no CUDA toolkit with a stub libcuda on this machine";
#endif
}

TEST_F(FakeCuda, CuInitIsCalledOnceForAnyNumberOfDevices) {
  const auto first = open(), second = open(1);
  EXPECT_LE(control.fake_calls("cuInit"), 1);  // 0 where an earlier test opened this library
  EXPECT_EQ(*cuda_device_count(with_driver(FAKE_CUDA)), 2);
}

TEST_F(FakeCuda, InfoIsWhatTheDriverSays) {
  const auto device = open();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.name, "NVIDIA Fake 100");
  EXPECT_EQ(info.backend, "cuda");
  EXPECT_EQ(info.capability, 90);
  EXPECT_EQ(info.sm_count, 132);
  EXPECT_EQ(info.l2_bytes, 50 << 20);
  EXPECT_EQ(info.smem_optin, 227 << 10);
  EXPECT_EQ(info.smem_per_sm, 228 << 10);
  EXPECT_EQ(info.memory_bytes, static_cast<std::int64_t>(fake::memory_bytes));
  EXPECT_EQ(info.mig, "");
  EXPECT_EQ(device->ordinal(), 0);
  EXPECT_NE(device->driver().find("CUDA 13.0"), std::string::npos) << device->driver();
}

TEST_F(FakeCuda, AMigSliceIsNamedApart) {
  const auto device = open(1);
  EXPECT_EQ(device->info().name, "NVIDIA Fake 100");
  EXPECT_EQ(device->info().mig, "1g.10gb");
  EXPECT_EQ(device->ordinal(), 1);
}

TEST_F(FakeCuda, AFailedOpenKeepsNoContext) {
  control.fake_fault("cuDevicePrimaryCtxRetain", 2, 1);
  const auto device = open_cuda_device(0, with_driver(FAKE_CUDA), log);
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, Code::out_of_memory);
}

}  // namespace
}  // namespace sl
