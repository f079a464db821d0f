// grp_fma (kernels/grp_fma.cuh): grouped by fp32 multiply-adds, rows staged through a ring. Knobs: outs output channels
// of one group and cols columns a thread, split threads that share out a group's channels, lanes threads along the
// outputs, tiles threads along the row, copy elements a copy, stages of the ring, rows of a strip (a run-time number:
// it costs no compilation), threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr std::int64_t most_held = 100;       ///< weights of a thread that stay in registers
constexpr std::int64_t most_unrolled = 1600;  ///< multiply-adds of a step without a loop
constexpr std::int64_t most_taps = 81, most_channels = 8, most_rows = 16;
constexpr std::int64_t long_strip = 5;       ///< rows for each row of sums, from which a strip is LONG
constexpr std::int64_t most_down = 1 << 24;  ///< input rows from a step to the next

std::int64_t size(const ConvProblem& p) { return static_cast<std::int64_t>(size_of(p.dtype)); }

struct Knobs {
  int outs, cols, split, lanes, tiles, copy, stages, rows, threads;
};
Knobs knobs_of(const Config& c) {
  return {c.get("outs"), c.get("cols"),   c.get("split"), c.get("lanes"),  c.get("tiles"),
          c.get("copy"), c.get("stages"), c.get("rows"),  c.get("threads")};
}
Config config_of(const Knobs& k) {
  return {{{"outs", k.outs},
           {"cols", k.cols},
           {"split", k.split},
           {"lanes", k.lanes},
           {"tiles", k.tiles},
           {"copy", k.copy},
           {"stages", k.stages},
           {"rows", k.rows},
           {"threads", k.threads}}};
}

/// What follows from a configuration; mirrors GrpFma of the kernel.
struct Shape {
  Slide slide;
  std::int64_t parts, groups, channels, tile, wide, used, together, vec, lead, pad, row, copies, turns, bytes;
  std::int64_t window_reads, window_wavefronts;  ///< of a warp in an input row; of one of them
  bool hold, roll;
};

/// Input channels in registers at once.
std::int64_t together_of(const ConvProblem& p, const Knobs& k, std::int64_t used) {
  const std::int64_t cpg = p.channels_per_group() / k.split;
  for (std::int64_t channels = nhwc(p) && cpg == 6 ? 2 : 4; channels > 1; --channels) {  // 6: pairs are vectors
    const bool small = used * channels <= 40 && p.taps() * channels * k.cols * k.outs <= most_unrolled;
    if (cpg % channels == 0 && small) return channels;
  }
  return 1;
}

Shape shape_of(const ConvProblem& p, const Knobs& k) {
  const std::int64_t cpg = p.channels_per_group(), unit = 16 / size(p);
  Shape s{};
  s.slide = slide_of(p);
  s.parts = p.multiplier() / k.outs;
  s.groups = std::max<std::int64_t>(1, k.lanes / s.parts);
  s.channels = s.groups * cpg;
  s.tile = std::int64_t{k.tiles} * k.cols;
  const std::int64_t reach = p.effective_s(), span = (k.cols - 1) * p.stride_w + reach;
  s.wide = (s.tile - 1) * p.stride_w + reach;
  s.used = std::min(span, k.cols * p.s);
  s.together = together_of(p, k, s.used);
  s.hold = per_out(p) / k.split * k.outs <= most_held;
  s.roll = !s.hold && per_out(p) / k.split * k.outs * k.cols > most_unrolled;
  s.lead = nhwc(p) ? 0 : ((-p.pad_left) % k.copy + k.copy) % k.copy;
  const std::int64_t length = nhwc(p) ? s.channels : s.lead + s.wide, lines = nhwc(p) ? s.wide : s.channels;
  const auto limit = static_cast<int>(unit);
  s.vec =
      nhwc(p) ? dividing_power(std::gcd(s.together, s.channels), limit) : dividing_power(k.cols * p.stride_w, limit);
  const std::int64_t vectors = ceil_div(s.lead + span, s.vec) - s.lead / s.vec;
  s.window_reads = cpg / k.split * (nhwc(p) ? ceil_div(s.used, s.vec) : vectors);
  // The least bank conflicts among a few pitches.
  for (std::int64_t pad = 0; pad <= 8 * unit; pad += unit) {
    const std::int64_t pitch = nhwc(p) ? s.channels + pad : round_up(length, unit);
    if (nhwc(p) && pad > 0 && s.channels % unit != 0) break;  // pitches of odd vectors are what they are
    std::array<std::int64_t, 32> at{};
    for (std::int64_t i = 0; i < 32; ++i) {
      const std::int64_t half = i % k.split, thread = std::min<std::int64_t>(i / k.split, k.lanes * k.tiles - 1);
      const std::int64_t lane = nhwc(p) ? thread % k.lanes : thread / k.tiles;
      const std::int64_t tile = nhwc(p) ? thread / k.lanes : thread % k.tiles;
      const std::int64_t group = k.lanes < s.parts ? 0 : lane / s.parts, column = tile * k.cols * p.stride_w;
      const std::int64_t part = group * k.split + half, share = cpg / k.split;
      at[static_cast<std::size_t>(i)] =
          size(p) * (nhwc(p) ? column * pitch + part * share : part * (share * pitch + pad) + column);
    }
    const std::int64_t cost = shared_wavefronts(at, s.vec * size(p));
    if (pad > 0 && cost >= s.window_wavefronts) continue;
    s.window_wavefronts = cost;
    s.pad = pad;
    s.row = round_up(lines * pitch + (nhwc(p) ? 0 : s.groups * k.split * pad), unit);
  }
  s.copies = s.slide.fresh * lines * ceil_div(length, k.copy);
  s.turns = ceil_div(s.copies, k.threads);
  const std::int64_t outs = std::int64_t{k.lanes} * k.outs;
  s.bytes = s.slide.fresh * s.row * k.stages * size(p) + 4 * per_out(p) * (outs + dividing_power(k.outs, 4));
  return s;
}

