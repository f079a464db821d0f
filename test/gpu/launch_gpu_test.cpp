// Compiled kernels on a real GPU: launched, captured, recorded and timed.
#include <dlfcn.h>

#include <thread>

#include "device/cuda/driver_api.hpp"
#include "gpu_fixture.hpp"

namespace sl::test {
namespace {

constexpr std::int64_t blocks = 1000;
constexpr long long factor = 3'000'000'000;  // block 1 on is beyond 32 bits

std::vector<long long> expected_decode() {
  std::vector<long long> values;
  for (long long block = 0; block < blocks; ++block) values.push_back(block * factor + blocks * 64);
  return values;
}

class GpuLaunch : public GpuJit {
 protected:
  void SetUp() override {
    GpuJit::SetUp();
    if (IsSkipped()) return;
    kernel = load(testing_spec("decode"));
    ASSERT_NE(kernel, nullptr);
    auto allocated = device->allocate(blocks * sizeof(long long));
    ASSERT_OK(allocated);
    y = std::move(*allocated);
    params.y = y->data();
    params.aux[0] = factor;
  }
  Status launch(Stream stream) { return device->launch(*kernel, {blocks, 64, 0}, params, stream); }
  Status poison(Stream stream) { return device->fill(y->data(), 0xff, y->size(), stream); }

  std::shared_ptr<const Kernel> kernel;
  std::unique_ptr<Buffer> y;
  SlParams params{};
};

TEST_F(GpuLaunch, OnAnyStreamFromAnyThread) {
  const OwnStream own(*device);
  for (const Stream stream : {Stream{nullptr}, Stream{own}}) {
    std::thread([&] {
      ASSERT_OK(poison(stream));
      ASSERT_OK(launch(stream));
      EXPECT_EQ(read<long long>(*device, *y, blocks, stream), expected_decode());
    }).join();
  }
}

/// A context that is not the primary one, current while it lives.
class OtherContext {
 public:
  explicit OtherContext(const cuda::DriverApi& api) : library_(dlopen(api.path.c_str(), RTLD_NOW)) {
    const auto create = symbol<cuda::CUresult (*)(cuda::CUcontext*, unsigned, cuda::CUdevice)>("cuCtxCreate_v2");
    if (create == nullptr || create(&context_, 0, 0) != cuda::cuda_success) context_ = nullptr;
  }
  ~OtherContext() {
    const auto destroy = symbol<cuda::CUresult (*)(cuda::CUcontext)>("cuCtxDestroy_v2");
    if (context_ != nullptr && destroy != nullptr) destroy(context_);
  }
  OtherContext(const OtherContext&) = delete;
  OtherContext& operator=(const OtherContext&) = delete;
  cuda::CUcontext handle() const { return context_; }

