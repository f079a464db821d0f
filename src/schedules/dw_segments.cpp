// dw_segments (kernels/dw_segments.cuh): kernels too large for registers. Knobs: channels x images planes a block, per
// images a thread, tiles of cols columns a block (exact: a whole row, whose columns are known to the compiler), rows of
// outputs a block, step from one to the next (1, or the blocks of a plane), chunk pairs of an output row and a kernel
// row a thread (whole = 2: chunk output rows), fence (2: fences in the code, 1: none), threads (which follows: one for
// each tile, `per` planes and chunk).
#include <algorithm>
#include <array>
#include <cmath>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr std::int64_t smem_limit = 227 * 1024;  // of a block of capability 9.0
constexpr std::int64_t small_limit = 99 * 1024;  // what every device lets a block opt in to
constexpr std::int64_t most_threads = 640;
constexpr std::int64_t most_exact_tiles = 4;  ///< each is code of its own
constexpr std::int64_t most_products =
    1100;                         ///< of a kernel row: they are unrolled, and must fit the instruction cache
constexpr int most_weights = 32;  ///< of a kernel row, in registers at a time

/// Kernel columns that are unrolled: of a row, or of each turn where the row is longer and the compiler does not know
/// the columns (LONG of the kernel).
bool long_rows(const ConvProblem& p, bool exact) { return !exact && p.s > 128; }
std::int64_t turns_of(const ConvProblem& p, bool exact) {
  return long_rows(p, exact) ? ceil_div(p.s, most_weights) : 1;
}
std::int64_t weight_columns(const ConvProblem& p, bool exact) {
  return long_rows(p, exact) ? round_up(p.s, most_weights) : p.s;
}

/// Kernel rows that meet a row of x under an output row.
std::int64_t kernel_rows(const ConvProblem& p, std::int64_t row) {
  const std::int64_t begin = p.pad_top - row * p.stride_h, end = begin + p.h;
  return row < p.p ? std::max<std::int64_t>(0, std::min(end, p.r) - std::max<std::int64_t>(begin, 0)) : 0;
}

/// Products of one kernel row (or of a turn) and a tile of the outputs' columns.
std::int64_t products(const ConvProblem& p, bool exact, std::int64_t tile, std::int64_t cols) {
  if (!exact) return cols * (long_rows(p, exact) ? most_weights : p.s);
  std::int64_t count = 0;
  for (std::int64_t q = tile * cols; q < std::min(p.q, (tile + 1) * cols); ++q) {
    const std::int64_t first = q * p.stride_w - p.pad_left;
    count += std::max<std::int64_t>(0, std::min(first + p.s, p.w) - std::max<std::int64_t>(first, 0));
  }
  return count;
}

/// What a lane reads 16 bytes of: plane (or filter) `unit`, row `row`.
struct LanePlace {
  std::int64_t unit, row;
};
/// Floats from row to row and from plane to plane, such that the lanes of a quarter of a warp meet few banks twice.
struct Pitches {
  std::int64_t row, plane, wavefronts;  // of a quarter
};
Pitches pitches(std::int64_t floats, std::int64_t rows, const std::array<LanePlace, 8>& lanes) {
  const std::int64_t quads = ceil_div(floats, 4);
  Pitches best{0, 0, 9};
  for (std::int64_t row = quads; row < quads + 4; ++row) {
    for (std::int64_t plane = rows * row; plane < rows * row + 8; ++plane) {
      std::int64_t most = 1;
      for (std::size_t i = 0; i < 8; ++i) {
        std::int64_t same = 1;  // other places in the bank of this one, each counted once
        for (std::size_t j = 0; j < i; ++j) {
          const std::int64_t units = lanes[i].unit - lanes[j].unit, apart = lanes[i].row - lanes[j].row;
          if (units == 0 && apart == 0) {
            same = 0;
            break;
          }
          if ((units * plane + apart * row) % 8 == 0) ++same;
        }
        most = std::max(most, same);
      }
      if (most < best.wavefronts) best = {4 * row, 4 * plane, most};
    }
    if (best.wavefronts == 1) break;
  }
  return best;
}

