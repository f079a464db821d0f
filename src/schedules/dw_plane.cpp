// dw_plane (kernels/dw_plane.cuh): small NCHW planes, several a block. Knobs: planes a block, strips x tiles threads a
// plane, threads (planes * strips * tiles, rounded up to warps).
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/plane_strip.hpp"

namespace sl {
namespace {

using plane_strip::in_place;
using plane_strip::register_budget;
using plane_strip::registers_of;
using plane_strip::size;

std::int64_t padded(std::int64_t bytes) { return ceil_div(bytes, 16) * 16; }

std::int64_t smem_bytes(const ConvProblem& p, const Config& config) {
  const std::int64_t planes = config.get("planes");
  const std::int64_t x = padded(planes * p.h * p.w * size(p)), y = padded(planes * p.p * p.q * size(p));
  return x + (in_place(p, config) ? 0 : y) + padded(planes * p.taps() * size(p));
}

/// Bytes of one copy: they divide a block's run of planes, so that every block starts aligned.
int run_bytes(const ConvProblem& p, std::int64_t planes, std::int64_t plane) {
  return dividing_power(planes * plane * size(p), std::min(16, static_cast<int>(p.align)));
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"planes", "strips", "tiles", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int planes = config.get("planes"), strips = config.get("strips"), tiles = config.get("tiles");
  const int threads = config.get("threads");
  if (planes > 256) return refuse("planes", planes, "at most 256");
  if (strips > p.p) return refuse("strips", strips, "at most p = " + std::to_string(p.p));
  if (tiles > p.q) return refuse("tiles", tiles, "at most q = " + std::to_string(p.q));
  if (registers_of(p, tiles) > register_budget) return refuse("tiles", tiles, "the sums of r rows need more registers");
  if (threads != ceil_div(std::int64_t{planes} * strips * tiles, 32) * 32 || threads > 256) {
    return refuse("threads", threads, "planes * strips * tiles rounded up to a multiple of 32, at most 256");
  }
  if (smem_bytes(p, config) > portable_smem_limit) return refuse("planes", planes, "more than 96 KiB of shared memory");
  if (run_bytes(p, planes, p.h * p.w) < 4 || run_bytes(p, planes, p.p * p.q) < 4) {
    return refuse("planes", planes, "copies of 4 bytes at least");
  }
  return std::nullopt;
}

std::vector<Config> configs_of(const ConvProblem& p) {
  std::vector<Config> configs;
  configs.reserve(8);  // g++ 12 at -O3 warns wrongly about inserting into an empty vector
  for (const auto& [planes, rows, cols] : plane_strip::tries_of(p)) {
    const std::int64_t strips = ceil_div(p.p, rows), tiles = ceil_div(p.q, cols), parts = strips * tiles;
    if (planes * parts > 256) continue;
    Config config{{{"planes", planes},
                   {"strips", static_cast<int>(strips)},
                   {"tiles", static_cast<int>(tiles)},
                   {"threads", static_cast<int>(ceil_div(planes * parts, 32) * 32)}}};
    if (fits(p, config) || std::find(configs.begin(), configs.end(), config) != configs.end()) continue;
    configs.push_back(std::move(config));
  }
  if (configs.size() > 6) configs.resize(6);
  return configs;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo&) { return configs_of(p); }

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (Refusal refusal = plane_strip::not_small_planes(p)) return refusal;
  if (p.n * p.c > max_grid) return refuse("n * c", p.n * p.c, "needs more blocks than the 2147483647 of a grid");
  if (configs_of(p).empty()) return refuse("h * w", p.h * p.w, "too large or too odd for a block's planes");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const int planes = config.get("planes");
  Constants constants = plane_strip::constants(p, config);
  constants.emplace_back("X_BYTES", run_bytes(p, planes, p.h * p.w));
  constants.emplace_back("Y_BYTES", run_bytes(p, planes, p.p * p.q));
  return make_spec(dw_plane, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = ceil_div(p.n * p.c, config.get("planes")),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(smem_bytes(p, config))};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  out.work = geometry(p, config).grid * config.get("threads");
  out.div[0] = fast_div(p.c);
}

}  // namespace

constinit const Schedule dw_plane{
    .name = "dw_plane",
    .source = "dw_plane.cuh",
    .min_capability = 80,
    .size_generic = false,
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