 private:
  template <class F>
  F symbol(const char* name) const {
    return reinterpret_cast<F>(dlsym(library_, name));
  }
  void* library_;
  cuda::CUcontext context_ = nullptr;
};

// The launch does not ask which context is current; the driver refuses the wrong one, and then it is put right.
TEST_F(GpuLaunch, WithAnotherContextCurrent) {
  const auto api = cuda::load_driver(machine().environment.libcuda);
  ASSERT_OK(api);
  const OwnStream own(*device);
  const OtherContext other(**api);
  ASSERT_NE(other.handle(), nullptr);
  for (const Stream stream : {Stream{nullptr}, Stream{own}}) {
    ASSERT_OK(poison(stream));
    ASSERT_OK(launch(stream));
    EXPECT_EQ(read<long long>(*device, *y, blocks, stream), expected_decode());
    ASSERT_OK(poison(stream));
    EXPECT_TRUE(device->try_launch(*kernel, {blocks, 64, 0}, params, stream));
    EXPECT_EQ(read<long long>(*device, *y, blocks, stream), expected_decode());
    cuda::CUcontext current = nullptr;
    ASSERT_EQ((*api)->ctx_get_current(&current), 0);
    EXPECT_EQ(current, other.handle()) << "it is put back";
  }
}

TEST_F(GpuLaunch, ACaptureSurvivesALaunchWithAnotherContextCurrent) {
  const auto api = cuda::load_driver(machine().environment.libcuda);
  ASSERT_OK(api);
  const OwnStream stream(*device);
  const OtherContext other(**api);
  ASSERT_NE(other.handle(), nullptr);
  ASSERT_OK(poison(stream));
  ASSERT_OK(device->synchronize(stream));
  const auto recording = device->record(stream, [&](Stream inner) -> Status {
    if ((*api)->ctx_push_current(other.handle()) != 0) return Error{Code::device, "no push"};
    const Status status = launch(inner);
    cuda::CUcontext popped = nullptr;
    (*api)->ctx_pop_current(&popped);
    return status;
  });
  ASSERT_OK(recording);
  ASSERT_OK((*recording)->replay());
  EXPECT_EQ(read<long long>(*device, *y, blocks, stream), expected_decode());
}

TEST_F(GpuLaunch, DynamicSharedMemoryBeyondTheDefault) {
  const int bytes = device->info().smem_optin;
  const auto dynamic = load(testing_spec("dynamic"), bytes);
  ASSERT_NE(dynamic, nullptr);
  params.aux[0] = bytes - 1;  // the last byte is there
  ASSERT_OK(device->launch(*dynamic, {1, 64, bytes}, params, nullptr));
  ASSERT_OK(device->synchronize(nullptr));
  const Binary binary = **machine().cache->get(std::vector{testing_spec("dynamic")}, device->info(), 1)[0];
  const auto refused = device->load(binary, bytes + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::invalid);
}

TEST_F(GpuLaunch, AGridThatIsTooLargeIsRefused) {
  EXPECT_EQ(device->launch(*kernel, {std::int64_t{1} << 31, 64, 0}, params, nullptr).error().code, Code::invalid);
  ASSERT_OK(device->synchronize(nullptr));
}

TEST_F(GpuLaunch, ACaptureTakesTheLaunchAndNothingThatWaits) {
  const OwnStream stream(*device);
  ASSERT_OK(poison(stream));
  ASSERT_OK(device->synchronize(stream));
  EXPECT_FALSE(device->capturing(stream));
  const auto recording = device->record(stream, [&](Stream inner) -> Status {
    EXPECT_TRUE(device->capturing(inner));
    char byte = 0;
    EXPECT_EQ(device->synchronize(inner).error().code, Code::not_prepared);
    EXPECT_EQ(device->copy_out(&byte, y->data(), 1, inner).error().code, Code::not_prepared);
    return launch(inner);
  });
  ASSERT_OK(recording);
  EXPECT_FALSE(device->capturing(stream));
  EXPECT_EQ(read<long long>(*device, *y, 1, stream)[0], -1) << "capturing runs nothing";
  ASSERT_OK((*recording)->replay());
  EXPECT_EQ(read<long long>(*device, *y, blocks, stream), expected_decode());
}

// The capture mode that an application gets unless it asks for another: unsafe calls of any thread break it.
TEST_F(GpuLaunch, AnothersCaptureInGlobalModeSurvivesEverythingWeDo) {
  const auto api = cuda::load_driver(machine().environment.libcuda);
  ASSERT_OK(api);
  const OwnStream stream(*device);
  const auto native = static_cast<cuda::CUstream>(Stream{stream});
  cuda::CUcontext context = nullptr, popped = nullptr;
  ASSERT_EQ((*api)->primary_ctx_retain(&context, 0), 0);
  ASSERT_EQ((*api)->ctx_push_current(context), 0);
  ASSERT_EQ((*api)->stream_begin_capture(native, cuda::capture_global), 0);
  ASSERT_OK(launch(stream));
  std::thread([&] {
    auto buffer = device->allocate(1 << 20);
    ASSERT_OK(buffer);
    const OwnStream other(*device);
    ASSERT_OK(device->fill((*buffer)->data(), 3, 1 << 20, other));
    EXPECT_EQ(read<char>(*device, **buffer, 1 << 20, other)[77], 3);
    EXPECT_NE(load(testing_spec("overrun", {{"AT", 5}})), nullptr) << "loads and unloads";
    const auto recording =
        device->record(other, [&](Stream inner) { return device->fill((*buffer)->data(), 4, 1 << 20, inner); });
    ASSERT_OK(recording);
    ASSERT_OK((*recording)->replay());
    ASSERT_OK(device->memory());
  }).join();
  EXPECT_TRUE(device->capturing(stream));
  cuda::CUgraph graph = nullptr;
  EXPECT_EQ((*api)->stream_end_capture(native, &graph), 0) << "the capture was invalidated";
  if (graph != nullptr) (*api)->graph_destroy(graph);
  (*api)->ctx_pop_current(&popped);
  (*api)->primary_ctx_release(0);
}

TEST_F(GpuLaunch, AFailedBodyLeavesTheStreamUsable) {
  const OwnStream stream(*device);
  const auto failed = device->record(stream, [](Stream) -> Status { return Error{Code::invalid, "no"}; });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "no");
  ASSERT_OK(launch(stream));
  EXPECT_EQ(read<long long>(*device, *y, blocks, stream), expected_decode());
}

TEST_F(GpuLaunch, ReplaysTakeTimeAndMoreWorkTakesMore) {
  auto buffer = device->allocate(std::size_t{256} << 20);
  ASSERT_OK(buffer);
  const auto time = [&](int fills) {
    const auto recording = device->record(nullptr, [&](Stream stream) -> Status {
      for (int i = 0; i < fills; ++i) SL_TRY(device->fill((*buffer)->data(), 1, (*buffer)->size(), stream));
      return {};
    });
    EXPECT_TRUE(recording.ok()) << recording.error().message;
    double best = 1e30;
    for (int i = 0; i < 5; ++i) best = std::min(best, (*recording)->replay().value());
    return best;
  };
  const double one = time(1), twenty = time(20);
  EXPECT_GT(one, 0.0);
  EXPECT_GT(twenty, 4 * one) << one << " us for one fill of 256 MiB";
}

// A newer GPU gets PTX that its driver finishes: here for the PTX of this GPU's own architecture.
TEST_F(GpuLaunch, PtxRunsToo) {
  const KernelSpec spec = testing_spec("decode");
  const std::string arch = "compute_" + std::to_string(device->info().capability);
  const auto binary = machine().cache->compiler().compile({&spec, 1}, arch, 1)[0];
  ASSERT_OK(binary);
  EXPECT_EQ(binary->format, Binary::Format::ptx);
  const auto from_ptx = device->load(*binary, 0);
  ASSERT_OK(from_ptx);
  ASSERT_OK(poison(nullptr));
  ASSERT_OK(device->launch(**from_ptx, {blocks, 64, 0}, params, nullptr));
  EXPECT_EQ(read<long long>(*device, *y, blocks), expected_decode());
}

}  // namespace
}  // namespace sl::test