/// What follows from a configuration; mirrors SegmentShape of the kernel.
struct Shape {
  std::int64_t channels, images, per, cols, tiles, rows, step, chunk, fence;
  bool whole, exact;
  std::int64_t planes, groups, segments, threads, x_rows, bytes;
  Pitches x, w, y;

  std::int64_t first_row(std::int64_t strip) const { return step > 1 ? strip : strip * rows; }
};
std::int64_t down_of(const ConvProblem& p, const Shape& s) { return s.step > 1 ? s.step : ceil_div(p.p, s.rows); }

/// Pairs of an output row and a kernel row of the block that has most.
std::int64_t pairs_of(const ConvProblem& p, const Shape& s) {
  std::int64_t most = 1;
  for (std::int64_t strip = 0; strip < down_of(p, s); ++strip) {
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < s.rows; ++i) pairs += kernel_rows(p, s.first_row(strip) + i * s.step);
    most = std::max(most, pairs);
  }
  return most;
}

bool exact(const ConvProblem& p, const Shape& s) { return s.cols * s.tiles >= p.q && s.tiles <= most_exact_tiles; }

/// The shape without what shared memory looks like.
Shape outline_of(const ConvProblem& p, const Config& config) {
  Shape s{};
  s.channels = config.get("channels"), s.images = config.get("images"), s.per = config.get("per");
  s.cols = config.get("cols"), s.tiles = config.get("tiles"), s.rows = config.get("rows");
  s.step = config.get("step"), s.chunk = config.get("chunk"), s.fence = config.get("fence");
  s.whole = config.get("whole") > 1;
  s.exact = exact(p, s);
  s.planes = s.channels * s.images;
  s.groups = s.planes / s.per;
  return s;
}

Shape shape_of(const ConvProblem& p, Shape s, std::int64_t pairs) {
  s.segments = s.whole ? ceil_div(s.rows, s.chunk) : ceil_div(pairs, s.chunk);
  s.threads = 32 * s.tiles * ceil_div(s.groups * s.segments, 32);
  std::array<LanePlace, 8> x{}, w{}, y{};
  for (std::size_t i = 0; i < 8; ++i) {
    const auto lane = static_cast<std::int64_t>(i), group = lane % s.groups, segment = lane / s.groups;
    x[i] = {group, segment * s.chunk};
    w[i] = {group / (s.images / s.per), segment * s.chunk};
    y[i] = {group, segment};
  }
  const std::int64_t columns = weight_columns(p, s.exact), span = (s.cols - 1) * p.stride_w + columns,
                     quads = ceil_div(s.cols, 4) * 4;
  s.x_rows = std::min(p.h, (s.rows - 1) * s.step * p.stride_h + p.r);
  s.x = pitches(s.exact ? p.w : (s.tiles - 1) * s.cols * p.stride_w + span, s.x_rows, x);
  s.w = pitches(columns, p.r, w);
  s.y = pitches(s.tiles * quads, s.segments + s.rows, y);
  if (s.whole) s.y.plane = 0;  // results go straight from registers
  s.bytes = 4 * (s.planes * (s.x.plane + s.y.plane) + s.channels * s.w.plane + 4 * (s.rows + 1) + s.segments);
  return s;
}

Shape shape_of(const ConvProblem& p, const Config& config) {
  const Shape s = outline_of(p, config);
  return shape_of(p, s, pairs_of(p, s));
}

struct Grid {
  std::int64_t channel_blocks, across, down, image_blocks;
  std::int64_t blocks() const { return channel_blocks * across * down * image_blocks; }
};
Grid grid_of(const ConvProblem& p, const Shape& s) {
  return {.channel_blocks = ceil_div(p.c, s.channels),
          .across = ceil_div(p.q, s.tiles * s.cols),
          .down = down_of(p, s),
          .image_blocks = ceil_div(p.n, s.images)};
}

/// Registers of a thread: sums, weights, a piece of x, and what else there is; set against ptxas.
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  return std::max<std::int64_t>(60, s.per * (s.cols + 8) + std::min<std::int64_t>(p.s + 3, most_weights) + 18);
}