/// Whether a strip's ends are so few of its steps that adding to all sums in them too costs less than branches.
/// Measured to pay where two threads share the channels; others then take fewer registers and keep fewer operands.
bool long_strips(const Knobs& k, const Shape& s) {
  return k.split > 1 && s.slide.slots > 2 && k.rows >= long_strip * (s.slide.slots - 1);
}

/// Registers that ptxas gets by with; an upper bound in practice, set against it (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem& p, const Knobs& k, const Shape& s) {
  const std::int64_t wide = p.needs_64bit_offsets() ? 24 : 0, split = k.split > 1 ? 4 : 0;
  const std::int64_t narrow = k.copy * size(p) < 4 ? 40 : 0;  // copies by way of registers
  const std::int64_t halves = size(p) == 2 ? 16 : 0;          // that become floats
  const std::int64_t weights = s.hold ? per_out(p) / k.split * k.outs : 8 * k.outs + 24;
  const std::int64_t window = std::min<std::int64_t>(s.used * s.together, 24);
  return weights + s.slide.slots * k.cols * k.outs + window + (s.turns <= 4 ? 3 * s.turns : 12) + k.outs + wide +
         split + narrow + halves + 32;
}
/// Blocks that those leave room for, of a multiprocessor's four parts with 512 registers a lane. ptxas is told, for it
/// takes more registers where it may; never fewer than 128 a thread, for small loops vary most.
std::int64_t blocks_beside(const ConvProblem& p, const Knobs& k, const Shape& s) {
  std::int64_t registers = std::max<std::int64_t>(registers_of(p, k, s), 128);
  if (long_strips(k, s) && registers > 168)
    registers = std::max<std::int64_t>(registers - 26, 168);  // no branches: it can
  registers = round_up(registers, 8);
  return std::clamp<std::int64_t>(512 / registers * 4 / (k.threads / 32), 1, 16);
}

struct Grid {
  std::int64_t lane_blocks, tiles, strips, outer;
  std::int64_t blocks(const ConvProblem& p) const { return lane_blocks * tiles * strips * slide_of(p).phases * outer; }
};
Grid grid_of(const ConvProblem& p, const Knobs& k) {
  const std::int64_t lanes = p.k / k.outs;
  return {.lane_blocks = nhwc(p) ? ceil_div(lanes, k.lanes) : 1,
          .tiles = ceil_div(p.q, std::int64_t{k.tiles} * k.cols),
          .strips = ceil_div(ceil_div(p.p, slide_of(p).phases), k.rows),
          .outer = nhwc(p) ? p.n : ceil_div(p.n * lanes, k.lanes)};
}

