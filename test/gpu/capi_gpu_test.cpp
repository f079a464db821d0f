// The C ABI on a real GPU: the whole path of a call, capture into a CUDA graph, batches beyond 65535.
#include "capi/call_builder.hpp"
#include "device/cuda/driver_api.hpp"
#include "gpu_fixture.hpp"
#include "support/check.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

constexpr std::uint64_t seed = 20251130;

/// The tensors of a call in GPU memory.
struct OnGpu {
  OnGpu(Device& gpu, const ConvProblem& wanted) : device(gpu), problem(wanted), call(wanted, seed) {
    x = put(call.x), w = put(call.w), y = put(call.y);
    call.args.x.data = x->data(), call.args.w.data = w->data(), call.args.y.data = y->data();
    if (!call.bias.empty()) bias = put(call.bias), call.args.bias.data = bias->data();
    if (!call.z.empty()) z = put(call.z), call.args.z.data = z->data();
  }
  std::unique_ptr<Buffer> put(const std::vector<std::byte>& from) {
    auto buffer = device.allocate(from.size());
    EXPECT_TRUE(buffer.ok()) << buffer.error().message;
    EXPECT_TRUE(device.copy_in((*buffer)->data(), from.data(), from.size(), nullptr).ok());
    return std::move(*buffer);
  }
  void poison() { ASSERT_OK(device.fill(y->data(), 0xff, y->size(), nullptr)); }
  testing::AssertionResult right() {
    return output_is_right({problem, seed, Fill::random, Arithmetic::mma, "C ABI on a GPU"}, make_data(problem, seed),
                           read<std::byte>(device, *y, y->size()));
  }

  Device& device;
  ConvProblem problem;
  CallBuilder call;
  std::unique_ptr<Buffer> x, w, y, bias, z;
};

class CAbiOnGpu : public GpuJit {
 protected:
  void SetUp() override {
    GpuJit::SetUp();
    if (IsSkipped()) return;
    sluice_options options = SLUICE_OPTIONS_INIT;
    options.device = "cuda:0";
    options.policy = SLUICE_FIRST_USE;
    options.cache_dir = directory.path().c_str();
    options.force_take = 1;
    ASSERT_EQ(sluice_context_create(&options, &context), SLUICE_OK) << sluice_last_error();
  }
  void TearDown() override { sluice_context_destroy(context); }

  sluice_counters counters() const {
    sluice_counters values = SLUICE_COUNTERS_INIT;
    EXPECT_EQ(sluice_get_counters(context, &values), SLUICE_OK);
    return values;
  }
  TempDir directory;
  sluice_context* context = nullptr;
};

ConvProblem problem_of(const char* text, DType dtype, Layout layout) {
  ConvProblem problem = parse(text).value();
  problem.dtype = dtype;
  problem.layout = layout;
  return problem;
}

TEST_F(CAbiOnGpu, TheWholePathOfACall) {
  ConvProblem grouped = problem_of("g8mb3ic32ih19iw23oc48oh10ow12kh3kw3sh2sw2ph1pw1", DType::bf16, Layout::nhwc);
  grouped.bias = Bias::f32;
  ConvProblem epilogue = problem_of("g24mb2ic24ih30iw17oc24oh30ow17kh5kw3ph2pw1", DType::f16, Layout::nchw);
  epilogue.bias = Bias::same, epilogue.residual = true, epilogue.activation = Activation::silu;
  for (const ConvProblem& problem : {grouped, epilogue}) {
    SCOPED_TRACE(problem.to_string());
    OnGpu call(*device, problem);
    ASSERT_EQ(sluice_conv2d(context, &call.call.args, nullptr), SLUICE_OK) << sluice_last_error();
    EXPECT_TRUE(call.right());
    const sluice_counters first = counters();
    call.poison();
    ASSERT_EQ(sluice_conv2d(context, &call.call.args, nullptr), SLUICE_OK) << sluice_last_error();
    EXPECT_TRUE(call.right());
    EXPECT_EQ(counters().compiles, first.compiles);
    EXPECT_EQ(counters().tunings, first.tunings);
    EXPECT_EQ(counters().plan_hits, first.plan_hits + 1);
  }
}