/// Products of one kernel row in the tile that has most, `per` planes together.
std::int64_t most_products_of(const ConvProblem& p, const Shape& s) {
  std::int64_t most = 0;
  for (std::int64_t tile = 0; tile < (s.exact ? s.tiles : 1); ++tile) {
    most = std::max(most, products(p, s.exact, tile, s.cols));
  }
  return s.per * most;
}

/// What a shape needs of a device.
Refusal too_large(const ConvProblem& p, const Shape& s, std::int64_t bytes) {
  if (s.threads > most_threads) return refuse("threads", s.threads, "at most 640");
  if (registers_of(p, s) > std::min<std::int64_t>(224, 65536 / s.threads)) {
    return refuse("cols", s.cols, "too many registers");
  }
  if (s.bytes > bytes) return refuse("rows", s.rows, "more shared memory than a block has");
  if (grid_of(p, s).blocks() > max_grid) {
    return refuse("n * c", p.n * p.c, "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"channels", "images", "per", "cols", "tiles", "rows", "step", "chunk",
                                             "fence", "whole", "threads"})) {
    return refusal;
  }
  const int channels = config.get("channels"), images = config.get("images"), per = config.get("per");
  const int cols = config.get("cols"), tiles = config.get("tiles"), rows = config.get("rows"),
            step = config.get("step");
  if (!power_of_two(channels) || channels > 32) return refuse("channels", channels, "a power of two, at most 32");
  if (images > 32) return refuse("images", images, "at most 32");
  if (per > 2 || images % per != 0) return refuse("per", per, "1, or 2 of an even number of images");
  if (cols > 64) return refuse("cols", cols, "at most 64");
  if (tiles > 64) return refuse("tiles", tiles, "at most 64");
  if (rows > p.p) return refuse("rows", rows, "at most p = " + std::to_string(p.p));
  if (step > 1 && (step > p.p || rows != ceil_div(p.p, step))) {
    return refuse("step", step, "1, or such that rows = " + std::to_string(rows) + " is p / step, rounded up");
  }
  if (config.get("fence") > 2) return refuse("fence", config.get("fence"), "1 (none) or 2");
  const Shape s = shape_of(p, config);
  if (config.get("threads") != s.threads) {
    return refuse("threads", config.get("threads"), "32 for every 32 segments of a tile");
  }
  if (config.get("whole") > 2 || (s.whole && s.groups != 32)) {
    return refuse("whole", config.get("whole"), "1, or 2 where a warp has 32 planes, or pairs of planes");
  }
  if (!s.exact && s.cols * p.stride_w % 4 != 0) {
    return refuse("cols", cols, "tiles of a part of a row begin at a multiple of 4 columns of x");
  }
  if (most_products_of(p, s) > most_products) {
    return refuse("cols", cols, "more products a kernel row than the instruction cache should hold");
  }
  return too_large(p, s, smem_limit);
}

/// Pairs of a warp that has whole rows: between the mean and the most, for warps of a scheduler make up for each other.
double whole_pairs(const ConvProblem& p, const Shape& s) {
  std::int64_t most = 0, all = 0;
  for (std::int64_t slot = 0; slot < s.segments; ++slot) {
    std::int64_t pairs = 0;
    for (std::int64_t i = slot; i < s.rows; i += s.segments) pairs += kernel_rows(p, i * s.step);
    most = std::max(most, pairs), all += pairs;
  }
  const std::int64_t mean = all / s.segments;
  return static_cast<double>(most + mean) / 2;
}

