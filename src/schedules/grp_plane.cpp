// grp_plane (kernels/grp_plane.cuh): the portable base for grouped. Knobs: lanes channel lanes a block, outs output
// channels of one group a thread, cols columns a thread, turns strips a thread works through on the block's weights.
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

std::int64_t weight_bytes(const ConvProblem& p, std::int64_t outs) {
  return 4 * p.taps() * p.channels_per_group() * outs;
}
bool in_shared(const ConvProblem& p, std::int64_t outs) { return weight_bytes(p, outs) <= static_smem_limit; }

BlockWork work_of(const ConvProblem& p, const Config& config) {
  const int lanes = config.get("lanes");
  return block_work(p, ceil_div(p.k, std::int64_t{lanes} * config.get("outs")), config.get("threads") / lanes,
                    config.get("cols"), config.get("turns"));
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (p.depthwise()) {
    return refuse("c / groups", 1, "depthwise belongs to the dw schedules; grouped needs 2 input channels a group");
  }
  return coordinates_too_large(p);
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"lanes", "outs", "cols", "turns", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int lanes = config.get("lanes"), outs = config.get("outs"), cols = config.get("cols");
  if (!power_of_two(lanes) || config.get("threads") % lanes != 0) {
    return refuse("lanes", lanes, "a power of two that divides threads");
  }
  if (!power_of_two(outs) || outs > 8 || p.multiplier() % outs != 0) {
    return refuse("outs", outs, "1, 2, 4 or 8, dividing k / groups = " + std::to_string(p.multiplier()));
  }
  if (!power_of_two(cols) || cols > 8) return refuse("cols", cols, "1, 2, 4 or 8");
  if (outs * cols > 16) return refuse("cols", cols, "more than 16 sums a thread");
  if (!in_shared(p, std::int64_t{lanes} * outs) && in_shared(p, 1)) {
    return refuse("lanes", lanes, "weights exceed 48 KiB of shared memory");
  }
  return std::nullopt;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Option> options;
  const auto consider = [&](int outs, int cols) {
    if (p.multiplier() % outs != 0 || cols > covering_power(p.q, 8)) return;
    const std::int64_t channel_lanes = p.k / outs;
    const std::int64_t strips = p.n * p.p * ceil_div(p.q, cols);
    int lanes = 1;
    if (p.layout == Layout::nhwc) {  // a warp across channels: neighbours read the same or neighbouring groups
      lanes = covering_power(channel_lanes, 32);
    } else {  // one channel a block, unless it has too few strips to fill one
      while (lanes < covering_power(channel_lanes, 16) && strips * lanes < 128) lanes *= 2;
    }
    while (lanes > 1 && !in_shared(p, std::int64_t{lanes} * outs)) lanes /= 2;
    Config config{{{"lanes", lanes}, {"outs", outs}, {"cols", cols}, {"turns", 1}, {"threads", 128}}};
    if (fits(p, config)) return;
    config.knobs[3].second = turns_for(device, block_geometry(work_of(p, config), 128).grid);
    const std::int64_t started = block_geometry(work_of(p, config), 128).grid * 128;
    options.push_back({std::move(config), started});
  };
  static constexpr int shapes[][2] = {{4, 4}, {2, 4}, {1, 4}, {4, 2}, {2, 8}, {1, 8}, {1, 2}, {1, 1}};
  for (const auto& [outs, cols] : shapes) consider(outs, cols);
  return ranked(std::move(options), device);
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const int outs = config.get("outs");
  const bool nhwc = p.layout == Layout::nhwc;
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  constants.emplace_back("LANES", config.get("lanes"));
  constants.emplace_back("OUTS", outs);
  constants.emplace_back("COLS", config.get("cols"));
  constants.emplace_back("VEC", nhwc ? dividing_power(p.channels_per_group(), max_vector(p)) : 1);
  constants.emplace_back("STORE", nhwc ? std::min(outs, max_vector(p)) : 1);
  constants.emplace_back("SHARED", in_shared(p, std::int64_t{config.get("lanes")} * outs) ? 1 : 0);
  return make_spec(grp_plane, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return block_geometry(work_of(p, config), config.get("threads"));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  block_params(work_of(p, config), p, out);
}

}  // namespace

constinit const Schedule grp_plane{
    .name = "grp_plane",
    .source = "grp_plane.cuh",
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
