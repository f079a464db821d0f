// mult_tf32 (kernels/mult_tf32.cuh): fp32, few input channels a group and many outputs of each, on the matrix unit, in
// halves of numbers. Knobs: out_units of 8 output channels a block, units of those a warp; part columns of a place, 2 *
// down rows of them at once; tiles of 8 places side by side and rows of them one below the other; words of a number in
// shared memory (2: its parts), stages of buffering, blocks of a chunk of outputs (a run-time number: it costs no
// compilation).
#include <algorithm>
#include <cmath>
#include <utility>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr std::int64_t most_smem = 227 * 1024;  // of a block, on the devices that have most
constexpr std::int64_t most_registers = 232;    // by the estimate; ptxas has 255
constexpr std::int64_t least_taps = 24;         // times channels; below, memory is the limit, whatever multiplies
constexpr std::int64_t most_taps = 448;         // beyond, the unrolled products are too much code

struct Shape {
  int out_units = 1, units = 1, part = 1, down = 1, tiles = 1, rows = 1, words = 1, stages = 1, threads = 32;
};
Shape shape_of(const Config& c) {
  return {c.get("out_units"), c.get("units"), c.get("part"),   c.get("down"),   c.get("tiles"),
          c.get("rows"),      c.get("words"), c.get("stages"), c.get("threads")};
}

// The kernel's own constants, by the same names in lower case.
std::int64_t per_group(const ConvProblem& p) { return p.multiplier() / 8; }
std::int64_t units_in_all(const ConvProblem& p) { return p.k / 8; }
std::int64_t channels(const ConvProblem& p, const Shape& s) {
  return p.channels_per_group() * std::max<std::int64_t>(1, s.out_units / per_group(p));
}
std::int64_t steps(const ConvProblem& p) { return ceil_div(per_out(p), 8); }
std::int64_t dil_w(const ConvProblem& p) { return p.s == 1 ? 1 : p.dil_w; }
std::int64_t high(const Shape& s) { return std::int64_t{2} * s.down * s.rows; }
std::int64_t wide(const Shape& s) { return std::int64_t{8} * s.part * s.tiles; }
std::int64_t rows_in(const ConvProblem& p, const Shape& s) { return (high(s) - 1) * p.stride_h + p.effective_r(); }
std::int64_t columns_in(const ConvProblem& p, const Shape& s) { return (wide(s) - 1) * p.stride_w + p.effective_s(); }
std::int64_t pitch(const Shape& s, std::int64_t size, std::int64_t run) {
  const std::int64_t least = s.part == 4 ? 1 : 7 * s.part + 1, most = s.part == 4 ? 1 : 33 - least;
  while ((size - run) % 32 < least || (size - run) % 32 > most) ++size;
  return size;
}
std::int64_t line(const ConvProblem& p, const Shape& s) {
  const std::int64_t columns = columns_in(p, s), phase = ceil_div(columns, p.stride_w), dil = dil_w(p);
  if (p.stride_w == 1) return pitch(s, columns, (p.s - 1) * dil);
  if (p.stride_w != 2 || dil % 2 == 0) return p.stride_w * phase;
  const std::int64_t even = (p.s + 1) / 2;
  return 2 * pitch(s, phase + 1, (even - 1) * dil - dil / 2) + dil - 1 + (p.s - 2 * even) * dil;
}
std::int64_t buffer_bytes(const ConvProblem& p, const Shape& s) {
  return 4 * s.words * channels(p, s) * rows_in(p, s) * line(p, s);
}
std::int64_t weight_bytes(const ConvProblem& p, const Shape& s) { return s.out_units * steps(p) * 512; }
/// Copies of a thread for a tile.
std::int64_t copies(const ConvProblem& p, const Shape& s) {
  const std::int64_t pieces = columns_in(p, s) * (nhwc(p) ? channels(p, s) : 1);
  const std::int64_t lines = rows_in(p, s) * (nhwc(p) ? 1 : channels(p, s));
  return ceil_div(pieces, s.threads) * ceil_div(lines, std::max<std::int64_t>(1, s.threads / pieces));
}
std::int64_t smem_bytes(const ConvProblem& p, const Shape& s) {
  return weight_bytes(p, s) + s.stages * buffer_bytes(p, s) + 4 * s.threads * copies(p, s);
}