/// Elements of the widest copy: they divide what lies together in memory, and every tile and block starts on one.
int widest_copy(const ConvProblem& p, const Knobs& k) {
  if (nhwc(p)) {
    const std::int64_t channels =
        std::max<std::int64_t>(1, k.lanes / (p.multiplier() / k.outs)) * p.channels_per_group();
    return dividing_power(std::gcd(p.c, channels), max_vector(p));
  }
  const std::int64_t tile = std::int64_t{k.tiles} * k.cols;
  return dividing_power(tile < p.q ? std::gcd(p.w, tile * p.stride_w) : p.w, max_vector(p));
}

Refusal illegal(const ConvProblem& p, const Knobs& k) {
  if (k.outs > 8 || p.multiplier() % k.outs != 0) {
    return refuse("outs", k.outs, "at most 8, dividing k / groups = " + std::to_string(p.multiplier()));
  }
  const std::int64_t parts = p.multiplier() / k.outs;
  if (k.cols > 8) return refuse("cols", k.cols, "at most 8");
  if (k.split > 2 || k.outs % k.split != 0 || p.channels_per_group() % k.split != 0) {
    return refuse("split", k.split, "1, or 2 where outs and c / groups are even");
  }
  if (k.lanes > k.threads || k.tiles > k.threads || k.split * k.lanes * k.tiles > k.threads) {
    return refuse("tiles", k.tiles, "split * lanes * tiles must not exceed threads");
  }
  if (k.lanes % parts != 0 && parts % k.lanes != 0) {
    return refuse("lanes", k.lanes, "whole groups or an even share of one, of " + std::to_string(parts) + " lanes");
  }
  if (!power_of_two(k.copy) || widest_copy(p, k) % k.copy != 0) {
    return refuse("copy", k.copy, "a power of two, at most " + std::to_string(widest_copy(p, k)));
  }
  if (k.stages < 2 || k.stages > 8) return refuse("stages", k.stages, "2 to 8");
  return std::nullopt;
}

