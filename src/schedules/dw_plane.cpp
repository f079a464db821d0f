// dw_plane (kernels/dw_plane.cuh): small NCHW planes, several a block. Knobs: planes a block, strips x tiles threads a
// plane, threads (planes * strips * tiles, rounded up to warps).
#include <algorithm>
#include <numeric>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

/// Devices of capability 8.6, 8.9 and 12.0 let a block opt in to 99 KiB.
constexpr std::int64_t smem_limit = 96 * 1024;
constexpr std::int64_t narrow = 16, wide = 128;  ///< columns of a plane: a thread's alone, and of several

std::int64_t size(const ConvProblem& p) { return static_cast<std::int64_t>(size_of(p.dtype)); }
std::int64_t padded(std::int64_t bytes) { return ceil_div(bytes, 16) * 16; }

/// Bytes of one copy of weights: a block's planes begin at any multiple of what its planes and all have in common.
int weight_bytes(const ConvProblem& p, std::int64_t planes) {
  const std::int64_t bytes = std::gcd(planes, p.c) * p.taps() * size(p);
  return std::max(static_cast<int>(size(p)), dividing_power(bytes, std::min(16, static_cast<int>(p.align))));
}

/// Whether a thread that has a plane to itself may write output rows where its input rows were. (Not where the words it
/// reads are also another plane's.)
bool in_place(const ConvProblem& p, const Config& config) {
  return config.get("strips") == 1 && config.get("tiles") == 1 && !p.residual && p.stride_h == 1 && p.h == p.p &&
         p.w == p.q && p.pad_top < p.r && (p.w % 2 == 0 || size(p) == 4);
}

std::int64_t smem_bytes(const ConvProblem& p, const Config& config) {
  const std::int64_t planes = config.get("planes");
  const std::int64_t x = padded(planes * p.h * p.w * size(p)), y = padded(planes * p.p * p.q * size(p));
  return x + (in_place(p, config) ? 0 : y) + padded(planes * p.taps() * size(p));
}

/// Bytes of one copy: they divide a block's run of planes, so that every block starts aligned.
int run_bytes(const ConvProblem& p, std::int64_t planes, std::int64_t plane) {
  return dividing_power(planes * plane * size(p), std::min(16, static_cast<int>(p.align)));
}

/// Registers a thread needs; an upper bound in practice, set against ptxas (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem& p, std::int64_t tiles) {
  const std::int64_t cols = ceil_div(p.q, tiles), span = tiles == 1 ? p.w : (cols - 1) * p.stride_w + p.s;
  return ceil_div(p.r, p.stride_h) * cols + p.taps() + span + 40;
}
constexpr std::int64_t register_budget = 225;

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
  if (smem_bytes(p, config) > smem_limit) return refuse("planes", planes, "more than 96 KiB of shared memory");
  if (run_bytes(p, planes, p.h * p.w) < 4 || run_bytes(p, planes, p.p * p.q) < 4) {
    return refuse("planes", planes, "copies of 4 bytes at least");
  }
  return std::nullopt;
}

struct Try {
  int planes;
  std::int64_t rows, cols;
};

/// The best of those measured, by size, stride and bytes an element.
std::vector<Try> tries_of(const ConvProblem& p) {
  const std::int64_t whole = p.p, row = p.q;
  const bool strides = p.stride_h > 1 || p.stride_w > 1, halves = p.dtype != DType::f32;
  if (p.w <= narrow && p.q <= narrow) {
    if (p.p * p.q > 64) {
      return {{8, 2, row}, {16, 7, row}, {16, 2, row}, {32, whole, row}, {16, 4, row}, {8, 4, row}, {8, whole, row}};
    }
    if (halves && !strides) {
      return {{32, whole, row}, {16, 2, row}, {64, whole, row}, {32, 2, row}, {16, 1, row}, {8, whole, row}};
    }
    return {{16, 2, row}, {32, 2, row}, {32, whole, row}, {16, 4, row}, {8, 2, row}, {8, whole, row}};
  }
  if (p.q <= 20 && strides) {
    return {{16, 2, 7}, {16, 3, 5}, {8, 3, 10}, {8, 2, 7}, {16, 5, 7}, {4, 4, 7}, {2, 4, 7}};
  }
  if (p.q <= 20) return {{8, 5, row}, {16, 5, row}, {16, 5, 10}, {16, 10, 5}, {8, 5, 7}, {4, 5, 7}, {2, 5, 7}};
  if (strides) return {{4, 7, 4}, {8, 14, 2}, {2, 4, 4}, {8, 10, 4}, {2, 7, 4}, {8, 7, 4}, {4, 14, 4}, {2, 14, 4}};
  if (halves) return {{8, 5, 15}, {16, 8, 15}, {8, 8, 5}, {8, 8, 8}, {4, 8, 8}, {2, 8, 8}, {4, 16, 8}};
  return {{8, 5, 8}, {8, 8, 8}, {8, 8, 5}, {8, 5, 15}, {4, 8, 8}, {2, 8, 8}, {4, 16, 8}};
}

std::vector<Config> configs_of(const ConvProblem& p) {
  std::vector<Config> configs;
  configs.reserve(8);  // g++ 12 at -O3 warns wrongly about inserting into an empty vector
  for (const auto& [planes, rows, cols] : tries_of(p)) {
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
  if (p.layout != Layout::nchw) return refuse("layout", static_cast<std::int64_t>(p.layout), "NCHW (0) only");
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = dilated(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.w > wide) return refuse("w", p.w, "rows of 128 columns at most");
  if (p.w > narrow && p.w % 2 == 0) return refuse("w", p.w, "rows of 16 columns at most, or of an odd number");
  if (p.q > wide) return refuse("q", p.q, "rows of 128 columns at most");
  if (p.taps() > 49) return refuse("r * s", p.taps(), "weights stay in registers, so at most 49 taps");
  if (p.r > 16) return refuse("r", p.r, "at most 16 kernel rows");
  if (p.n * p.c > max_grid) return refuse("n * c", p.n * p.c, "needs more blocks than the 2147483647 of a grid");
  if (configs_of(p).empty()) return refuse("h * w", p.h * p.w, "too large or too odd for a block's planes");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const int planes = config.get("planes"), strips = config.get("strips"), tiles = config.get("tiles");
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
      {"TILES", tiles},
      {"IN_PLACE", in_place(p, config) ? 1 : 0},
      {"X_BYTES", run_bytes(p, planes, p.h * p.w)},
      {"Y_BYTES", run_bytes(p, planes, p.p * p.q)},
      {"W_BYTES", weight_bytes(p, planes)},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
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
