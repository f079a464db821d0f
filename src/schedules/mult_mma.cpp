// mult_mma (kernels/mult_mma.cuh): 16-bit, few input channels a group and many outputs of each, on the matrix unit.
// Knobs: out_units of 8 output channels a block, units of those a warp, part columns of a place (NCHW), tiles of 8
// places side by side, rows pairs of rows of a parity, stages of buffering (2: the next tile is read early), blocks of
// a chunk of outputs (a run-time number: it costs no compilation).
#include <algorithm>
#include <utility>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr int most_smem = 227 * 1024;         // of a block, on the devices that have most
constexpr std::int64_t most_registers = 208;  // by the estimate; ptxas has 255
constexpr std::int64_t most_halves = 28;      // beyond, what finds the weights spilled
constexpr std::int64_t most_loads = 16;       // of a tile that a thread reads ahead

struct Shape {
  int out_units = 1, units = 1, part = 1, tiles = 1, rows = 1, ahead = 0, threads = 32;
};
Shape shape_of(const Config& c) {
  return {c.get("out_units"), c.get("units"),      c.get("part"),   c.get("tiles"),
          c.get("rows"),      c.get("stages") - 1, c.get("threads")};
}

// The kernel's own constants, by the same names in lower case.
std::int64_t per_group(const ConvProblem& p) { return p.multiplier() / 8; }
std::int64_t channels(const ConvProblem& p, const Shape& s) {
  return p.channels_per_group() * std::max<std::int64_t>(1, s.out_units / per_group(p));
}
std::int64_t parities(const ConvProblem& p) { return p.stride_h % 2 != 0 ? 2 : 1; }
std::int64_t pairs(const ConvProblem& p) { return parities(p) == 2 ? p.r / 2 + 1 : (p.r + 1) / 2; }
std::int64_t halves(const ConvProblem& p) { return ceil_div(p.channels_per_group() * pairs(p) * p.s, 4); }
std::int64_t dil_w(const ConvProblem& p) { return p.s == 1 ? 1 : p.dil_w; }
std::int64_t high(const ConvProblem& p, const Shape& s) { return 2 * parities(p) * s.rows; }
std::int64_t wide(const Shape& s) { return std::int64_t{8} * s.part * s.tiles; }
std::int64_t units_in_all(const ConvProblem& p) { return p.k / 8; }

/// Elements of one load: channels that a pixel of the block and every pixel of x has whole, or columns of rows and
/// tiles that are whole vectors.
int vec_of(const ConvProblem& p, const Shape& s) {
  if (nhwc(p)) return dividing_power(channels(p, s), dividing_power(p.c, max_vector(p)));
  const int of_row = dividing_power(p.w, max_vector(p));
  return p.q <= wide(s) ? of_row : dividing_power(wide(s) * p.stride_w, of_row);
}
std::int64_t lead_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t vec = nhwc(p) ? 1 : vec_of(p, s);
  return ((-p.pad_left) % vec + vec) % vec;
}
std::int64_t pairs_in(const ConvProblem& p, const Shape& s) { return (high(p, s) - 1) * p.stride_h / 2 + pairs(p); }
std::int64_t columns_in(const ConvProblem& p, const Shape& s) {
  return lead_of(p, s) + (wide(s) - 1) * p.stride_w + (p.s - 1) * dil_w(p) + 1;
}
/// Smallest number from `size` on with this remainder.
std::int64_t up_to(std::int64_t size, std::int64_t rest, std::int64_t modulus) {
  return size + ((rest - size) % modulus + modulus) % modulus;
}
std::int64_t buffer_bytes(const ConvProblem& p, const Shape& s) {
  const std::int64_t vec = vec_of(p, s), columns = columns_in(p, s), stride = p.stride_w, run = (p.s + 1) / 2;
  const std::int64_t shift = (stride - lead_of(p, s) % stride) % stride;
  const std::int64_t read = ceil_div((nhwc(p) ? columns : ceil_div(columns, vec) * vec) + shift, stride);
  const std::int64_t gap = s.part == 1 ? 9 : s.part == 2 ? 14 : 0, banks = s.part <= 2 ? 32 : 8;
  const std::int64_t phase = stride == 2 ? up_to(read, run + gap, banks) : read;
  const std::int64_t line = stride == 2 ? up_to(2 * phase, p.s + 2 * gap, banks)
                            : nhwc(p)   ? up_to(phase * stride, p.s + gap, banks)
                                        : up_to(phase * stride, 4, 8);
  const std::int64_t plane = up_to(pairs_in(p, s) * line, nhwc(p) ? 10 : 12, 32);
  return 4 * (ceil_div(channels(p, s) * plane, 4) * 4);
}
std::int64_t weight_bytes(const ConvProblem& p, const Shape& s) {
  return s.out_units * 8 * p.channels_per_group() * p.taps() * 2;
}
std::int64_t smem_bytes(const ConvProblem& p, const Shape& s) {
  const std::int64_t buffer = buffer_bytes(p, s);
  return std::max((1 + s.ahead) * buffer, s.ahead * buffer + weight_bytes(p, s));
}
/// Loads of a thread, each of both rows: of a tile, and of one turn over the pieces of its lines.
std::int64_t pieces_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t vec = vec_of(p, s), columns = columns_in(p, s);
  return nhwc(p) ? channels(p, s) / vec * columns : ceil_div(columns, vec);
}
std::int64_t steps_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t lines = pairs_in(p, s) * (nhwc(p) ? 1 : channels(p, s));
  return ceil_div(lines, std::max<std::int64_t>(1, s.threads / pieces_of(p, s)));
}
std::int64_t loads_of(const ConvProblem& p, const Shape& s) {
  return steps_of(p, s) * ceil_div(pieces_of(p, s), s.threads);
}

