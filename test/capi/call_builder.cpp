#include "capi/call_builder.hpp"

#include <gtest/gtest.h>

#include "support/check.hpp"

namespace sl::test {
namespace {

ConvProblem starting_problem() {
  ConvProblem problem;
  problem.n = 2;
  problem.c = problem.k = problem.groups = 4;
  problem.h = problem.p = 6;
  problem.w = problem.q = 5;
  problem.r = problem.s = 3;
  problem.pad_top = problem.pad_left = 1;
  return problem;
}

}  // namespace

CallBuilder::CallBuilder() : CallBuilder(starting_problem(), 1) {}

CallBuilder::CallBuilder(const ConvProblem& problem, std::uint64_t seed) {
  HostData data = make_data(problem, seed);
  x = std::move(data.x);
  w = std::move(data.w);
  z = std::move(data.z);
  bias = std::move(data.bias);
  y = poisoned_output(problem);
  x_dims = {problem.n, problem.c, problem.h, problem.w};
  w_dims = {problem.k, problem.channels_per_group(), problem.r, problem.s};
  y_dims = z_dims = {problem.n, problem.k, problem.p, problem.q};
  bias_dims = {problem.k, 0, 0, 0};
  const auto dtype = static_cast<std::int32_t>(problem.dtype);
  args.x = {x.data(), dtype, 4, x_dims.data(), nullptr};
  args.w = {w.data(), dtype, 4, w_dims.data(), nullptr};
  args.y = {y.data(), dtype, 4, y_dims.data(), nullptr};
  if (problem.bias != Bias::none) {
    args.bias = {bias.data(), problem.bias == Bias::f32 ? SLUICE_F32 : dtype, 1, bias_dims.data(), nullptr};
  }
  if (problem.residual) args.z = {z.data(), dtype, 4, z_dims.data(), nullptr};
  args.layout = static_cast<std::int32_t>(problem.layout);
  args.weight_layout = static_cast<std::int32_t>(problem.weight_layout);
  args.groups = problem.groups;
  args.stride[0] = problem.stride_h, args.stride[1] = problem.stride_w;
  args.dilation[0] = problem.dil_h, args.dilation[1] = problem.dil_w;
  args.pad[0] = problem.pad_top, args.pad[1] = problem.pad_left;
  args.pad[2] = problem.pad_bottom(), args.pad[3] = problem.pad_right();
  args.activation = static_cast<std::int32_t>(problem.activation);
  args.alpha = problem.alpha, args.beta = problem.beta;
}

void CallBuilder::use_bias(sluice_dtype dtype) {
  bias.resize(static_cast<std::size_t>(bias_dims[0]) * 4);
  args.bias = {bias.data(), dtype, 1, bias_dims.data(), nullptr};
}

void CallBuilder::use_z() {
  z = y;
  args.z = {z.data(), args.y.dtype, 4, z_dims.data(), nullptr};
}

void CallBuilder::conv1d() {
  for (Dims* dims : {&x_dims, &w_dims, &y_dims, &z_dims}) *dims = {(*dims)[0], (*dims)[1], (*dims)[3], 0};
  args.x.ndim = args.w.ndim = args.y.ndim = 3;
  if (args.z.ndim != 0) args.z.ndim = 3;
}

HostContext::HostContext(sluice_policy policy, const char* cache_dir) {
  sluice_options options = SLUICE_OPTIONS_INIT;
  options.device = "host";
  options.policy = policy;
  options.cache_dir = cache_dir;
  if (sluice_context_create(&options, &handle) != SLUICE_OK) ADD_FAILURE() << sluice_last_error();
}

sluice_counters HostContext::counters() const {
  sluice_counters counters = SLUICE_COUNTERS_INIT;
  EXPECT_EQ(sluice_get_counters(handle, &counters), SLUICE_OK) << sluice_last_error();
  return counters;
}

std::string explained(sluice_context* context, const sluice_conv2d_args& args, bool dry) {
  char* json = nullptr;
  if (sluice_explain(context, &args, dry ? 1 : 0, &json) != SLUICE_OK) {
    ADD_FAILURE() << sluice_last_error();
    return "";
  }
  std::string text = json;
  sluice_string_free(json);
  return text;
}

}  // namespace sl::test
