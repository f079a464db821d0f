// dw_mult (kernels/dw_mult.cuh): every output channel of an input channel from one load. Knobs: lanes input channels a
// block, cols columns a thread, turns strips a thread works through on the block's weights.
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr int sums_limit = 64;  // cols * multiplier accumulators
constexpr int span_limit = 40;  // window columns in registers

std::int64_t weight_bytes(const ConvProblem& p, std::int64_t lanes) { return 4 * p.taps() * p.multiplier() * lanes; }
std::int64_t span(const ConvProblem& p, std::int64_t cols) { return (cols - 1) * p.stride_w + p.s; }

BlockWork work_of(const ConvProblem& p, const Config& config) {
  const int lanes = config.get("lanes");
  return block_work(p, ceil_div(p.c, lanes), config.get("threads") / lanes, config.get("cols"), config.get("turns"));
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() < 2 || p.multiplier() > 16) return refuse("k / groups", p.multiplier(), "a multiplier of 2 to 16");
  if (Refusal refusal = dilated(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.s > span_limit) return refuse("s", p.s, "the window of a row stays in registers, so at most 40");
  if (weight_bytes(p, 1) > static_smem_limit) {
    return refuse("r * s", p.taps(), "one channel's weights must fit in 48 KiB of shared memory");
  }
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"lanes", "cols", "turns", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int lanes = config.get("lanes"), cols = config.get("cols");
  if (!power_of_two(lanes) || config.get("threads") % lanes != 0) {
    return refuse("lanes", lanes, "a power of two that divides threads");
  }
  if (weight_bytes(p, lanes) > static_smem_limit) return refuse("lanes", lanes, "weights exceed 48 KiB");
  if (!power_of_two(cols) || cols > 8) return refuse("cols", cols, "1, 2, 4 or 8");
  if (cols > 1 && cols * p.multiplier() > sums_limit) return refuse("cols", cols, "more than 64 sums a thread");
  if (cols > 1 && span(p, cols) > span_limit) return refuse("cols", cols, "the window exceeds 40 columns");
  return std::nullopt;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Option> options;
  const auto consider = [&](int lanes, int cols) {
    Config config{{{"lanes", lanes}, {"cols", cols}, {"turns", 1}, {"threads", 128}}};
    if (fits(p, config) || cols > covering_power(p.q, 8)) return;
    config.knobs[2].second = turns_for(device, block_geometry(work_of(p, config), 128).grid);
    const std::int64_t started = block_geometry(work_of(p, config), 128).grid * 128;
    options.push_back({std::move(config), started});
  };
  // NHWC: a warp reads 32 neighbouring channels. NCHW: lanes only where a channel has too few strips for a block.
  const int most = p.layout == Layout::nhwc ? covering_power(p.c, 32) : covering_power(p.c, 8);
  for (const int cols : {4, 2, 8, 1}) {
    if (p.layout == Layout::nhwc) {
      int lanes = most;
      while (lanes > 1 && weight_bytes(p, lanes) > static_smem_limit) lanes /= 2;
      consider(lanes, cols);
      if (lanes > 8) consider(lanes / 2, cols);
    } else {
      const std::int64_t strips = p.n * p.p * ceil_div(p.q, cols);
      int lanes = 1;
      while (lanes < most && strips * lanes < 128 && weight_bytes(p, 2 * lanes) <= static_smem_limit) lanes *= 2;
      consider(lanes, cols);
      if (lanes > 1) consider(1, cols);
    }
  }
  return ranked(std::move(options), device);
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  Constants constants = common_constants(p);
  constants.emplace_back("LANES", config.get("lanes"));
  constants.emplace_back("COLS", config.get("cols"));
  const std::int64_t row = p.layout == Layout::nhwc ? p.multiplier() : p.q;
  const int limit = p.layout == Layout::nhwc ? max_vector(p) : std::min(max_vector(p), config.get("cols"));
  constants.emplace_back("STORE", dividing_power(row, limit));
  return make_spec(dw_mult, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return block_geometry(work_of(p, config), config.get("threads"));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  block_params(work_of(p, config), p, out);
}

}  // namespace

constinit const Schedule dw_mult{
    .name = "dw_mult",
    .source = "dw_mult.cuh",
    .min_capability = 80,
    .size_generic = false,  // NCHW compiles in how wide a store the output row allows
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
