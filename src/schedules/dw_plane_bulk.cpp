// dw_plane_bulk (kernels/dw_plane_bulk.cuh): dw_plane with bulk copies, from compute capability 9.0 on. Knobs: planes a
// unit, strips x tiles threads a plane, units in shared memory, blocks at most (a run-time number), threads (planes *
// strips * tiles, rounded up to warps).
#include <algorithm>

#include "schedules/list.hpp"
#include "schedules/plane_strip.hpp"

namespace sl {
namespace {

using plane_strip::size;

constexpr int capability = 90;          // of cp.async.bulk
constexpr std::int64_t of_a_copy = 16;  // bytes

std::int64_t stage_bytes(const ConvProblem& p, const Config& config) {
  const std::int64_t y = plane_strip::in_place(p, config) ? 0 : p.p * p.q;
  return config.get("planes") * (p.h * p.w + y) * size(p);
}

std::int64_t smem_bytes(const ConvProblem& p, const Config& config) {
  const std::int64_t weights = ceil_div(config.get("planes") * p.taps() * size(p), of_a_copy) * of_a_copy;
  return config.get("stages") * (stage_bytes(p, config) + 8) + 2 * weights;
}

/// Whether so many planes of x, and of y, are whole copies.
bool whole_copies(const ConvProblem& p, std::int64_t planes) {
  return planes * p.h * p.w * size(p) % of_a_copy == 0 && planes * p.p * p.q * size(p) % of_a_copy == 0;
}

std::int64_t units_of(const ConvProblem& p, const Config& config) { return p.n * ceil_div(p.c, config.get("planes")); }

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"planes", "strips", "tiles", "stages", "grid", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int planes = config.get("planes"), strips = config.get("strips"), tiles = config.get("tiles");
  const int threads = config.get("threads"), stages = config.get("stages");
  if (planes > 256 || !whole_copies(p, planes)) {
    return refuse("planes", planes, "at most 256, and whole copies of 16 bytes");
  }
  if (strips > p.p) return refuse("strips", strips, "at most p = " + std::to_string(p.p));
  if (tiles > p.q) return refuse("tiles", tiles, "at most q = " + std::to_string(p.q));
  if (plane_strip::registers_of(p, tiles) > plane_strip::register_budget) {
    return refuse("tiles", tiles, "the sums of r rows need more registers");
  }
  if (threads != ceil_div(std::int64_t{planes} * strips * tiles, 32) * 32 || threads > 256) {
    return refuse("threads", threads, "planes * strips * tiles rounded up to a multiple of 32, at most 256");
  }
  if (stages < 2 || stages > 8) return refuse("stages", stages, "2 to 8");
  if (smem_bytes(p, config) > portable_smem_limit) return refuse("stages", stages, "more than 96 KiB of shared memory");
  return std::nullopt;
}

/// Registers as ptxas takes them: of sums only the rows of a strip are alive, beyond 25 taps a few more than are
/// counted.
std::int64_t registers_of(const ConvProblem& p, std::int64_t rows, std::int64_t cols, std::int64_t tiles) {
  const std::int64_t spare = std::max<std::int64_t>(0, ceil_div(p.r, p.stride_h) - rows) * cols;
  return ceil_div(plane_strip::registers_of(p, tiles) - spare + (p.taps() > 25 ? 16 : 0), 8) * 8;
}

/// Blocks that a multiprocessor holds, where a device does not say otherwise one of an H200.
std::int64_t resident(const ConvProblem& p, const Config& config, const DeviceInfo& device) {
  const std::int64_t smem = device.smem_per_sm > 0 ? device.smem_per_sm : 233472, threads = config.get("threads");
  const int tiles = config.get("tiles");
  const std::int64_t registers = registers_of(p, ceil_div(p.p, config.get("strips")), ceil_div(p.q, tiles), tiles);
  return std::max<std::int64_t>(1, std::min({smem / (smem_bytes(p, config) + 1024), 65536 / (threads * registers),
                                             2048 / threads, std::int64_t{32}}));
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> configs;
  configs.reserve(8);
  for (const auto& [planes, rows, cols] : plane_strip::tries_of(p)) {
    const std::int64_t strips = ceil_div(p.p, rows), tiles = ceil_div(p.q, cols), parts = strips * tiles;
    if (planes * parts > 256) continue;
    Config config{{{"planes", planes},
                   {"strips", static_cast<int>(strips)},
                   {"tiles", static_cast<int>(tiles)},
                   {"stages", 3},
                   {"grid", 1},
                   {"threads", static_cast<int>(ceil_div(planes * parts, 32) * 32)}}};
    if (fits(p, config)) continue;
    config.knobs[4].second = static_cast<int>(resident(p, config, device) * std::max(1, device.sm_count));
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) configs.push_back(std::move(config));
  }
  if (configs.size() > 6) configs.resize(6);
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = plane_strip::not_small_planes(p)) return refusal;
  if (!device_supports(capability, device)) return refuse("capability", device.capability, "bulk copies need 90");
  if (p.align < of_a_copy) return refuse("align", p.align, "bulk copies begin at multiples of 16 bytes");
  if (!whole_copies(p, p.c)) return refuse("c", p.c, "images must begin at multiples of 16 bytes");
  if (p.n * p.c > max_grid) return refuse("n * c", p.n * p.c, "more than 2147483647 planes");
  if (configs_of(p, device).empty()) return refuse("h * w", p.h * p.w, "too large or too odd for a unit's planes");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  Constants constants = plane_strip::constants(p, config);
  constants.emplace_back("STAGES", config.get("stages"));
  return make_spec(dw_plane_bulk, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = std::min<std::int64_t>(units_of(p, config), config.get("grid")),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(smem_bytes(p, config))};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  dealt_params(p, geometry(p, config), units_of(p, config), out);
  out.div[0] = fast_div(std::max<std::int64_t>(1, p.n));
}

}  // namespace

constinit const Schedule dw_plane_bulk{
    .name = "dw_plane_bulk",
    .source = "dw_plane_bulk.cuh",
    .min_capability = capability,
    .size_generic = false,
    .promises_no_spill = true,
    .arithmetic = Arithmetic::fma,
    .can_run = can_run,
    .configs = configs_of,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
