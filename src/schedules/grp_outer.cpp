// grp_outer (kernels/grp_outer.cuh): grouped fp32 by outer products in registers. Knobs: outs output channels of one
// group, rows x cols places of a thread; lanes threads along the outputs, high x wide threads over the block's tile;
// threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr std::int64_t most_taps = 81, most_channels = 16, most_sums = 64, most_threads = 512;

struct Knobs {
  int outs, rows, cols, lanes, high, wide, threads;
  friend bool operator==(const Knobs&, const Knobs&) = default;
};
Knobs knobs_of(const Config& c) {
  return {c.get("outs"), c.get("rows"), c.get("cols"), c.get("lanes"), c.get("high"), c.get("wide"), c.get("threads")};
}
Config config_of(const Knobs& k) {
  return {{{"outs", k.outs},
           {"rows", k.rows},
           {"cols", k.cols},
           {"lanes", k.lanes},
           {"high", k.high},
           {"wide", k.wide},
           {"threads", k.threads}}};
}

/// What follows from a configuration; mirrors GrpOuter of the kernel.
struct Shape {
  std::int64_t parts, groups, channels, tall, broad, deep, length;
  std::int64_t copy, lead, far, vec, loads;  ///< elements of a copy; from one thread's columns to the next's; of a read
                                             ///< of a segment; reads of a row of one
  std::int64_t pitch, plane, group, weights;  ///< floats apart in shared memory
  std::int64_t lane_blocks, column_blocks, row_blocks;
  std::int64_t store, bytes;
  std::int64_t read_wavefronts;  ///< of a warp's read of a vector
  bool down, turn;
};

/// Threads of a block as they lie over its tile: where each reads its segment.
std::array<std::int64_t, 32> reads_of_warp(const ConvProblem& p, const Knobs& k, const Shape& s, int first) {
  std::array<std::int64_t, 32> at{};
  const std::int64_t tiles = std::int64_t{k.high} * k.wide, last = k.lanes * tiles - 1;
  for (std::int64_t i = 0; i < 32; ++i) {
    const std::int64_t thread = std::min(first + i, last), lane = thread / tiles, tile = thread % tiles;
    const std::int64_t down = s.down ? tile % k.high : tile / k.wide, along = s.down ? tile / k.high : tile % k.wide;
    const std::int64_t group = k.lanes < s.parts ? 0 : lane / s.parts;
    at[static_cast<std::size_t>(i)] = 4 * (group * s.group + down * k.rows * p.stride_h * s.pitch + along * s.far);
  }
  return at;
}

/// Smallest v >= at_least with v % 32 = rest, and v a multiple of 4 where rest is.
std::int64_t beyond(std::int64_t at_least, std::int64_t rest) { return at_least + ((rest - at_least) % 32 + 32) % 32; }

/// Planes and groups apart so that a warp's stores of NHWC pixels are in different banks; rows so that its reads are,
/// as far as a few pitches and both orders of threads allow.
void lay_out(const ConvProblem& p, const Knobs& k, Shape& s) {
  const std::int64_t unit = std::max<std::int64_t>(s.vec, nhwc(p) ? 1 : s.copy);
  const std::int64_t read_end = (k.wide - 1) * s.far + s.lead / s.vec * s.vec + s.loads * s.vec;
  const std::int64_t near = k.cols * p.stride_w, held = (s.length - 1) / near * s.far + (s.length - 1) % near + 1;
  const std::int64_t least = round_up(std::max(nhwc(p) ? held : round_up(s.length, s.copy), read_end), unit);
  const std::int64_t vectors = s.channels / s.copy, across = nhwc(p) ? 32 / dividing_power(vectors, 8) : 4;
  std::int64_t best = 0;  // wavefronts times the room that they take
  for (const bool down : {false, true}) {
    if (down && (s.turn || k.high == 1 || k.wide == 1)) continue;
    for (std::int64_t pad = 0; pad < 8 * unit; pad += unit) {
      Shape t = s;
      t.down = down;
      t.pitch = least + pad;
      t.plane = round_up(s.deep * t.pitch, 4);
      if (nhwc(p) && t.plane % 8 == 0) t.plane += 4;
      t.group = beyond(p.channels_per_group() * t.plane, across);
      t.read_wavefronts = 0;
      for (const int warp : {0, k.threads / 64}) {
        t.read_wavefronts += shared_wavefronts(reads_of_warp(p, k, t, warp * 32), t.vec * 4);
      }
      const std::int64_t score = t.read_wavefronts * t.pitch;
      if (best == 0 || score < best) s = t, best = score;
      if (pad == 0 && t.read_wavefronts <= 2 * t.vec) return;  // no better one exists
    }
  }
}

