// dw_flat (kernels/dw_flat.cuh): the portable base for depthwise. Knobs: vec channels (NHWC) x cols columns a thread.
#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

TileWork work_of(const ConvProblem& p, const Config& config) {
  return {.channel_blocks = p.k / config.get("vec"), .tiles = ceil_div(p.q, config.get("cols")), .strips = p.p};
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  return too_many_blocks(p, {.channel_blocks = p.k, .tiles = p.q, .strips = p.p}, 128);
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"vec", "cols", "threads"})) return refusal;
  const int vec = config.get("vec"), cols = config.get("cols");
  if (!power_of_two(vec) || vec > max_vector(p)) return refuse("vec", vec, "a power of two within the alignment class");
  if (vec > 1 && (p.layout != Layout::nhwc || p.multiplier() != 1)) {
    return refuse("vec", vec, "1 unless nhwc with multiplier 1");
  }
  if (p.k % vec != 0) return refuse("vec", vec, "must divide k = " + std::to_string(p.k));
  if (cols > 8) return refuse("cols", cols, "at most 8");
  return wrong_threads(config);
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  // Wide enough that loads are few, narrow enough that neighbouring threads share cache lines; the last ones are for
  // shapes with little to do.
  static constexpr int nhwc[][2] = {{4, 2}, {2, 4}, {8, 1}, {4, 1}, {2, 2}, {2, 1}, {1, 4}, {1, 1}};
  static constexpr int nchw[][2] = {{1, 4}, {1, 2}, {1, 8}, {1, 1}};
  std::vector<Option> options;
  const auto consider = [&](int vec, int cols, int threads) {
    Config config{{{"vec", vec}, {"cols", cols}, {"threads", threads}}};
    if (fits(p, config) || cols > covering_power(p.q, 8)) return;
    const std::int64_t started = work_of(p, config).items(p);
    options.push_back({std::move(config), started});
  };
  if (p.layout == Layout::nhwc) {
    for (const auto& [vec, cols] : nhwc) consider(vec, cols, 128);
  } else {
    for (const auto& [vec, cols] : nchw) consider(vec, cols, 128);
  }
  consider(1, 1, 256);
  return ranked(std::move(options), device, 6);
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  constants.emplace_back("VEC", config.get("vec"));
  constants.emplace_back("COLS", config.get("cols"));
  return make_spec(dw_flat, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return tile_geometry(p, work_of(p, config), config.get("threads"));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  tile_params(p, work_of(p, config), out);
}

}  // namespace

constinit const Schedule dw_flat{
    .name = "dw_flat",
    .source = "dw_flat.cuh",
    .min_capability = 80,
    .size_generic = true,
    .promises_no_spill = true,
    .arithmetic = Arithmetic::fma,
    .can_run = can_run,
    .configs = configs,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
