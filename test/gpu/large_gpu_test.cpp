// Tensors of more than 2^31 elements: offsets that would wrap in 32 bits. The data is made on the GPU: every image
// holds one value, the last another, so that a read or write at a wrapped offset shows.
#include <cmath>

#include "gpu_fixture.hpp"
#include "schedules/schedule.hpp"
#include "support/check.hpp"

namespace sl::test {
namespace {

constexpr unsigned char body_byte = 0x3c, last_byte = 0x41;  // 0x3c3c and 0x4141 as halves: 1.059 and 2.627

std::vector<std::byte> filled(std::int64_t elements, unsigned char byte) {
  return std::vector<std::byte>(static_cast<std::size_t>(elements) * 2, std::byte{byte});
}

class LargeOnGpu : public GpuJit, public testing::WithParamInterface<const char*> {};

TEST_P(LargeOnGpu, TheFirstAndTheLastImageAreRight) {
  const ConvProblem problem = parse(GetParam()).value();
  ASSERT_TRUE(problem.needs_64bit_offsets());
  ConvProblem one = problem;
  one.n = 1;
  const auto x_image = static_cast<std::size_t>(one.x_elements()) * 2,
             y_image = static_cast<std::size_t>(one.y_elements()) * 2, images = static_cast<std::size_t>(problem.n);
  const auto use = device->memory();
  ASSERT_OK(use);
  if (use->free_bytes < images * (x_image + y_image) + (std::size_t{1} << 28))
    GTEST_SKIP() << "needs " << (images * (x_image + y_image) >> 30) << " GiB of GPU memory";

  auto x = device->allocate(images * x_image), y = device->allocate(images * y_image),
       w = device->allocate(static_cast<std::size_t>(problem.w_elements()) * 2);
  ASSERT_OK(x);
  ASSERT_OK(y);
  ASSERT_OK(w);
  const HostData random = make_data(one, test_seed(5));
  ASSERT_OK(device->copy_in((*w)->data(), random.w.data(), random.w.size(), nullptr));
  auto* const x_last = static_cast<unsigned char*>((*x)->data()) + (images - 1) * x_image;
  auto* const y_last = static_cast<unsigned char*>((*y)->data()) + (images - 1) * y_image;
  ASSERT_OK(device->fill((*x)->data(), body_byte, (images - 1) * x_image, nullptr));
  ASSERT_OK(device->fill(x_last, last_byte, x_image, nullptr));

  HostData body{filled(one.x_elements(), body_byte), random.w, {}, {}}, last = body;
  last.x = filled(one.x_elements(), last_byte);
  int ran = 0;
  for (const Schedule* const schedule : all_schedules()) {
    if (schedule->can_run(problem, device->info()).has_value()) continue;
    const Config config = schedule->configs(problem, device->info()).front();
    SCOPED_TRACE(std::string(schedule->name) + " " + config.to_string());
    const Geometry geometry = schedule->geometry(problem, config);
    const auto kernel = load(schedule->kernel(problem, config), geometry.dynamic_smem);
    ASSERT_NE(kernel, nullptr);
    SlParams params = common_params(problem);
    schedule->params(problem, config, params);
    params.x = (*x)->data();
    params.weight = (*w)->data();
    params.y = (*y)->data();
    ASSERT_OK(device->fill((*y)->data(), 0xff, images * y_image, nullptr));
    ASSERT_OK(device->launch(*kernel, geometry, params, nullptr));
    const test::Run run{one, test_seed(5), Fill::random, schedule->arithmetic, std::string(schedule->name)};
    std::vector<std::byte> image(y_image);
    ASSERT_OK(device->copy_out(image.data(), (*y)->data(), y_image, nullptr));
    EXPECT_TRUE(output_is_right(run, body, image)) << "first image";
    ASSERT_OK(device->copy_out(image.data(), y_last, y_image, nullptr));
    EXPECT_TRUE(output_is_right(run, last, image)) << "last image";
    ASSERT_OK(device->copy_out(image.data(), y_last - y_image, y_image, nullptr));
    EXPECT_TRUE(output_is_right(run, body, image)) << "last image but one";
    ++ran;
  }
  EXPECT_GE(ran, 1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LargeOnGpu,
                         testing::Values("mb6000ic32ih112oc32oh112kh3ph1g32 dt=f16 tag=nchw",
                                         "mb6000ic32ih112oc32oh112kh3ph1g32 dt=f16 tag=nhwc",
                                         "mb6000ic32ih112oc32oh112kh3ph1g8 dt=f16 tag=nchw",
                                         "mb6000ic32ih112oc32oh112kh3ph1g8 dt=f16 tag=nhwc"));

}  // namespace
}  // namespace sl::test