/// Cycles of a multiprocessor, roughly; the constants were fitted to 150 configurations of nine calls on an H200, those
/// of whole rows excepted.
double cost_of(const ConvProblem& p, const DeviceInfo& device, const Shape& s, std::int64_t products) {
  const auto segments = static_cast<double>(s.segments), rows = static_cast<double>(s.rows);
  const auto warps = static_cast<double>(s.threads) / 32, planes = static_cast<double>(s.planes);
  const auto outs = static_cast<double>(s.per * s.cols), chunk = static_cast<double>(s.chunk);
  const std::int64_t grid = grid_of(p, s).blocks(), blocks = ceil_div(grid, std::max(1, device.sm_count));
  const std::int64_t registers = s.threads * (registers_of(p, s) + 7) / 8 * 8;
  const auto resident = static_cast<double>(std::clamp<std::int64_t>(
      std::min({227 * 1024 / (s.bytes + 1024), 2048 / s.threads, device.registers_per_sm / registers}), 1, blocks));
  // A warp: its pairs, the changes from row to row of its lanes' segments, start and end.
  const std::int64_t turns = turns_of(p, s.exact);
  const std::int64_t span = std::min(s.exact ? p.w : p.w + p.s, (s.cols - 1) * p.stride_w + p.s);
  const auto x_reads = static_cast<double>(s.per * ceil_div(span, 4) * ceil_div(p.s, most_weights));
  const auto w_reads = static_cast<double>(ceil_div(p.s, 4));
  const double pair = static_cast<double>(products * turns + 2 * ceil_div(span, 4)) + x_reads + w_reads + 9;
  const double changes =
      std::min(chunk - 1, std::min(32.0, 32.0 / static_cast<double>(s.groups) + 1) * rows / segments);
  const double pairs = s.whole ? whole_pairs(p, s) : chunk;
  const double warp = s.whole ? pairs * pair + chunk * (60 + 2 * outs) + 200
                              : pairs * pair + changes * (53 + 1.3 * outs) + 376 + 1.5 * outs;
  // Lanes that are images share their weights; lanes that are segments of few planes meet rows in the same bank.
  const auto conflicts = [&](const Pitches& pitch) {
    return std::max(s.groups < 8 ? 1.55 : 1.0, static_cast<double>(pitch.wavefronts));
  };
  const double filters = std::clamp(32.0 * static_cast<double>(s.per) / static_cast<double>(s.images), 1.0, 4.0);
  const double wavefronts = warps * pairs * (4 * x_reads * conflicts(s.x) + filters * w_reads * conflicts(s.w));
  // Copies and results.
  const double size = static_cast<double>(size_of(p.dtype));
  const double piece = nhwc(p) ? std::max(1.0, 32 / (size * static_cast<double>(s.channels))) : 1.0;
  const auto in = planes * static_cast<double>(s.x_rows * p.w);
  const auto out = planes * rows * static_cast<double>(s.tiles * s.cols);
  const double copies = in / (nhwc(p) || !s.exact ? 1 : dividing_power(p.w, std::min(4, max_vector(p))));
  const double around = (copies * 3.7 + out * (s.whole ? 12 : 23)) / 32;
  const double bytes = size * (in + out) * piece + static_cast<double>(s.channels * p.taps()) * 4;
  // Of a block among the resident ones: warps are dealt to four schedulers.
  const double even = std::ceil(resident * warps / 4) / resident;
  const double busy = 0.97 * (1 - std::exp(-1.13 * resident * warps / 4 * pair / (pair + 65)));
  const double work = std::max({even * warp / busy + around / 4, wavefronts / 0.85, bytes / 7.9});
  constexpr double start = 440, alone = 2030;  // of a kernel; what waits for a block's copies
  const auto all = static_cast<double>(blocks);
  return start + alone + 0.37 * resident * bytes / 7.9 + all * work + (all / resident - 1) * alone / resident;
}

/// Tiles of a row: as few as registers allow, and more for few planes. Rows of more than a few tiles, or of tiles with
/// more products than are unrolled, are padded and cut into blocks.
struct Tiling {
  std::int64_t cols, tiles;
};
std::vector<Tiling> tilings(const ConvProblem& p) {
  std::vector<Tiling> list;
  for (std::int64_t tiles = 1; tiles <= most_exact_tiles; ++tiles) {
    const std::int64_t cols = ceil_div(p.q, tiles);
    if (cols > 32 || (tiles > 1 && cols < 7)) continue;
    std::int64_t most = 0;
    for (std::int64_t tile = 0; tile < tiles; ++tile) most = std::max(most, products(p, true, tile, cols));
    if (most <= most_products) list.push_back({cols, tiles});
  }
  if (!list.empty()) return list;
  for (const std::int64_t cols : {28, 16, 8}) {
    if (products(p, false, 0, cols) > most_products) continue;
    const std::int64_t all = ceil_div(p.q, cols);
    for (const std::int64_t blocks : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{5},
                                      std::int64_t{8}, ceil_div(all, 16), ceil_div(all, 8), ceil_div(all, 6)}) {
      const std::int64_t tiles = blocks > 1 ? ceil_div(all, blocks) : std::max(all, most_exact_tiles + 1);
      if (tiles <= 16 && (blocks == 1 || tiles * cols < p.q)) list.push_back({cols, tiles});
    }
  }
  return list;
}