/// Of knobs that are legal.
Refusal too_large(const ConvProblem& p, const Knobs& k, const Shape& s) {
  if (s.bytes > portable_smem_limit) return refuse("lanes", k.lanes, "more than 96 KiB of shared memory");
  if (registers_of(p, k, s) > std::min(225, 65536 / k.threads - 4)) {
    return refuse("cols", k.cols, "too many registers with these outs and threads");
  }
  if (grid_of(p, k).blocks(p) > max_grid) {
    return refuse("rows", k.rows, "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal =
          wrong_knobs(config, {"outs", "cols", "split", "lanes", "tiles", "copy", "stages", "rows", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Knobs k = knobs_of(config);
  if (Refusal refusal = illegal(p, k)) return refusal;
  return too_large(p, k, shape_of(p, k));
}

/// A block and its strip as a tile of the model.
double cost_of(const ConvProblem& p, const Knobs& k, const Shape& s, const DeviceInfo& device) {
  const double warps = k.threads / 32.0, fresh = static_cast<double>(s.slide.fresh);
  const double rows = k.rows, steps = rows + static_cast<double>(s.slide.slots) - 1;
  const double line = static_cast<double>(s.channels * size(p));   // bytes of an input column
  const double taken = static_cast<double>(per_out(p)) / k.split;  // products of an output in a thread
  const double products = taken * k.outs * k.cols;
  const auto reads = static_cast<double>(s.window_reads);
  const double weights = s.hold ? 0.0 : taken * static_cast<double>(ceil_div(k.outs, 4));
  TileModel m;
  m.tiles = grid_of(p, k).blocks(p);
  m.smem = s.bytes;
  m.registers = 65536 / (k.threads * blocks_beside(p, k, s)) - 8;
  m.threads = k.threads;
  m.stages = k.stages;
  m.bytes_in = steps * fresh * line * static_cast<double>(s.wide);
  m.bytes_out = rows * static_cast<double>(s.tile * k.lanes * k.outs * size(p));
  m.border = std::max(1.0, m.bytes_in / (rows * static_cast<double>(s.slide.step * s.tile * p.stride_w) * line));
  // Where a warp's lanes are columns of one group, they read the same weights.
  const int vector = dividing_power(k.outs, 4), uniform = !nhwc(p) && k.split * k.tiles >= 16 ? 2 : 4;
  const double streamed = weights * std::min(vector, uniform);
  m.wavefronts = warps * (steps * fresh * reads * static_cast<double>(s.window_wavefronts) + rows * streamed) +
                 m.bytes_in / 64 + m.bytes_out / 128;
  m.fetch = steps * static_cast<double>(s.turns) * (s.turns <= 4 ? 4 : 16) + static_cast<double>(per_out(p) * k.outs);
  // Steps at a strip's ends, which add to some rows only, take more than their share; in long strips they add to all.
  const double ends = long_strips(k, s) ? 1.0 : 0.5;
  m.task = ((1 - ends) * rows + ends * steps) * products + rows * (weights + 4.0 * k.cols * k.outs) +
           steps * (fresh * reads + 30);
  m.tasks = k.threads / 32;
  // What a block waits for before its first row, which those beside it hide in part; and warps that wait for one
  // another where few are there to issue instead.
  const auto residents = static_cast<double>(resident_blocks(m, device));
  const double turns = std::ceil(static_cast<double>(m.tiles) / (residents * std::max(1, device.sm_count)));
  const double alone = 3 / (residents * warps) + (residents < 2 ? 0.1 : 0.0);
  return (cycles(m, device) + turns * 3500) * (1 + alone);
}

/// Rows of a strip that the model likes best.
double choose_rows(const ConvProblem& p, Knobs& k, const Shape& s, const DeviceInfo& device) {
  const std::int64_t height = ceil_div(p.p, s.slide.phases);
  double best = 0;
  int best_rows = 1;
  for (std::int64_t strips = 1; strips <= std::min<std::int64_t>(height, 64); ++strips) {
    k.rows = static_cast<int>(ceil_div(height, strips));
    if (ceil_div(height, k.rows) != strips) continue;
    const double cost = cost_of(p, k, s, device);
    if (best == 0 || cost < best) best = cost, best_rows = k.rows;
  }
  k.rows = best_rows;
  return best;
}

/// lanes x tiles of at most `threads` threads; `wide`: most of them along the row.
std::array<int, 2> block_of(const ConvProblem& p, int outs, int cols, int threads, bool wide) {
  const std::int64_t parts = p.multiplier() / outs, row = ceil_div(p.q, cols);
  const std::int64_t all = (nhwc(p) ? 1 : std::max<std::int64_t>(1, p.n)) * (p.k / outs);
  std::int64_t lanes =
      std::min<std::int64_t>(nhwc(p) ? (wide ? 16 : 32) : threads / std::min<std::int64_t>(row, threads), all);
  if (nhwc(p) && parts <= 64) lanes = std::max(lanes, std::min<std::int64_t>(round_up(lanes, parts), threads));
  if (!nhwc(p) && wide) lanes = std::min<std::int64_t>(all, 2 * lanes);
  if (lanes >= parts) {
    lanes = lanes / parts * parts;
  } else {
    while (parts % lanes != 0) --lanes;
  }
  const std::int64_t at_most = std::max<std::int64_t>(1, threads / lanes);
  return {static_cast<int>(lanes), static_cast<int>(ceil_div(row, ceil_div(row, at_most)))};
}

/// The least that a block can be.
Knobs smallest(const ConvProblem& p) {
  const std::int64_t rows = std::min<std::int64_t>(ceil_div(p.p, slide_of(p).phases), 1 << 20);
  return {1, 1, 1, 1, 1, 1, 2, static_cast<int>(rows), 32};
}

std::vector<Knobs> search(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<std::pair<double, Knobs>> found;
  const auto consider = [&](Knobs k) {
    if (illegal(p, k)) return;
    Shape s = shape_of(p, k);
    while (k.stages > 2 && s.bytes > portable_smem_limit / 2) --k.stages, s = shape_of(p, k);
    const double cost = choose_rows(p, k, s, device);
    if (!too_large(p, k, s)) found.emplace_back(cost, k);
  };
  for (const int outs : {1, 2, 3, 4, 5, 6, 7, 8}) {
    for (const int cols : {4, 8, 7, 2, 1}) {
      if (p.multiplier() % outs != 0 || cols >= 2 * covering_power(p.q, 8)) continue;
      if (cols == 7 && !nhwc(p) && p.q != 7) continue;  // no vector is stored
      for (const int threads : {128, 256, 64}) {
        for (const int form : {0, 1, 2, 3}) {
          const int split = 1 + form / 2;
          const auto [lanes, tiles] = block_of(p, outs, cols, threads / split, form % 2 != 0);
          Knobs k = {outs, cols, split, lanes, tiles, 1, 4, 1, static_cast<int>(round_up(split * lanes * tiles, 32))};
          k.copy = widest_copy(p, k);
          consider(k);
          if (nhwc(p) || k.copy * size(p) < 16) continue;
          k.copy /= 2;  // windows may then start nearer to a vector
          consider(k);
        }
      }
    }
  }
  return fastest_first(std::move(found));
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> configs;
  std::vector<std::array<int, 3>> kinds;          // of a thread's work, at most two of each: others differ less
  const std::size_t most = size(p) == 4 ? 6 : 3;  // 16-bit calls are the matrix unit's, all but a few
  for (const Knobs& knobs : search(p, device)) {
    Config config = config_of(knobs);
    const std::array<int, 3> kind = {knobs.outs, knobs.cols, knobs.split};
    if (std::count(kinds.begin(), kinds.end(), kind) == 2) continue;
    if (std::find(configs.begin(), configs.end(), config) != configs.end()) continue;
    kinds.push_back(kind);
    configs.push_back(std::move(config));
    if (configs.size() == most) break;
  }
  if (configs.empty()) configs.push_back(config_of(smallest(p)));  // it fits, see can_run
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.depthwise() && p.multiplier() == 1) {
    return refuse("k / groups", 1, "at least 2 where c / groups is 1: plain depthwise belongs to the dw schedules");
  }
  if (p.channels_per_group() > most_channels) return refuse("c / groups", p.channels_per_group(), "at most 8");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.taps() > most_taps) return refuse("r * s", p.taps(), "at most 81 taps");
  if (p.r > most_rows) return refuse("r", p.r, "at most 16 kernel rows: an input row is added to the sums of all");
  if (const Slide slide = slide_of(p); slide.step * slide.dil_h > most_down) {
    return refuse("dil_h", p.dil_h, "output rows of one phase are too far apart with this stride_h");
  }
  if (too_large(p, smallest(p), shape_of(p, smallest(p))) && search(p, device).empty()) {
    return refuse("(s - 1) * dil_w", (p.s - 1) * p.dil_w, "no tile fits in registers, shared memory and a grid");
  }
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Knobs k = knobs_of(config);
  const Shape s = shape_of(p, k);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  const int store =
      nhwc(p) ? dividing_power(k.outs / k.split, max_vector(p)) : dividing_power(std::gcd(p.q, k.cols), max_vector(p));
  constants.insert(constants.end(), {{"PHASES", s.slide.phases},
                                     {"STEP", s.slide.step},
                                     {"OUTS", k.outs},
                                     {"COLS", k.cols},
                                     {"SPLIT", k.split},
                                     {"LANES", k.lanes},
                                     {"TILES", k.tiles},
                                     {"STAGES", k.stages},
                                     {"COPY", k.copy},
                                     {"LEAD", s.lead},
                                     {"PAD", s.pad},
                                     {"TOGETHER", s.together},
                                     {"HOLD", s.hold ? 1 : 0},
                                     {"ROLL", s.roll ? 1 : 0},
                                     {"LONG", long_strips(k, s) ? 1 : 0},
                                     {"STORE", store},
                                     {"EVEN", p.q % k.cols == 0 ? 1 : 0}});
  KernelSpec spec = make_spec(grp_fma, std::move(constants), k.threads);
  spec.min_blocks = static_cast<int>(blocks_beside(p, k, s));
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Knobs k = knobs_of(config);
  return {.grid = grid_of(p, k).blocks(p), .block = k.threads, .dynamic_smem = static_cast<int>(shape_of(p, k).bytes)};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Knobs k = knobs_of(config);
  const Grid grid = grid_of(p, k);
  out = common_params(p);
  out.work = grid.blocks(p) * k.threads;
  out.aux[0] = k.rows;
  out.div[0] = fast_div(nhwc(p) ? grid.lane_blocks : p.k / k.outs);
  out.div[1] = fast_div(grid.tiles);
  out.div[2] = fast_div(grid.strips);
  out.div[3] = fast_div(slide_of(p).phases);
  out.div[4] = fast_div(p.k);
}

}  // namespace

constinit const Schedule grp_fma{
    .name = "grp_fma",
    .source = "grp_fma.cuh",
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