TEST_F(CAbiOnGpu, CaptureTakesKnownCallsAndLeavesOthersOut) {
  const auto api = cuda::load_driver(machine().environment.libcuda);
  ASSERT_OK(api);
  const OwnStream stream(*device);
  const auto native = static_cast<cuda::CUstream>(Stream{stream});
  OnGpu known(*device, problem_of("g24mb2ic24ih14oc24oh14kh3ph1", DType::f16, Layout::nhwc));
  OnGpu unknown(*device, problem_of("g24mb2ic24ih15oc24oh15kh5ph2", DType::f16, Layout::nhwc));
  ASSERT_EQ(sluice_conv2d(context, &known.call.args, Stream{stream}), SLUICE_OK) << sluice_last_error();
  EXPECT_TRUE(known.right());
  known.poison();
  ASSERT_OK(device->synchronize(nullptr));

  cuda::CUcontext primary = nullptr, popped = nullptr;
  ASSERT_EQ((*api)->primary_ctx_retain(&primary, 0), 0);
  ASSERT_EQ((*api)->ctx_push_current(primary), 0);
  const sluice_counters before = counters();
  ASSERT_EQ((*api)->stream_begin_capture(native, cuda::capture_global), 0);
  EXPECT_EQ(sluice_conv2d(context, &unknown.call.args, Stream{stream}), SLUICE_NOT_PREPARED) << sluice_last_error();
  EXPECT_EQ(sluice_conv2d(context, &known.call.args, Stream{stream}), SLUICE_OK) << sluice_last_error();
  cuda::CUgraph graph = nullptr;
  ASSERT_EQ((*api)->stream_end_capture(native, &graph), 0) << "the capture was invalidated";
  EXPECT_EQ(counters().compiles, before.compiles) << "nothing compiles under capture";
  EXPECT_EQ(counters().tunings, before.tunings);
  const auto untouched = read<unsigned char>(*device, *known.y, known.y->size());
  EXPECT_EQ(untouched, std::vector<unsigned char>(known.y->size(), 0xff)) << "captured, not run";

  cuda::CUgraphExec executable = nullptr;
  ASSERT_EQ((*api)->graph_instantiate(&executable, graph, 0), 0);
  for (int i = 0; i < 2; ++i) {
    known.poison();
    ASSERT_OK(device->synchronize(nullptr));
    ASSERT_EQ((*api)->graph_launch(executable, native), 0);
    ASSERT_OK(device->synchronize(stream));
    EXPECT_TRUE(known.right());
  }
  (*api)->graph_exec_destroy(executable);
  (*api)->graph_destroy(graph);
  ASSERT_EQ(sluice_conv2d(context, &unknown.call.args, Stream{stream}), SLUICE_OK) << sluice_last_error();
  EXPECT_TRUE(unknown.right()) << "known after the capture";
  (*api)->ctx_pop_current(&popped);
  (*api)->primary_ctx_release(0);
}

// A batch that rides on grid.y or grid.z ends at 65535 images.
TEST_F(CAbiOnGpu, BatchesBeyond65535) {
  for (const std::int64_t n : {65536, 65537, 100000}) {
    for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
      ConvProblem problem = problem_of("g4mb1ic4ih5oc4oh5kh5ph2", DType::f16, layout);
      problem.n = n;
      SCOPED_TRACE(problem.to_string());
      OnGpu call(*device, problem);
      ASSERT_EQ(sluice_conv2d(context, &call.call.args, nullptr), SLUICE_OK) << sluice_last_error();
      EXPECT_TRUE(call.right());
    }
  }
}

}  // namespace
}  // namespace sl::test