/// Output rows of a block: all; every step-th of a plane that fits in shared memory; or neighbours.
struct Strip {
  std::int64_t rows, step;
};
std::vector<Strip> strips(const ConvProblem& p) {
  std::vector<Strip> list = {{p.p, 1}};
  for (const std::int64_t step : {2, 4, 7}) {
    if (step < p.p) list.push_back({ceil_div(p.p, step), step});
  }
  for (const std::int64_t rows : {28, 14, 7, 4, 1}) {
    if (rows < p.p && p.h * p.w > 4096) list.push_back({rows, 1});
  }
  return list;
}

struct Option {
  double cost;
  Shape shape;
};

/// Warps for each tile; a block's pairs are cut into as many segments as fill them, or they share its rows.
constexpr std::int64_t warps_tried[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20};

void add_options(std::vector<Option>& options, const ConvProblem& p, const DeviceInfo& device, Shape outline,
                 std::int64_t pairs, std::int64_t products) {
  const std::int64_t bytes = std::max<std::int64_t>(small_limit, device.smem_optin);
  std::int64_t before = 0;
  for (const std::int64_t warps : warps_tried) {
    const std::int64_t parts = outline.whole ? outline.rows : pairs;
    const std::int64_t segments = std::min(32 * warps / outline.groups, parts);
    if (segments < 1 || 32 * warps * outline.tiles > most_threads) continue;
    outline.chunk = ceil_div(parts, segments);
    if (outline.chunk == before) continue;
    if (!outline.whole && outline.chunk < 2 && parts > 32 && std::min(p.r, p.h) > 4) continue;  // sums of many parts
    before = outline.chunk;
    const Shape s = shape_of(p, outline, pairs);
    if (!too_large(p, s, std::min(bytes, smem_limit))) options.push_back({cost_of(p, device, s, products), s});
  }
}

Config config_of(const Shape& s) {
  const std::pair<const char*, std::int64_t> knobs[] = {
      {"channels", s.channels}, {"images", s.images},       {"per", s.per},        {"cols", s.cols},
      {"tiles", s.tiles},       {"rows", s.rows},           {"step", s.step},      {"chunk", s.chunk},
      {"fence", s.fence},       {"whole", s.whole ? 2 : 1}, {"threads", s.threads}};
  Config config;
  for (const auto& [name, value] : knobs) config.knobs.emplace_back(name, static_cast<int>(value));
  return config;
}

/// Puts the cheapest option that `wanted` names at this place, if its cost is at most `limit`.
template <class Wanted>
void bring(std::vector<Option>& options, std::ptrdiff_t place, double limit, const Wanted& wanted) {
  const auto to = options.begin() + std::min(place, static_cast<std::ptrdiff_t>(options.size()));
  const auto found = std::find_if(to, options.end(), [&](const Option& o) { return wanted(o.shape); });
  if (found != options.end() && found->cost <= limit) std::rotate(to, found, found + 1);
}

