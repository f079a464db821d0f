// grp_reduce (kernels/grp_reduce.cuh): several threads add up one output. Knob: lanes threads an output (8, 16, 32, or
// the whole block).
#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr int block = 128;
constexpr std::int64_t most_outputs = std::int64_t{1} << 20;
constexpr std::int64_t least_terms = 8;

std::int64_t terms(const ConvProblem& p) { return p.taps() * p.channels_per_group(); }

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (terms(p) < least_terms) {
    return refuse("r * s * c / groups", terms(p), "a reduction shared by 8 threads needs at least 8 terms");
  }
  if (p.y_elements() > most_outputs) {
    return refuse("n * k * p * q", p.y_elements(), "several threads an output pay for at most 1048576 outputs");
  }
  return coordinates_too_large(p);
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"lanes", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int lanes = config.get("lanes"), threads = config.get("threads");
  if (lanes != 8 && lanes != 16 && lanes != 32 && lanes != threads) {
    return refuse("lanes", lanes, "8, 16, 32 or threads = " + std::to_string(threads));
  }
  if (ceil_div(p.y_elements(), threads / lanes) > max_grid) {
    return refuse("lanes", lanes, "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> configs;
  const auto consider = [&](int lanes) {
    Config config{{{"lanes", lanes}, {"threads", block}}};
    if (!fits(p, config)) configs.push_back(std::move(config));
  };
  // About 4 terms a lane; a whole block only where outputs alone do not fill the device and there is much to add.
  const int best = covering_power(ceil_div(terms(p), 4), 32);
  const bool few = p.y_elements() * 32 < busy_threads(device);
  if (few && terms(p) >= 512) consider(block);
  for (int lanes = best < 8 ? 8 : best; lanes >= 8; lanes /= 2) consider(lanes);
  for (int lanes = 2 * (best < 8 ? 8 : best); lanes <= 32; lanes *= 2) {
    if (lanes <= terms(p)) consider(lanes);
  }
  if (!(few && terms(p) >= 512) && terms(p) >= 256) consider(block);
  return configs;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  constants.emplace_back("LANES", config.get("lanes"));
  return make_spec(grp_reduce, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const int threads = config.get("threads");
  return {.grid = ceil_div(p.y_elements(), threads / config.get("lanes")), .block = threads, .dynamic_smem = 0};
}

void params(const ConvProblem& p, const Config&, SlParams& out) {
  out = common_params(p);
  tile_params(p, {.channel_blocks = p.k, .tiles = p.q, .strips = p.p}, out);
}

}  // namespace

constinit const Schedule grp_reduce{
    .name = "grp_reduce",
    .source = "grp_reduce.cuh",
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
