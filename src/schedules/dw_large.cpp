// dw_large (kernels/dw_large.cuh): kernels too large for registers. Knobs: planes channels of a warp (8, 16 or 32),
// rows x cols sums a thread, taps kernel columns at a time, row_tiles x col_tiles tiles a block, split warps that share
// a tile's kernel columns, threads (which follows from the others).
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr std::int64_t most_threads = 512;

/// What follows from a configuration; mirrors LargeShape of the kernel.
struct Shape {
  std::int64_t groups, x_rows, x_floats, w_floats, warps, bytes;
};
Shape shape_of(const ConvProblem& p, const Config& config) {
  const std::int64_t planes = config.get("planes"), rows = config.get("rows"), cols = config.get("cols");
  const std::int64_t taps = config.get("taps"), split = config.get("split");
  const std::int64_t row_tiles = config.get("row_tiles"), col_tiles = config.get("col_tiles");
  Shape s{};
  s.groups = 32 / planes;
  const std::int64_t w_cols = ceil_div(p.s, taps) * taps;
  s.x_rows = std::min(p.h, row_tiles * rows + p.r - 1);
  s.x_floats = s.x_rows * (col_tiles * cols + w_cols - 1) * (nhwc(p) ? planes : planes + 1);
  std::int64_t w_row = w_cols * (planes + 1);
  const auto spread = [&] { return w_row * rows % 32 == planes || w_row * rows % 32 == 32 - planes; };
  for (int tries = 31; tries > 0 && s.groups > 1 && !spread(); --tries) ++w_row;
  s.w_floats = (p.r + 1) * w_row;
  const std::int64_t y_plane = row_tiles * rows * col_tiles * cols;
  const std::int64_t tiles = row_tiles / s.groups * col_tiles;
  s.warps = tiles * split;
  s.bytes = 4 * std::max(s.x_floats + s.w_floats, planes * (nhwc(p) ? y_plane : y_plane | 1));
  return s;
}