/// The fastest first, with some variety: of shapes that differ in little but whose planes a block has, one; of those
/// whose threads do the same work, or that differ in how much of it a thread does, two. Whole rows, which no GPU has
/// timed, come second. Last, the first without fences.
std::vector<Config> chosen(std::vector<Option> options) {
  std::stable_sort(options.begin(), options.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  bring(options, 0, HUGE_VAL, [](const Shape& s) { return !s.whole; });
  if (!options.empty()) bring(options, 1, 1.25 * options.front().cost, [](const Shape& s) { return s.whole; });
  std::vector<Shape> kept;
  for (const auto& [cost, s] : options) {
    if (kept.size() == 7) break;
    int alike = 0, finer = 0;
    for (const Shape& other : kept) {
      if (other.per != s.per || other.cols != s.cols || other.whole != s.whole) continue;
      if (other.channels == s.channels && other.images == s.images && other.rows == s.rows) ++finer;
      if (other.chunk != s.chunk) continue;
      ++alike;
      if (other.planes == s.planes && other.rows == s.rows) alike = 2;
    }
    if (alike < 2 && finer < 2) kept.push_back(s);
  }
  std::vector<Config> configs;
  for (const Shape& s : kept) configs.push_back(config_of(s));
  if (!kept.empty()) {
    kept.front().fence = 1;
    configs.push_back(config_of(kept.front()));
  }
  return configs;
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Option> options;
  for (const Tiling& tiling : tilings(p)) {
    for (const Strip& strip : strips(p)) {
      Shape s{};
      s.cols = tiling.cols, s.tiles = tiling.tiles, s.rows = strip.rows, s.step = strip.step, s.per = 1, s.fence = 2;
      s.exact = exact(p, s);
      const std::int64_t pairs = pairs_of(p, s), products = most_products_of(p, s);
      for (s.channels = 1; s.channels <= 32 && (s.channels == 1 || s.channels < 2 * p.c); s.channels *= 2) {
        for (s.images = 1; s.images <= 32 && (s.images == 1 || s.images < 2 * p.n); s.images *= 2) {
          s.planes = s.channels * s.images;
          if (s.planes > 64) break;
          for (s.per = 1; s.per <= std::min<std::int64_t>(s.images, 2); ++s.per) {
            s.groups = s.planes / s.per;
            if (s.per * products > most_products) continue;
            s.whole = s.groups == 32;
            if (s.whole) add_options(options, p, device, s, pairs, s.per * products);
            s.whole = false;
            if (s.planes > 32 || s.channels > 16 || (s.planes > 8 && s.step > 1)) continue;  // strips: few planes
            add_options(options, p, device, s, pairs, s.per * products);
          }
        }
      }
    }
  }
  return chosen(std::move(options));
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = dilated(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.taps() <= 81) return refuse("r * s", p.taps(), "up to 81 taps fit in registers, which is faster");
  if (configs_of(p, device).empty()) return refuse("r * s", p.taps(), "no tile fits in shared memory");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(p, config);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  const int copy = nhwc(p) || !s.exact ? 1 : dividing_power(p.w, std::min(4, max_vector(p)));
  // A vector of results lies in one tile.
  const int store = nhwc(p) ? 1
                            : dividing_power(p.q, s.tiles > 1 ? dividing_power(s.cols, std::min(4, max_vector(p)))
                                                              : std::min(4, max_vector(p)));
  // Fp32 goes to shared memory asynchronously, a channel a copy.
  const int pair =
      nhwc(p) && p.dtype != DType::f32 && s.channels > 1 ? dividing_power(p.c, std::min(2, max_vector(p))) : 1;
  add_sizes(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"CHANNELS", s.channels}, {"IMAGES", s.images},   {"PER", s.per},
      {"COLS", s.cols},         {"TILES", s.tiles},     {"EXACT", s.exact ? 1 : 0},
      {"ROWS", s.rows},         {"STEP", s.step},       {"CHUNK", s.chunk},
      {"SEGMENTS", s.segments}, {"FENCE", s.fence - 1}, {"X_ROWS", s.x_rows},
      {"X_PITCH", s.x.row},     {"X_PLANE", s.x.plane}, {"W_PITCH", s.w.row},
      {"W_PLANE", s.w.plane},   {"Y_ROW", s.y.row},     {"Y_PLANE", s.y.plane},
      {"COPY", copy},           {"STORE", store},       {"WHOLE", s.whole ? 1 : 0},
      {"PAIR", pair},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return make_spec(dw_segments, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(p, config);
  return {.grid = grid_of(p, s).blocks(), .block = config.get("threads"), .dynamic_smem = static_cast<int>(s.bytes)};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Grid grid = grid_of(p, shape_of(p, config));
  out = common_params(p);
  out.work = grid.blocks() * config.get("threads");
}

}  // namespace

constinit const Schedule dw_segments{
    .name = "dw_segments",
    .source = "dw_segments.cuh",
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
