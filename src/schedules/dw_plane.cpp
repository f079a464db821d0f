// dw_plane (kernels/dw_plane.cuh): small NCHW planes, several a block. Knobs: planes a block, strips threads a plane,
// threads (planes * strips, rounded up to warps).
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

/// Devices of capability 8.6, 8.9 and 12.0 let a block opt in to 99 KiB.
constexpr std::int64_t smem_limit = 96 * 1024;

std::int64_t size(const ConvProblem& p) { return static_cast<std::int64_t>(size_of(p.dtype)); }
std::int64_t padded(std::int64_t bytes) { return ceil_div(bytes, 16) * 16; }

std::int64_t smem_bytes(const ConvProblem& p, std::int64_t planes) {
  return padded(planes * p.h * p.w * size(p)) + padded(planes * p.p * p.q * size(p)) + planes * p.taps() * size(p);
}

/// Bytes of one copy: they divide a block's run of planes, so that every block starts aligned.
int run_bytes(const ConvProblem& p, std::int64_t planes, std::int64_t plane) {
  return dividing_power(planes * plane * size(p), std::min(16, static_cast<int>(p.align)));
}

/// Registers a thread needs; an upper bound in practice, set against ptxas (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem& p) { return ceil_div(p.r, p.stride_h) * p.q + p.taps() + p.w + 40; }
constexpr std::int64_t register_budget = 225;

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"planes", "strips", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int planes = config.get("planes"), strips = config.get("strips"), threads = config.get("threads");
  if (planes > 256) return refuse("planes", planes, "at most 256");
  if (strips > p.p) return refuse("strips", strips, "at most p = " + std::to_string(p.p));
  if (threads != ceil_div(std::int64_t{planes} * strips, 32) * 32 || threads > 256) {
    return refuse("threads", threads, "planes * strips rounded up to a multiple of 32, at most 256");
  }
  if (smem_bytes(p, planes) > smem_limit) return refuse("planes", planes, "more than 96 KiB of shared memory");
  if (run_bytes(p, planes, p.h * p.w) < 4 || run_bytes(p, planes, p.p * p.q) < 4) {
    return refuse("planes", planes, "copies of 4 bytes at least");
  }
  return std::nullopt;
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  struct Try {
    int planes;
    std::int64_t rows;
  };
  const std::int64_t full = 128 * static_cast<std::int64_t>(std::max(1, device.sm_count));
  std::vector<Try> tries;
  tries.reserve(16);  // g++ 12 at -O3 warns wrongly about inserting into an empty vector
  // A thread for a whole plane where there are enough planes and the kernel unrolls it; else strips of a few rows.
  if (p.n * p.c >= full && p.p * p.q * p.taps() <= 2500) tries = {{32, p.p}, {16, p.p}};
  if (p.n * p.c * 4 < full) tries = {{8, 1}, {16, 1}};
  if (p.taps() <= 9) tries.insert(tries.end(), {{8, 2}, {16, 2}, {8, 4}, {16, 4}});
  if (p.taps() > 9) tries.insert(tries.end(), {{8, 4}, {16, 4}, {16, 7}, {8, 2}});
  tries.insert(tries.end(), {{8, p.p}, {16, p.p}, {32, p.p}});
  std::vector<Config> configs;
  for (const auto& [planes, rows] : tries) {
    const std::int64_t strips = ceil_div(p.p, rows);
    if (planes * strips > 256) continue;
    Config config{{{"planes", planes},
                   {"strips", static_cast<int>(strips)},
                   {"threads", static_cast<int>(ceil_div(planes * strips, 32) * 32)}}};
    if (fits(p, config) || std::find(configs.begin(), configs.end(), config) != configs.end()) continue;
    configs.push_back(std::move(config));
  }
  if (configs.size() > 6) configs.resize(6);
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.layout != Layout::nchw) return refuse("layout", static_cast<std::int64_t>(p.layout), "NCHW (0) only");
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = dilated(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.w > 16) return refuse("w", p.w, "rows of 16 columns at most");
  if (p.q > 16) return refuse("q", p.q, "rows of 16 columns at most");
  if (p.taps() > 49) return refuse("r * s", p.taps(), "weights stay in registers, so at most 49 taps");
  if (p.r > 16) return refuse("r", p.r, "at most 16 kernel rows");
  if (registers_of(p) > register_budget) return refuse("q", p.q, "the sums of r rows do not fit in registers");
  if (p.n * p.c > max_grid) return refuse("n * c", p.n * p.c, "needs more blocks than the 2147483647 of a grid");
  if (configs_of(p, device).empty()) return refuse("h * w", p.h * p.w, "too large or too odd for a block's planes");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const int planes = config.get("planes"), strips = config.get("strips");
  Constants constants = common_constants(p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"H", p.h},
      {"W", p.w},
      {"P", p.p},
      {"Q", p.q},
      {"PAD_TOP", p.pad_top},
      {"PAD_LEFT", p.pad_left},
      {"PLANES", planes},
      {"STRIPS", strips},
      {"ROWS", ceil_div(p.p, strips)},
      {"X_BYTES", run_bytes(p, planes, p.h * p.w)},
      {"Y_BYTES", run_bytes(p, planes, p.p * p.q)},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return make_spec(dw_plane, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = ceil_div(p.n * p.c, config.get("planes")),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(smem_bytes(p, config.get("planes")))};
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
    .configs = configs_of,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