struct Grid {
  std::int64_t channel_blocks, across, down, outer;
  std::int64_t blocks() const { return channel_blocks * across * down * outer; }
};
Grid grid_of(const ConvProblem& p, const Config& config) {
  const std::int64_t planes = config.get("planes");
  return {.channel_blocks = nhwc(p) ? ceil_div(p.c, planes) : 1,
          .across = ceil_div(p.q, std::int64_t{config.get("col_tiles")} * config.get("cols")),
          .down = ceil_div(p.p, std::int64_t{config.get("row_tiles")} * config.get("rows")),
          .outer = nhwc(p) ? p.n : ceil_div(p.n * p.c, planes)};
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal =
          wrong_knobs(config, {"planes", "rows", "cols", "taps", "row_tiles", "col_tiles", "split", "threads"})) {
    return refusal;
  }
  const int planes = config.get("planes"), rows = config.get("rows"), cols = config.get("cols");
  const int taps = config.get("taps"), row_tiles = config.get("row_tiles"), col_tiles = config.get("col_tiles");
  if (planes != 8 && planes != 16 && planes != 32) return refuse("planes", planes, "8, 16 or 32");
  if (rows > 16) return refuse("rows", rows, "at most 16");
  // Sums, weights, one row of values and about 40 besides, within 128 registers.
  if (cols > 16 || rows * cols + rows * taps + cols + taps > 100) {
    return refuse("cols", cols, "too many registers with these rows and taps");
  }
  if (taps > p.s) return refuse("taps", taps, "at most s = " + std::to_string(p.s));
  if (row_tiles > 64 || row_tiles % (32 / planes) != 0) {
    return refuse("row_tiles", row_tiles, "a multiple of 32 / planes, at most 64");
  }
  if (col_tiles > 64) return refuse("col_tiles", col_tiles, "at most 64");
  if (config.get("split") > 8) return refuse("split", config.get("split"), "at most 8");
  const Shape shape = shape_of(p, config);
  if (config.get("threads") != shape.warps * 32 || shape.warps * 32 > most_threads) {
    return refuse("threads", config.get("threads"), "32 for each tile and split, at most 512");
  }
  if (shape.bytes > portable_smem_limit) return refuse("planes", planes, "more than 96 KiB of shared memory");
  if (grid_of(p, config).blocks() > max_grid) {
    return refuse("n * c", p.n * p.c, "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

/// The part of `limit` that cuts `size` into the fewest parts, all alike.
int part(std::int64_t size, int limit) { return static_cast<int>(ceil_div(size, ceil_div(size, limit))); }

/// Kernel columns at a time, `most` or a few fewer: the fewest columns of zeros beyond s.
int taps_of(std::int64_t s, int most) {
  int best = static_cast<int>(std::min<std::int64_t>(s, most));
  for (int taps = best; taps >= std::min(3, best); --taps) {
    if (ceil_div(s, taps) * taps < ceil_div(s, best) * best) best = taps;
  }
  return best;
}

/// Cycles, roughly: what the busiest multiprocessor's schedulers issue, more where they have few warps to choose from.
double cost_of(const ConvProblem& p, const DeviceInfo& device, const Config& config) {
  const Shape shape = shape_of(p, config);
  const std::int64_t rows = config.get("rows"), cols = config.get("cols"), taps = config.get("taps");
  const std::int64_t in_rows = std::min(p.h, shape.groups * rows + p.r - 1);
  const std::int64_t chunks = ceil_div(std::min(p.s, p.w + cols), taps);
  const std::int64_t used_rows = shape.groups > 1 ? in_rows * rows : std::min(in_rows * rows, p.r * rows);
  const auto work = static_cast<double>(chunks * (used_rows * cols * taps + in_rows * (cols + 2 * taps)));
  const auto staging = static_cast<double>(shape.x_floats + shape.w_floats) / 3;  // instructions, of the whole block
  const std::int64_t tiles = shape.warps / config.get("split");
  const std::int64_t blocks = ceil_div(grid_of(p, config).blocks(), std::max(1, device.sm_count));
  const std::int64_t resident =
      std::clamp<std::int64_t>(std::min(220 * 1024 / (shape.bytes + 1024), 16 / shape.warps), 1, blocks);
  const double alone = 1 + 0.5 * std::max(0.0, 3.0 - static_cast<double>(resident * shape.warps) / 4);
  return static_cast<double>(blocks) * (static_cast<double>(tiles) * work + staging) * alone;
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  struct Tile {
    int rows, cols, taps;  // at most
  };
  constexpr Tile shapes[] = {{4, 7, 7}, {7, 4, 4}, {7, 7, 4}, {4, 8, 7}, {4, 7, 5}, {7, 4, 7}};
  std::vector<std::pair<double, Config>> options;
  for (const int planes : {32, 16, 8}) {
    for (const Tile& tile : shapes) {
      const int rows = part(p.p, tile.rows), cols = part(p.q, tile.cols), groups = 32 / planes;
      const int down = static_cast<int>(std::min<std::int64_t>(64, ceil_div(p.p, rows)));
      const int across = part(ceil_div(p.q, cols), 8);
      for (const int split : {1, 2}) {
        // As much of the plane as fits in shared memory, down to one tile of every warp.
        for (int parts = 1; parts <= down; parts *= 2) {
          const auto row_tiles = static_cast<int>(ceil_div(ceil_div(down, parts), groups) * groups);
          const int threads = row_tiles / groups * across * split * 32;
          Config config{{{"planes", planes},
                         {"rows", rows},
                         {"cols", cols},
                         {"taps", taps_of(p.s, tile.taps)},
                         {"row_tiles", row_tiles},
                         {"col_tiles", across},
                         {"split", split},
                         {"threads", threads}}};
          if (fits(p, config)) continue;
          const double cost = cost_of(p, device, config);
          options.emplace_back(cost, std::move(config));
        }
      }
    }
  }
  std::stable_sort(options.begin(), options.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Config> configs;
  for (auto& [cost, config] : options) {
    if (configs.size() == 6) break;
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) configs.push_back(std::move(config));
  }
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = dilated(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.stride_h != 1) return refuse("stride_h", p.stride_h, "this schedule takes 1 only");
  if (p.stride_w != 1) return refuse("stride_w", p.stride_w, "this schedule takes 1 only");
  if (p.taps() <= 81) return refuse("r * s", p.taps(), "up to 81 taps fit in registers, which is faster");
  if (p.s < 3) return refuse("s", p.s, "at least 3 kernel columns");
  if (configs_of(p, device).empty()) return refuse("r * s", p.taps(), "no tile fits in 96 KiB of shared memory");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape shape = shape_of(p, config);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  for (const char* knob : {"planes", "rows", "cols", "taps", "row_tiles", "col_tiles", "split"}) {
    std::string name = knob;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c == '_' ? c : static_cast<char>(c - 'a' + 'A'); });
    constants.emplace_back(std::move(name), config.get(knob));
  }
  constants.emplace_back("X_ROWS", shape.x_rows);
  const std::int64_t y_cols = std::int64_t{config.get("col_tiles")} * config.get("cols");
  constants.emplace_back("PER", nhwc(p) ? dividing_power(p.c, std::min(4, max_vector(p))) : 1);
  constants.emplace_back("STORE",
                         nhwc(p) ? 1 : dividing_power(p.q, dividing_power(y_cols, std::min(4, max_vector(p)))));
  return make_spec(dw_large, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = grid_of(p, config).blocks(),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(shape_of(p, config).bytes)};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Grid grid = grid_of(p, config);
  out = common_params(p);
  out.work = grid.blocks() * config.get("threads");
  out.div[0] = fast_div(nhwc(p) ? grid.channel_blocks : p.c);
  out.div[1] = fast_div(grid.across);
  out.div[2] = fast_div(grid.down);
}

}  // namespace

constinit const Schedule dw_large{
    .name = "dw_large",
    .source = "dw_large.cuh",
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