/// Sums, both parts of a fragment of A for each place and of B for each unit, and about 56 besides; more where words
/// lie apart in many ways.
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t places = std::int64_t{s.part} * s.down;
  const bool many = p.dil_h > 1 && p.r > 1 && p.channels_per_group() > 1;
  const std::int64_t own = 4 * places * s.units + 8 * places + 4 * s.units + (many ? 68 : 56);
  return std::max<std::int64_t>(112, own) + (p.needs_64bit_offsets() ? 24 : 0);
}
/// What the compiler is held to; each of four schedulers has a quarter of the registers.
std::int64_t blocks_beside(const ConvProblem& p, const Shape& s) {
  const std::int64_t warps = 4 * (512 / round_up(registers_of(p, s), 8));
  return std::clamp<std::int64_t>(warps / (s.threads / 32), 1, 16);
}

StreamedWork work_of(const ConvProblem& p, const Shape& s) {
  return streamed_work(p, ceil_div(units_in_all(p), s.out_units), wide(s), high(s));
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.dtype != DType::f32) {
    return std::string(p.dtype == DType::f16 ? "dt = f16" : "dt = bf16") + ": f32 only; 16 bits need no halves";
  }
  if (p.channels_per_group() > 8) return refuse("c / groups", p.channels_per_group(), "at most 8");
  if (p.multiplier() % 8 != 0) return refuse("k / groups", p.multiplier(), "a multiple of 8: a fragment's outputs");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (per_out(p) < least_taps || per_out(p) > most_taps) {
    return refuse("r * s * c / groups", per_out(p), "24 to 448 products of an output");
  }
  if (smem_bytes(p, {}) > std::max(device.smem_optin, static_smem_limit)) {
    return refuse("shared memory", smem_bytes(p, {}),
                  "bytes for a tile of this dilation and stride: the device has fewer");
  }
  if (units_in_all(p) > max_grid) return refuse("k", p.k, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

Refusal illegal(const ConvProblem& p, const Shape& s) {
  const std::int64_t per = per_group(p);
  if (s.units > 8 || per % s.units != 0) {
    return refuse("units", s.units, "at most 8; divides a group's " + std::to_string(per));
  }
  if (s.out_units > 64 || s.out_units % s.units != 0 || (s.out_units % per != 0 && per % s.out_units != 0)) {
    return refuse("out_units", s.out_units, "at most 64, a multiple of units, and whole groups or an even part of one");
  }
  if (!power_of_two(s.part) || s.part > 4) return refuse("part", s.part, "1, 2 or 4");
  if (s.down > 8) return refuse("down", s.down, "at most 8");
  if (s.tiles > 16) return refuse("tiles", s.tiles, "at most 16");
  if (s.rows > 16) return refuse("rows", s.rows, "at most 16");
  if (s.words > 2) return refuse("words", s.words, "1 or 2");
  if (s.stages > 2) return refuse("stages", s.stages, "1 or 2 tiles in shared memory");
  if (s.threads / 32 % (s.out_units / s.units) != 0) {
    return refuse("threads", s.threads, "its warps are a multiple of out_units / units");
  }
  if (smem_bytes(p, s) > most_smem) return refuse("tiles", s.tiles, "the tile exceeds 227 KiB of shared memory");
  if (registers_of(p, s) > std::min<std::int64_t>(most_registers, 65536 / s.threads / 8 * 8)) {
    return refuse("units", s.units, "too many registers with these threads");
  }
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(
          config, {"out_units", "units", "part", "down", "tiles", "rows", "words", "stages", "blocks", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Shape s = shape_of(config);
  if (Refusal refusal = illegal(p, s)) return refusal;
  if (work_of(p, s).chunks * config.get("blocks") > max_grid) {
    return refuse("blocks", config.get("blocks"), "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

/// What bounds the blocks beside each other; they all read a tile ahead.
TileModel model_of(const ConvProblem& p, const Shape& s) {
  TileModel m;
  m.smem = smem_bytes(p, s);
  m.registers = 65536 / (blocks_beside(p, s) * s.threads) / 8 * 8 - 8;
  m.threads = s.threads;
  m.stages = 2;
  return m;
}
/// Blocks of a chunk: equally many tiles for all; 0 where a second buffer would stay empty.
int blocks_of(const ConvProblem& p, const Shape& s, const DeviceInfo& device) {
  const StreamedWork work = work_of(p, s);
  if (const auto blocks = streaming_blocks(work, model_of(p, s), device)) return *blocks;
  return s.stages == 2 ? 0 : static_cast<int>(std::min(work.tiles, (max_grid - 1) / work.chunks));  // a tile each
}

/// Cycles of the whole problem, about as an H200 takes them.
double cycles(const ConvProblem& p, const Shape& s, int blocks, const DeviceInfo& device) {
  const StreamedWork work = work_of(p, s);
  const double multiprocessors = std::max(1, device.sm_count),
               turns = static_cast<double>(ceil_div(work.tiles, blocks));
  const double all = static_cast<double>(work.chunks) * std::min<double>(blocks, static_cast<double>(work.tiles));
  const double beside =
      std::min(static_cast<double>(resident_blocks(model_of(p, s), device)), std::ceil(all / multiprocessors));
  const double waves = std::ceil(all / (beside * multiprocessors));
  const double places = s.part * s.down, units = s.units, warps = s.threads / 32.0;
  // A step's cycles of a scheduler: products take 6.1 and nothing else is issued meanwhile; of shared memory:
  // wavefronts.
  const double issued = places * units * 3 * 6.1 + places * (s.words == 2 ? 8 : 12) + units;
  const double read = 4 * (4 * s.words * places + 4 * units);
  const double stores = nhwc(p) ? std::min(4, 2 * s.units) : s.part;  // elements of one
  const double task = static_cast<double>(steps(p)) * std::cbrt(issued * issued * issued + read * read * read) + 130 +
                      places * units * (14 + 20 / stores);
  const int shares = s.out_units / s.units;  // of a block's outputs, a warp each
  const double tasks = shares * s.rows * s.tiles;
  const double fetch = 60 + 30 * static_cast<double>(copies(p, s));  // of a warp
  const double bytes = 4.0 * static_cast<double>(wide(s) * high(s) * 8 * s.out_units);
  const double together = beside * std::max((tasks * task + warps * fetch) / 4, bytes / 19);
  const double alone = std::ceil(tasks / warps) * task * std::max(1.0, warps / 4) + fetch + 800;
  // Schedulers have equally many warps only where blocks are of whole fours.
  const double uneven = 0.25 * (4 * std::ceil(warps / 4) / warps - 1);
  const double few = std::max(0.0, 1 - beside * warps / 12), apart = beside > 2 ? 0 : beside > 1 ? 0.04 : 0.08;
  const double weights = 60 * static_cast<double>(s.out_units * steps(p)) / warps;
  return waves * (2500 + weights + turns * std::max(together, alone) * (1 + apart + uneven + 0.5 * few * few));
}

/// Tiles of a warp's share and how many warps divide a block's: those that were fast on an H200, and their like.
struct Kind {
  int part, down, tiles, rows, split;
};
constexpr Kind kinds[] = {{4, 1, 1, 8, 4}, {4, 1, 1, 4, 4}, {4, 1, 1, 7, 7}, {4, 1, 1, 14, 7}, {4, 1, 2, 4, 4},
                          {2, 2, 1, 4, 4}, {2, 2, 2, 4, 4}, {2, 2, 1, 8, 4}, {2, 2, 1, 2, 2},  {2, 1, 1, 4, 4},
                          {2, 1, 1, 8, 4}, {1, 4, 7, 1, 7}, {1, 4, 4, 2, 4}, {1, 4, 2, 2, 4},  {1, 4, 1, 4, 4},
                          {1, 2, 1, 4, 4}, {1, 2, 2, 2, 4}, {1, 1, 1, 4, 4}, {1, 1, 2, 2, 4},  {1, 1, 1, 2, 2}};

/// In the order of the model, one of each kind: others differ by what lies in shared memory.
std::vector<Shape> ranked_shapes(const ConvProblem& p, const DeviceInfo& device, std::int64_t smem_limit) {
  const int per = static_cast<int>(std::min<std::int64_t>(per_group(p), 64));
  const int units = per % 4 == 0 ? 4 : per % 3 == 0 ? 3 : per % 2 == 0 ? 2 : 1;
  std::vector<std::pair<double, Shape>> found;
  for (const int out_units : {units, 2 * units, 3 * units}) {
    for (const auto& [part, down, tiles, rows, split] : kinds) {
      if (8 * part * (tiles - 1) >= p.q || 2 * down * (rows - 1) >= p.p) continue;
      std::optional<std::pair<double, Shape>> best;
      for (const int words : {2, 1}) {
        for (const int stages : {2, 1}) {
          const Shape s = {out_units, units, part, down, tiles, rows, words, stages, 32 * split * (out_units / units)};
          const int blocks =
              s.threads > 384 || illegal(p, s) || smem_bytes(p, s) > smem_limit ? 0 : blocks_of(p, s, device);
          if (blocks == 0) continue;
          const double estimate = cycles(p, s, blocks, device);
          if (!best || estimate < best->first) best = {estimate, s};
        }
      }
      if (best) found.push_back(*best);
    }
  }
  return fastest_first(std::move(found));
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Shape> shapes = ranked_shapes(p, device, std::max(device.smem_optin, static_smem_limit));
  if (shapes.empty()) shapes.emplace_back();  // the smallest: fits whatever the shape of the problem, see can_run
  if (shapes.size() > 8) shapes.resize(8);
  std::vector<Config> configs;
  for (const Shape& s : shapes) {
    configs.push_back({{{"out_units", s.out_units},
                        {"units", s.units},
                        {"part", s.part},
                        {"down", s.down},
                        {"tiles", s.tiles},
                        {"rows", s.rows},
                        {"words", s.words},
                        {"stages", s.stages},
                        {"blocks", blocks_of(p, s, device)},
                        {"threads", s.threads}}});
  }
  return configs;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  const Shape s = shape_of(config);
  const int store = nhwc(p) ? std::min(4, max_vector(p)) : std::min(s.part, dividing_power(p.q, max_vector(p)));
  constants.insert(constants.end(), {{"BLOCK_UNITS", s.out_units},
                                     {"UNITS", s.units},
                                     {"PART", s.part},
                                     {"DOWN", s.down},
                                     {"TILES", s.tiles},
                                     {"ROWS", s.rows},
                                     {"WORDS", s.words},
                                     {"BUFFERS", s.stages},
                                     {"STORE", store}});
  KernelSpec spec = make_spec(mult_tf32, std::move(constants), s.threads);
  spec.min_blocks = static_cast<int>(blocks_beside(p, s));
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(config);
  return streamed_geometry(work_of(p, s), config, smem_bytes(p, s));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  streamed_params(work_of(p, shape_of(config)), config, p, out);
}

}  // namespace

constinit const Schedule mult_tf32{
    .name = "mult_tf32",
    .source = "mult_tf32.cuh",
    .min_capability = 80,
    .size_generic = false,
    .promises_no_spill = true,
    .arithmetic = Arithmetic::mma,
    .can_run = can_run,
    .configs = configs,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