Shape shape_of(const ConvProblem& p, const Knobs& k) {
  Shape s{};
  const std::int64_t cpg = p.channels_per_group(), lanes = p.k / k.outs;
  s.parts = p.multiplier() / k.outs;
  s.groups = std::max<std::int64_t>(1, k.lanes / s.parts);
  s.channels = s.groups * cpg;
  s.tall = std::int64_t{k.high} * k.rows;
  s.broad = std::int64_t{k.wide} * k.cols;
  s.lane_blocks = ceil_div(lanes, k.lanes);
  s.column_blocks = ceil_div(p.q, s.broad);
  s.row_blocks = ceil_div(p.p, s.tall);
  if (nhwc(p)) {
    s.copy = dividing_power(std::gcd(p.c, cpg), max_vector(p));
  } else {
    s.copy = dividing_power(s.column_blocks > 1 ? std::gcd(p.w, s.broad * p.stride_w) : p.w, max_vector(p));
    s.lead = ((-p.pad_left) % s.copy + s.copy) % s.copy;
  }
  s.deep = (s.tall - 1) * p.stride_h + p.effective_r();
  s.length = s.lead + (s.broad - 1) * p.stride_w + p.effective_s();
  const std::int64_t near = k.cols * p.stride_w, span = near - p.stride_w + p.effective_s();
  s.far = nhwc(p) ? round_up(near, 4) : near;
  s.vec = dividing_power(s.far, 4);
  s.loads = (s.lead % s.vec + (span - 1) / near * s.far + (span - 1) % near) / s.vec + 1;
  s.weights = beyond(per_out(p) * k.outs + k.outs, 4);  // what is read ahead of the last tap is nobody's
  const int vector = max_vector(p);
  const int direct = dividing_power(std::gcd(p.q, k.cols), vector);
  s.store = nhwc(p) ? dividing_power(k.outs, vector) : direct;
  if (!nhwc(p) && direct < 4) {  // by way of shared memory, where that makes a thread's stores vectors or neighbours
    const std::int64_t line = s.broad == p.q ? std::gcd(s.tall * s.broad, p.p * p.q) : std::gcd(s.broad, p.q);
    const int turned = dividing_power(line, vector);
    s.turn = s.tall * s.broad / turned <= k.threads;
    if (s.turn) s.store = turned;
  }
  lay_out(p, k, s);
  const std::int64_t planes = s.groups * s.group, outputs = std::int64_t{k.lanes} * k.outs * s.tall * s.broad;
  s.bytes = 4 * std::max(k.lanes * s.weights + planes, s.turn ? outputs : 0);
  return s;
}

/// Registers that ptxas gets by with; an upper bound in practice (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem& p, const Knobs& k, const Shape& s) {
  const std::int64_t segment = k.rows * std::min(s.loads * s.vec, (k.cols - 1) * p.stride_w + p.effective_s() + 2);
  const std::int64_t sums = std::int64_t{k.rows} * k.cols * k.outs;
  return sums + 2 * segment + 2 * k.outs + 24 + (p.needs_64bit_offsets() ? 8 : 0);
}
/// Blocks that those leave room for, of 65536 registers. ptxas is told; never fewer than 128 a thread.
std::int64_t blocks_beside(const ConvProblem& p, const Knobs& k, const Shape& s) {
  const std::int64_t registers = round_up(std::max<std::int64_t>(registers_of(p, k, s), 128), 8);
  return std::clamp<std::int64_t>(65536 / (registers * k.threads), 1, 16);
}
std::int64_t blocks_of(const ConvProblem& p, const Shape& s) {
  return s.lane_blocks * s.column_blocks * s.row_blocks * p.n;
}

