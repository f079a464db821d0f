// mult_tf32 (kernels/mult_tf32.cuh): fp32, few input channels a group and many outputs of each, on the matrix unit, in
// halves of numbers. Knobs: out_units of 8 output channels a block, units of those a warp; part columns of a place, 2 *
// down rows of them at once; tiles of 8 places side by side and rows of them one below the other; words of a number in
// shared memory (2: its parts), stages of buffering, blocks of a chunk of outputs (a run-time number: it costs no
// compilation).
#include <algorithm>
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
  friend bool operator==(const Shape&, const Shape&) = default;
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

/// Sums, both parts of a fragment of A for each place and of B for each unit, and about 56 besides.
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t places = std::int64_t{s.part} * s.down;
  return 4 * places * s.units + 8 * places + 4 * s.units + 56 + (p.needs_64bit_offsets() ? 16 : 0);
}

std::int64_t blocks_beside(const ConvProblem& p, const Shape& s) {
  return std::clamp<std::int64_t>(65536 / (round_up(registers_of(p, s), 8) * s.threads), 1, 16);
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

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(
          config, {"out_units", "units", "part", "down", "tiles", "rows", "words", "stages", "blocks", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Shape s = shape_of(config);
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
  if (work_of(p, s).chunks * config.get("blocks") > max_grid) {
    return refuse("blocks", config.get("blocks"), "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

TileModel model_of(const ConvProblem& p, const Shape& s) {
  const StreamedWork work = work_of(p, s);
  const std::int64_t places = std::int64_t{s.part} * s.down, products = places * s.units;
  const auto inputs = static_cast<double>(channels(p, s) * rows_in(p, s) * columns_in(p, s));
  const double own = static_cast<double>(channels(p, s) * high(s) * p.stride_h * wide(s) * p.stride_w);
  const auto turns = static_cast<double>(steps(p));
  const int stores = nhwc(p) ? std::min(4, 2 * s.units) : s.part;  // elements of one
  TileModel m;
  m.tiles = work.tiles * work.chunks;
  m.smem = smem_bytes(p, s);
  m.registers = registers_of(p, s) - 8;  // blocks_beside() holds the compiler to it
  m.threads = s.threads;
  m.stages = 2;  // the next tile is on its way, whether it has a buffer of its own or not
  m.bytes_in = 4 * inputs;
  m.bytes_out = 4.0 * static_cast<double>(wide(s) * high(s) * 8 * s.out_units);
  m.border = std::max(1.0, inputs / own);
  m.fetch = 40 + 22 * static_cast<double>(copies(p, s));
  // A product takes 6.1 cycles of a scheduler, in which it issues nothing else; the model counts 0.75 a cycle.
  m.task = 100 + static_cast<double>(products) * (10 + 16.0 / stores + 0.75 * 3 * 6.1 * turns) +
           turns * static_cast<double>(places * (s.words == 2 ? 8 : 12) + s.units);
  m.tasks = s.out_units / s.units * s.rows * s.tiles;
  m.rounds = ceil_div(m.tasks, s.threads / 32);
  m.wavefronts =
      static_cast<double>(m.tasks) * turns * static_cast<double>(4 * s.words * places + 4 * s.units) + inputs / 8;
  return m;
}

/// The whole space, in the order of the model.
std::vector<Shape> ranked_shapes(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<std::pair<double, Shape>> found;
  for (const int out_units : {4, 8, 12, 16, 2, 1}) {
    if (out_units > units_in_all(p)) continue;
    for (const int units : {4, 3, 2, 1}) {
      if (out_units % units != 0 || per_group(p) % units != 0) continue;
      for (const auto& [part, down] : {std::pair{4, 1}, {2, 2}, {1, 4}, {2, 1}, {1, 2}, {1, 1}}) {
        for (const int tiles : {1, 2, 4, 7}) {
          if (8 * part * (tiles - 1) >= p.q) continue;
          for (const int rows : {1, 2, 4, 8}) {
            if (2 * down * (rows - 1) >= p.p) continue;
            for (const int split : {1, 2, 4, 8}) {
              const int threads = 32 * split * (out_units / units);
              if (split > rows * tiles || threads < 64 || threads > 384) continue;
              for (const int words : {2, 1}) {
                for (const int stages : {2, 1}) {
                  const Shape s = {out_units, units, part, down, tiles, rows, words, stages, threads};
                  found.emplace_back(cycles(model_of(p, s), device), s);
                }
              }
            }
          }
        }
      }
    }
  }
  return fastest_first(std::move(found));
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  const std::int64_t smem_limit = std::max(device.smem_optin, static_smem_limit);
  std::vector<Config> configs;
  const auto consider = [&](const Shape& s) {
    if (configs.size() == 8) return;
    Config config{{{"out_units", s.out_units},
                   {"units", s.units},
                   {"part", s.part},
                   {"down", s.down},
                   {"tiles", s.tiles},
                   {"rows", s.rows},
                   {"words", s.words},
                   {"stages", s.stages},
                   {"blocks", 1},
                   {"threads", s.threads}}};
    if (fits(p, config) || smem_bytes(p, s) > smem_limit) return;
    const auto blocks = streaming_blocks(work_of(p, s), model_of(p, s), device);
    if (!blocks && s.stages == 2) return;  // a tile a block
    if (blocks) {
      config.knobs[8].second = *blocks;
    } else {
      config.knobs[8].second = static_cast<int>(std::min(work_of(p, s).tiles, (max_grid - 1) / work_of(p, s).chunks));
    }
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) configs.push_back(std::move(config));
  };
  std::vector<Shape> kinds;  // one of each: others differ by their buffers
  for (const Shape& shape : ranked_shapes(p, device)) {
    Shape kind = shape;
    kind.stages = 1;
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    const std::size_t before = configs.size();
    consider(shape);
    if (configs.size() > before) kinds.push_back(kind);
  }
  if (configs.empty()) consider({});  // fits whatever the shape of the problem, see can_run
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