/// What a thread keeps: weights, sums, bias, addresses of the taps, what it reads ahead, and about 48 besides.
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t words = std::max<std::int64_t>(1, vec_of(p, s) / 2);
  return s.units * (halves(p) + 4 * s.part + (p.bias == Bias::none ? 0 : 2)) + std::min<std::int64_t>(6, halves(p)) +
         2 * words * (s.ahead != 0 ? loads_of(p, s) : std::min<std::int64_t>(8, steps_of(p, s))) + 48 +
         (p.needs_64bit_offsets() ? 16 : 0);
}

StreamedWork work_of(const ConvProblem& p, const Shape& s) {
  return streamed_work(p, ceil_div(units_in_all(p), s.out_units), wide(s), high(p, s));
}

Shape smallest(const ConvProblem& p) { return {.part = 1, .threads = static_cast<int>(32 * parities(p))}; }

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.dtype == DType::f32) return "dt = f32: the matrix unit takes f16 and bf16 here";
  if (p.channels_per_group() > 8) return refuse("c / groups", p.channels_per_group(), "at most 8");
  const std::int64_t mult = p.multiplier();
  if (mult % 8 != 0) return refuse("k / groups", mult, "a multiple of 8: so many outputs share a fragment");
  if (mult < 2 * p.channels_per_group()) {
    return refuse("k / groups", mult, "at least twice c / groups: plain groups belong to the grp schedules");
  }
  if (p.r > 1 && p.dil_h > 1) return refuse("dil_h", p.dil_h, "this schedule takes 1 only");
  if (nhwc(p) && p.align < 16) return refuse("align", p.align, "16: outputs leave 16 bytes at once");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  const Shape s = smallest(p);
  if (halves(p) > most_halves || registers_of(p, s) > most_registers) {
    return refuse("r * s", p.taps(), "more weights than registers hold");
  }
  if (smem_bytes(p, s) > std::max(device.smem_optin, static_smem_limit)) {
    return refuse("shared memory", smem_bytes(p, s),
                  "bytes for a tile of this dilation and stride: the device has fewer");
  }
  if (units_in_all(p) > max_grid) return refuse("k", p.k, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal =
          wrong_knobs(config, {"out_units", "units", "part", "tiles", "rows", "stages", "blocks", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  if (config.get("stages") > 2) return refuse("stages", config.get("stages"), "1 or 2 tiles in shared memory");
  const Shape s = shape_of(config);
  const std::int64_t per = per_group(p), share = std::min<std::int64_t>(s.units, per);
  if (s.units > 8 || s.units % share != 0 || per % share != 0) {
    return refuse("units", s.units, "at most 8; divides or is divided by a group's " + std::to_string(per));
  }
  if (s.out_units > 64 || s.out_units % s.units != 0 || (s.out_units % per != 0 && per % s.out_units != 0)) {
    return refuse("out_units", s.out_units, "at most 64, a multiple of units, and whole groups or an even part of one");
  }
  if (!power_of_two(s.part) || s.part > (nhwc(p) ? 1 : 8)) return refuse("part", s.part, "1; in NCHW 1, 2, 4 or 8");
  if (s.tiles > 16) return refuse("tiles", s.tiles, "at most 16");
  if (s.rows > 16) return refuse("rows", s.rows, "at most 16");
  if (s.threads / 32 % (s.out_units / s.units * parities(p)) != 0) {
    return refuse("threads", s.threads, "its warps are a multiple of out_units / units * the parities of rows");
  }
  if (s.ahead != 0 && loads_of(p, s) > most_loads) return refuse("stages", 2, "a thread would read too much ahead");
  if (smem_bytes(p, s) > most_smem) return refuse("tiles", s.tiles, "the tile exceeds 227 KiB of shared memory");
  const std::int64_t budget = std::min<std::int64_t>(most_registers, 65536 / s.threads / 8 * 8);
  if (registers_of(p, s) > budget) return refuse("units", s.units, "too many registers with these threads");
  if (work_of(p, s).chunks * config.get("blocks") > max_grid) {
    return refuse("blocks", config.get("blocks"), "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

TileModel model_of(const ConvProblem& p, const Shape& s) {
  const StreamedWork work = work_of(p, s);
  const std::int64_t groups = s.out_units / s.units * parities(p);
  const auto inputs = static_cast<double>(2 * channels(p, s) * pairs_in(p, s) * columns_in(p, s));
  const double own = static_cast<double>(channels(p, s) * high(p, s) * p.stride_h * wide(s) * p.stride_w);
  const std::int64_t units = s.units * s.part, reads = units / std::min<std::int64_t>(s.units, per_group(p));
  TileModel m;
  m.tiles = work.tiles * work.chunks;
  m.smem = smem_bytes(p, s);
  m.registers = registers_of(p, s);
  m.threads = s.threads;
  m.stages = 1 + s.ahead;
  m.bytes_in = 2 * inputs;
  m.bytes_out = 2.0 * static_cast<double>(wide(s) * high(p, s) * 8 * s.out_units);
  m.border = std::max(1.0, inputs / own);
  m.fetch = 40 + (14 + 4 * vec_of(p, s)) * static_cast<double>(loads_of(p, s));
  m.task = 60 + static_cast<double>(units) * (14 + static_cast<double>(halves(p))) +
           static_cast<double>(reads * 2 * halves(p));
  m.tasks = groups * s.rows * s.tiles;
  m.rounds = ceil_div(m.tasks, s.threads / 32);
  m.wavefronts = static_cast<double>(m.tasks * reads * 2 * halves(p)) + inputs / 32;
  return m;
}

/// Shapes that were fastest on an H200; `split` warps share units and a parity of rows.
struct Known {
  int out_units, units, part, tiles, rows, ahead, split;
};
std::vector<Known> known_shapes(const ConvProblem& p, const DeviceInfo& device) {
  const bool few = p.n * p.p * p.q * ceil_div(p.k, 32) < 2048 * static_cast<std::int64_t>(device.sm_count);
  const auto wide = [&](int part) { return static_cast<int>(std::min<std::int64_t>(7, ceil_div(p.q, 8 * part))); };
  if (nhwc(p) && few) {
    return {{4, 4, 1, 2, 2, 0, 2}, {4, 4, 1, 2, 1, 0, 1}, {12, 4, 1, 1, 2, 1, 1}, {8, 4, 1, 1, 4, 1, 4}};
  }
  if (nhwc(p)) {
    return {{16, 4, 1, 2, 4, 1, 1}, {16, 4, 1, wide(1), 2, 1, 2}, {12, 4, 1, 4, 8, 1, 2},
            {12, 4, 1, 4, 4, 1, 1}, {8, 4, 1, 2, 4, 1, 2},        {8, 4, 1, wide(1), 4, 1, 4}};
  }
  if (few) return {{4, 4, 2, 1, 2, 1, 2}, {1, 1, 8, 1, 1, 0, 1}, {2, 2, 4, 1, 1, 0, 1}, {4, 4, 2, 2, 1, 1, 2}};
  return {{4, 4, 4, wide(4), 2, 1, 2}, {4, 1, 8, wide(8), 2, 1, 1}, {4, 4, 2, wide(2), 2, 1, 4},
          {4, 4, 4, 1, 4, 1, 2},       {4, 4, 2, 2, 4, 1, 1},       {8, 4, 2, 1, 4, 1, 2}};
}

/// The whole space, in the order of the model.
std::vector<Shape> ranked_shapes(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<std::pair<double, Shape>> found;
  const std::vector<int> parts = nhwc(p) ? std::vector<int>{1} : std::vector<int>{8, 4, 2};
  for (const int out_units : {4, 8, 12, 16, 2, 1}) {
    if (out_units > units_in_all(p)) continue;
    for (const int units : {4, 2, 3, 1}) {
      if (out_units % units != 0) continue;
      for (const int part : parts) {
        for (const int tiles : {1, 2, 4, 7}) {
          if (8 * part * (tiles - 1) >= p.q) continue;
          for (const int rows : {1, 2, 4, 8}) {
            if (rows > 1 && 2 * parities(p) * (rows - 1) >= p.p) continue;
            for (const int split : {1, 2, 4}) {
              const auto threads = static_cast<int>(32 * split * parities(p) * (out_units / units));
              if (split > rows * tiles || threads < 64 || threads > 512) continue;
              for (const int ahead : {1, 0}) {
                const Shape s = {out_units, units, part, tiles, rows, ahead, threads};
                found.emplace_back(cycles(model_of(p, s), device), s);
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
                   {"tiles", s.tiles},
                   {"rows", s.rows},
                   {"stages", s.ahead + 1},
                   {"blocks", 1},
                   {"threads", s.threads}}};
    if (fits(p, config) || smem_bytes(p, s) > smem_limit) return;
    const auto blocks = streaming_blocks(work_of(p, s), model_of(p, s), device);
    if (!blocks) return;
    config.knobs[6].second = *blocks;
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) configs.push_back(std::move(config));
  };
  for (const Known& k : known_shapes(p, device)) {
    const auto threads = static_cast<int>(32 * k.split * parities(p) * (k.out_units / k.units));
    if (units_in_all(p) % k.out_units != 0 || 8 * k.part * (k.tiles - 1) >= p.q) continue;
    if (k.rows > 1 && 2 * parities(p) * (k.rows - 1) >= p.p) continue;
    consider({k.out_units, k.units, k.part, k.tiles, k.rows, k.ahead, threads});
  }
  for (const Shape& shape : ranked_shapes(p, device)) consider(shape);
  if (configs.empty()) consider(smallest(p));  // fits whatever the shape of the problem, see can_run
  return configs;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  const Shape s = shape_of(config);
  constants.emplace_back("VEC", vec_of(p, s));
  constants.emplace_back("LEAD", lead_of(p, s));
  constants.emplace_back("STORE", std::min(s.part, dividing_power(p.q, max_vector(p))));
  constants.emplace_back("WVEC", dividing_power(weight_bytes(p, {.out_units = 1}) / 2, max_vector(p)));
  constants.emplace_back("BLOCK_UNITS", s.out_units);
  constants.emplace_back("UNITS", s.units);
  constants.emplace_back("PART", s.part);
  constants.emplace_back("TILES", s.tiles);
  constants.emplace_back("ROWS", s.rows);
  constants.emplace_back("AHEAD", s.ahead);
  return make_spec(mult_mma, std::move(constants), s.threads);
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(config);
  return streamed_geometry(work_of(p, s), config, smem_bytes(p, s));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  streamed_params(work_of(p, shape_of(config)), config, p, out);
}

}  // namespace

constinit const Schedule mult_mma{
    .name = "mult_mma",
    .source = "mult_mma.cuh",
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