Refusal illegal(const ConvProblem& p, const Knobs& k) {
  if ((k.outs != 4 && k.outs != 8) || p.multiplier() % k.outs != 0) {
    return refuse("outs", k.outs, "4 or 8, dividing k / groups = " + std::to_string(p.multiplier()));
  }
  if (k.rows > 8 || k.cols > 16 || k.rows * k.cols * k.outs > most_sums) {
    return refuse("cols", k.cols, "rows * cols * outs must not exceed 64");
  }
  if (k.threads > most_threads) return refuse("threads", k.threads, "at most 512");
  if (k.lanes > k.threads || k.high > k.threads || k.wide > k.threads ||
      std::int64_t{k.lanes} * k.high * k.wide > k.threads) {
    return refuse("lanes", k.lanes, "lanes * high * wide must not exceed threads");
  }
  const std::int64_t parts = p.multiplier() / k.outs;
  if (k.lanes % parts != 0 && parts % k.lanes != 0) {
    return refuse("lanes", k.lanes, "whole groups or an even share of one, of " + std::to_string(parts) + " lanes");
  }
  return std::nullopt;
}

/// Of knobs that are legal.
Refusal too_large(const ConvProblem& p, const Knobs& k, const Shape& s) {
  if (s.bytes > portable_smem_limit) return refuse("lanes", k.lanes, "more than 96 KiB of shared memory");
  if (!nhwc(p) && ceil_div(s.length, s.copy) > k.threads) {
    return refuse("threads", k.threads, "a row of the tile is copied in one go");
  }
  if (registers_of(p, k, s) > std::min<std::int64_t>(225, 65536 / k.threads - 4)) {
    return refuse("cols", k.cols, "too many registers with these outs and threads");
  }
  if (blocks_of(p, s) > max_grid) return refuse("high", k.high, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"outs", "rows", "cols", "lanes", "high", "wide", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Knobs k = knobs_of(config);
  if (Refusal refusal = illegal(p, k)) return refusal;
  return too_large(p, k, shape_of(p, k));
}

/// Cycles, in the measure of an H200; counted in ptxas's code, not measured. A block fetches, waits, adds and stores;
/// those beside it fill its waits.
double cost_of(const ConvProblem& p, const Knobs& k, const Shape& s, const DeviceInfo& device) {
  constexpr double memory_rate = 19, cache_rate = 36, latency = 2500, start = 2500;
  const double warps = k.threads / 32.0, threads = k.threads;
  const double sums = static_cast<double>(k.rows) * k.cols * k.outs;
  const auto pairs = static_cast<double>(p.r * p.channels_per_group()), taps = static_cast<double>(per_out(p));
  const auto reads = static_cast<double>(k.rows * s.loads);
  const double inputs = static_cast<double>(s.channels * s.deep * s.length), fill = inputs / threads;
  const double weights = static_cast<double>(k.lanes * s.weights) / threads;
  // Instructions of a warp.
  const double add = taps * (sums + k.outs / 4.0 + 1) + pairs * (reads + 3);
  const double fetch =
      fill * (nhwc(p) ? 0.8 + 4.8 / static_cast<double>(s.copy) : 6.0 / static_cast<double>(s.copy)) + 5 * weights;
  const double store = sums * (s.turn ? 2 + 4.0 / static_cast<double>(s.store) : nhwc(p) ? 0.6 : 1.6);
  const double issue = warps * (180 + add + fetch + store) / 4;
  const double read_wavefronts = static_cast<double>(s.read_wavefronts) / 2;
  const double local = warps * (pairs * reads * read_wavefronts + taps * k.outs / 4 * 2 + (s.turn ? 2 * sums : 0)) +
                       inputs / 16 + static_cast<double>(k.lanes * s.weights) / 8;
  // A pixel's channels of the block are what lies together in memory (NHWC).
  const double piece = nhwc(p) ? 4.0 * static_cast<double>(s.channels) : 128.0;
  const double scattered = piece >= 128 ? 1.0 : piece >= 64 ? 1.15 : 1.5;
  const double out = 4.0 * static_cast<double>(k.lanes * k.outs * s.tall * s.broad);
  const double fresh = 4.0 * static_cast<double>(s.channels * s.tall * p.stride_h * s.broad * p.stride_w);
  const double memory =
      scattered * std::max((std::min(fresh, 4 * inputs) + out) / memory_rate, (4 * inputs + out) / cache_rate);
  TileModel m;
  m.smem = s.bytes;
  m.registers = 65536 / (k.threads * blocks_beside(p, k, s)) - 8;
  m.threads = k.threads;
  const auto multiprocessors = static_cast<double>(std::max(1, device.sm_count));
  const double blocks = static_cast<double>(blocks_of(p, s)), most = std::ceil(blocks / multiprocessors);
  const double beside = std::min(static_cast<double>(resident_blocks(m, device)), most);
  // A multiprocessor's four parts have as many warps as the fullest; few of them do not fill each other's waits.
  const double resident = beside * warps, parts = std::ceil(resident / 4) * 4;
  const double filled = resident / (resident + 1.5) * (0.5 + 0.5 * resident / parts);
  const double block = std::max({issue / filled, local / 0.85, memory}) + 0.15 * memory;
  const double alone = issue / (warps / (warps + 1.5)) * (std::ceil(warps / 4) * 4 / warps);
  // The last round is rarely full: blocks left alone go faster, but not as fast as their share.
  return start + latency + (most - 1) * block + 0.5 * (block + std::max(alone, block)) +
         (beside < 2 ? latency * (most - 1) : 0.0);
}

/// A block of about `threads` threads with this tile of a thread, `high` tiles down or as many as there are.
Knobs block_of(const ConvProblem& p, Knobs k, int threads, std::int64_t high) {
  const std::int64_t parts = p.multiplier() / k.outs, lanes = p.k / k.outs;
  const std::int64_t row = ceil_div(p.q, k.cols), column = ceil_div(p.p, k.rows);
  const std::int64_t wide = ceil_div(row, ceil_div(row, threads));
  const std::int64_t tall =
      std::clamp<std::int64_t>(std::min(high, column), 1, std::max<std::int64_t>(1, threads / wide));
  std::int64_t most = std::clamp<std::int64_t>(threads / (wide * tall), 1, lanes);
  if (most >= parts) {
    most = most / parts * parts;
    const std::int64_t groups = lanes / parts, share = ceil_div(groups, ceil_div(groups, most / parts));
    most = share * parts;  // the last block's as many as the others', or nearly
  } else {
    while (parts % most != 0) --most;
  }
  k.lanes = static_cast<int>(most);
  k.high = static_cast<int>(tall);
  k.wide = static_cast<int>(wide);
  k.threads = static_cast<int>(round_up(most * tall * wide, 32));
  return k;
}

/// The least that a block can be.
Knobs smallest() { return {4, 1, 1, 1, 1, 1, 32}; }

std::vector<Knobs> search(const ConvProblem& p, const DeviceInfo& device) {
  constexpr std::array<std::array<int, 3>, 15> tiles = {{{8, 1, 8},
                                                         {8, 1, 7},
                                                         {8, 2, 4},
                                                         {8, 1, 4},
                                                         {8, 4, 2},
                                                         {8, 2, 2},
                                                         {8, 1, 1},
                                                         {4, 2, 8},
                                                         {4, 2, 7},
                                                         {4, 1, 14},
                                                         {4, 1, 8},
                                                         {4, 1, 7},
                                                         {4, 2, 4},
                                                         {4, 1, 4},
                                                         {4, 1, 1}}};
  std::vector<std::pair<double, Knobs>> found;
  std::vector<Knobs> seen;
  for (const auto& [outs, rows, cols] : tiles) {
    if (p.multiplier() % outs != 0 || cols >= 2 * covering_power(p.q, 8) || (rows > 1 && rows > p.p)) continue;
    for (const int threads : {64, 128, 192, 224, 256}) {
      for (const int high : {1, 2, 4, 7, 8, 14, 16, 28}) {
        const Knobs k = block_of(p, {outs, rows, cols, 1, 1, 1, 32}, threads, high);
        if (illegal(p, k) || std::find(seen.begin(), seen.end(), k) != seen.end()) continue;
        seen.push_back(k);
        const Shape s = shape_of(p, k);
        if (!too_large(p, k, s)) found.emplace_back(cost_of(p, k, s, device), k);
      }
    }
  }
  return fastest_first(std::move(found));
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> configs;
  std::vector<std::array<int, 3>> kinds;  // of a thread's work, at most two of each: others differ less
  for (const Knobs& knobs : search(p, device)) {
    const std::array<int, 3> kind = {knobs.outs, knobs.rows, knobs.cols};
    if (std::count(kinds.begin(), kinds.end(), kind) == 2) continue;
    kinds.push_back(kind);
    configs.push_back(config_of(knobs));
    if (configs.size() == 6) break;
  }
  if (configs.empty()) configs.push_back(config_of(smallest()));  // it fits, see can_run
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (p.dtype != DType::f32) {
    return std::string(p.dtype == DType::f16 ? "dt = f16" : "dt = bf16") + ": f32 only; 16 bits are the matrix unit's";
  }
  const std::int64_t cpg = p.channels_per_group();
  if (cpg < 2 || cpg > most_channels) return refuse("c / groups", cpg, "2 to 16");
  if (p.multiplier() % 4 != 0) return refuse("k / groups", p.multiplier(), "a multiple of 4");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.taps() > most_taps) return refuse("r * s", p.taps(), "at most 81 taps");
  if (Refusal refusal = image_too_large(p)) return refusal;
  if (too_large(p, smallest(), shape_of(p, smallest()))) {
    const std::int64_t down = (p.r - 1) * p.dil_h, along = (p.s - 1) * p.dil_w;
    return refuse(down > along ? "(r - 1) * dil_h" : "(s - 1) * dil_w", std::max(down, along),
                  "no tile fits in registers, shared memory and a grid");
  }
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Knobs k = knobs_of(config);
  const Shape s = shape_of(p, k);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  add_sizes(constants, p);
  constants.insert(constants.end(), {{"OUTS", k.outs},
                                     {"ROWS", k.rows},
                                     {"COLS", k.cols},
                                     {"LANES", k.lanes},
                                     {"HIGH", k.high},
                                     {"WIDE", k.wide},
                                     {"DOWN", s.down ? 1 : 0},
                                     {"COPY", s.copy},
                                     {"LEAD", s.lead},
                                     {"PITCH", s.pitch},
                                     {"PLANE", s.plane},
                                     {"GROUP", s.group},
                                     {"WEIGHTS", s.weights},
                                     {"STORE", s.store},
                                     {"TURN", s.turn ? 1 : 0}});
  KernelSpec spec = make_spec(grp_outer, std::move(constants), k.threads);
  spec.min_blocks = static_cast<int>(blocks_beside(p, k, s));
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Knobs k = knobs_of(config);
  const Shape s = shape_of(p, k);
  return {.grid = blocks_of(p, s), .block = k.threads, .dynamic_smem = static_cast<int>(s.bytes)};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Knobs k = knobs_of(config);
  const Shape s = shape_of(p, k);
  out = common_params(p);
  out.work = blocks_of(p, s) * k.threads;
  out.div[0] = fast_div(s.lane_blocks);
  out.div[1] = fast_div(s.column_blocks);
  out.div[2] = fast_div(s.row_blocks);
  out.aux[0] = 0;
}

}  // namespace

constinit const Schedule grp_outer{
    .name = "grp_outer",
    .source = "grp_outer.cuh",
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
