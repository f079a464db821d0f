// grp_mma_nhwc (kernels/grp_mma_nhwc.cuh): 16-bit NHWC, a few channels a group, on the matrix unit. Knobs: octets of 8
// input channels a block, slices (blocks that share the outputs of those), units of 8 output channels a warp, rows of a
// strip, tiles of 8 columns side by side, stages of buffering, blocks of a chunk of octets (a run-time number: it costs
// no compilation).
#include <algorithm>
#include <utility>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr int most_smem = 227 * 1024;  // of a block, on the devices that have most
constexpr std::int64_t most_taps = 81;
constexpr std::int64_t most_registers = 216;  // by the estimate; ptxas has 255

struct Shape {
  int octets, slices, units, rows, tiles, stages, threads;
};
Shape shape_of(const Config& c) {
  return {c.get("octets"), c.get("slices"), c.get("units"),  c.get("rows"),
          c.get("tiles"),  c.get("stages"), c.get("threads")};
}

/// Output channels of an octet, and how many units they are.
std::int64_t outs_of(const ConvProblem& p) { return 8 / p.channels_per_group() * p.multiplier(); }
std::int64_t parts_of(const ConvProblem& p) { return ceil_div(outs_of(p), 8); }

std::int64_t rows_in(const ConvProblem& p, const Shape& s) { return (2 * s.rows - 1) * p.stride_h + p.effective_r(); }
std::int64_t columns_in(const ConvProblem& p, const Shape& s) {
  return (8 * s.tiles - 1) * p.stride_w + p.effective_s();
}
/// As the kernel's BUFFER.
std::int64_t buffer_bytes(const ConvProblem& p, const Shape& s) {
  const std::int64_t columns = ceil_div(columns_in(p, s), p.stride_w) * p.stride_w;
  return rows_in(p, s) * columns * (s.octets | 1) * 16;
}
/// As the kernel's WEIGHTS.
std::int64_t weight_bytes(const ConvProblem& p, const Shape& s) {
  const std::int64_t slice = ceil_div(parts_of(p), s.slices) * 8;
  return (s.slices == 1 ? s.octets * outs_of(p) : slice) * p.taps() * p.channels_per_group() * 2;
}
std::int64_t smem_bytes(const ConvProblem& p, const Shape& s) {
  const std::int64_t buffer = buffer_bytes(p, s);
  return std::max(s.stages * buffer, std::max(1, s.stages - 1) * buffer + weight_bytes(p, s));
}

/// What a thread keeps: the weights of its units, their sums, a row's fragments, and about 48 besides.
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  return s.units * (p.taps() + 4 * s.rows) + 2 * p.s + (p.bias == Bias::none ? 0 : 2 * s.units) + 48 +
         (p.needs_64bit_offsets() ? 16 : 0);
}

StreamedWork work_of(const ConvProblem& p, const Shape& s) {
  return streamed_work(p, ceil_div(p.c / 8, s.octets) * s.slices, 8 * s.tiles, 2 * s.rows);
}

Shape smallest(const ConvProblem& p) { return {1, static_cast<int>(parts_of(p)), 1, 1, 1, 1, 32}; }

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.dtype == DType::f32) return "dt = f32: the matrix unit takes f16 and bf16 here";
  if (p.layout != Layout::nhwc) return "tag = nchw: this schedule takes nhwc only";
  const std::int64_t cpg = p.channels_per_group();
  if (cpg != 1 && cpg != 2 && cpg != 4 && cpg != 8) return refuse("c / groups", cpg, "1, 2, 4 or 8");
  if (p.depthwise() && p.multiplier() == 1) {
    return refuse("k / groups", 1, "at least 2 where c / groups is 1: plain depthwise belongs to the dw schedules");
  }
  if (p.c % 8 != 0) return refuse("c", p.c, "a multiple of 8: tiles move 8 channels at once");
  if (p.align < 16) return refuse("align", p.align, "16: tiles move 16 bytes at once");
  if (parts_of(p) > 1024) return refuse("k / groups", p.multiplier(), "more outputs of 8 channels than 8192");
  if (p.taps() > most_taps) return refuse("r * s", p.taps(), "weights stay in registers, so at most 81 taps");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (smem_bytes(p, smallest(p)) > std::max(device.smem_optin, static_smem_limit)) {
    return refuse("shared memory", smem_bytes(p, smallest(p)),
                  "bytes for a tile of this dilation and stride: the device has fewer");
  }
  if (p.c / 8 * parts_of(p) > max_grid) return refuse("c", p.c, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal =
          wrong_knobs(config, {"octets", "slices", "units", "rows", "tiles", "stages", "blocks", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Shape s = shape_of(config);
  const std::int64_t parts = parts_of(p);
  if (s.octets > 32) return refuse("octets", s.octets, "at most 32");
  if (s.units > 8 || s.octets * parts % (std::int64_t{s.units} * s.slices) != 0) {
    return refuse("units", s.units, "at most 8; units * slices divides octets * " + std::to_string(parts));
  }
  if (s.units % std::min<std::int64_t>(s.units, parts) != 0 || parts % std::min<std::int64_t>(s.units, parts) != 0) {
    return refuse("units", s.units, "divides or is divided by the units of an octet, " + std::to_string(parts));
  }
  if (s.threads / 32 % (s.octets * parts / s.slices / s.units) != 0) {
    return refuse("threads", s.threads, "its warps are a multiple of octets * parts / slices / units");
  }
  if (s.rows > 16) return refuse("rows", s.rows, "at most 16");
  if (s.tiles > 16) return refuse("tiles", s.tiles, "at most 16");
  if (s.stages > 4) return refuse("stages", s.stages, "at most 4");
  if (smem_bytes(p, s) > most_smem) return refuse("tiles", s.tiles, "the tile exceeds 227 KiB of shared memory");
  const std::int64_t budget = std::min<std::int64_t>(most_registers, 65536 / s.threads / 8 * 8);
  if (registers_of(p, s) > budget) return refuse("units", s.units, "too many registers with these rows and threads");
  if (work_of(p, s).chunks * config.get("blocks") > max_grid) {
    return refuse("blocks", config.get("blocks"), "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

TileModel model_of(const ConvProblem& p, const Shape& s) {
  const StreamedWork work = work_of(p, s);
  const double inputs = 16.0 * s.octets * static_cast<double>(rows_in(p, s) * columns_in(p, s));
  const double warps = s.threads / 32.0;
  const std::int64_t groups = s.octets * parts_of(p) / s.slices / s.units, taps = p.taps();
  const double own = 16.0 * s.octets * static_cast<double>(2 * s.rows * p.stride_h * 8 * s.tiles * p.stride_w);
  TileModel m;
  m.tiles = work.tiles * work.chunks;
  m.smem = smem_bytes(p, s);
  m.registers = registers_of(p, s);
  m.threads = s.threads;
  m.stages = s.stages;
  m.bytes_in = inputs * (s.octets == 1 && p.c > 8 ? 1.8 : s.octets == 2 && p.c > 16 ? 1.1 : 1.0);  // part of a sector
  m.bytes_out = 2.0 * 16 * s.rows * s.tiles * s.octets * static_cast<double>(outs_of(p)) / s.slices;
  m.border = std::max(1.0, inputs / own);
  m.fetch = 40 + 4 * inputs / (16 * 32 * warps);
  m.task = 60.0 + s.units * s.rows * (15 + 0.7 * static_cast<double>(taps));
  m.tasks = s.tiles * groups;
  m.rounds = ceil_div(m.tasks, s.threads / 32);
  return m;
}

/// Tiles side by side: as many as cover a row, up to 8; fewer only where that leaves multiprocessors idle.
std::vector<int> tile_counts(const ConvProblem& p, const DeviceInfo& device) {
  const std::int64_t cover = ceil_div(p.q, 8);
  const auto widest = static_cast<int>(ceil_div(cover, ceil_div(cover, 8)));
  std::vector<int> counts = {widest};
  if (p.n * p.p * ceil_div(p.c, 32) < 16 * static_cast<std::int64_t>(device.sm_count)) {
    for (int half = (widest + 1) / 2; half < counts.back(); half = (half + 1) / 2) counts.push_back(half);
  } else if (widest > 4) {
    counts.push_back((widest + 1) / 2);
  }
  return counts;
}

/// Shapes that were fastest on an H200, by kind of problem; `across` warps along the tiles (0: one a tile).
struct Known {
  int octets, units, rows, tiles, across, stages;
};
std::vector<Known> known_shapes(const ConvProblem& p, const DeviceInfo& device) {
  const int t = tile_counts(p, device).front();
  if (p.n * ceil_div(p.p, 8) * ceil_div(p.c, 32) * ceil_div(p.q, 8 * t) < device.sm_count) {  // not one tile each
    return {{4, 2, 2, 2, 0, 1}, {2, 2, 2, 2, 0, 1}, {2, 2, 4, 2, 0, 1}, {2, 2, 2, t, 0, 1}, {4, 2, 1, t, 0, 1}};
  }
  if (parts_of(p) > 1) {
    return {{4, 4, 2, t, 0, 2}, {2, 4, 2, t, 0, 3}, {1, 4, 2, t, 1, 1}, {4, 2, 2, t, 2, 2}, {1, 4, 4, t, 1, 1}};
  }
  if (t > 4)
    return {{8, 4, 2, t, 0, 3}, {8, 4, 2, t, 0, 2}, {4, 2, 4, t, 0, 2}, {4, 2, 2, t, 0, 3}, {2, 2, 4, t, 0, 2}};
  if (t > 2 && p.stride_h > 1) return {{8, 4, 1, t, 0, 2}, {4, 2, 2, t, 0, 2}, {4, 2, 1, t, 0, 3}, {2, 2, 2, t, 0, 2}};
  if (t > 2)
    return {{4, 2, 2, t, 0, 3}, {4, 2, 4, t, 0, 2}, {8, 4, 1, t, 0, 2}, {8, 2, 4, t, 0, 2}, {4, 2, 2, t, 0, 2}};
  return {{4, 2, 4, t, 0, 2}, {8, 4, 4, t, 0, 2}, {8, 2, 4, t, 0, 2}, {4, 2, 7, t, 0, 2}, {2, 2, 7, t, 0, 2}};
}

/// The whole space, in the order of the model.
std::vector<Shape> ranked_shapes(const ConvProblem& p, const DeviceInfo& device) {
  const std::int64_t parts = parts_of(p);
  std::vector<std::pair<double, Shape>> found;
  for (const int octets : {4, 2, 8, 1, 3, 6, 5, 7, 13}) {
    for (const int units : {2, 1, 4}) {
      for (const int slices : {1, 2, 4, 8}) {
        if (octets > p.c / 8 || (slices > 1 && octets > 1) || octets * parts % (units * slices) != 0) continue;
        for (const int rows : {4, 2, 7, 1}) {
          if (rows > 1 && rows >= p.p) continue;
          for (const int tiles : tile_counts(p, device)) {
            for (const int across : {tiles, (tiles + 1) / 2, (tiles + 3) / 4}) {
              const std::int64_t threads = 32 * across * octets * parts / slices / units;
              if (threads > 1024) continue;
              for (const int stages : {2, 3, 1}) {
                const Shape s = {octets, slices, units, rows, tiles, stages, static_cast<int>(threads)};
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
  const std::int64_t parts = parts_of(p), smem_limit = std::max(device.smem_optin, static_smem_limit);
  std::vector<Config> configs;
  const auto consider = [&](const Shape& s) {
    if (configs.size() == 8) return;
    Config config{{{"octets", s.octets},
                   {"slices", s.slices},
                   {"units", s.units},
                   {"rows", s.rows},
                   {"tiles", s.tiles},
                   {"stages", s.stages},
                   {"blocks", 1},
                   {"threads", s.threads}}};
    if (fits(p, config) || smem_bytes(p, s) > smem_limit) return;
    const auto blocks = streaming_blocks(work_of(p, s), model_of(p, s), device);
    if (!blocks) return;
    config.knobs[6].second = *blocks;
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) configs.push_back(std::move(config));
  };
  for (const Known& k : known_shapes(p, device)) {
    if (k.octets > p.c / 8 || (k.rows > 1 && k.rows >= p.p) || k.tiles > ceil_div(p.q, 8)) continue;
    if (k.octets * parts % k.units != 0) continue;
    if (ceil_div(p.c / 8, k.octets) * k.octets * 4 > p.c / 8 * 5) continue;  // too many warps would have no octet
    const std::int64_t threads = 32 * (k.across > 0 ? k.across : k.tiles) * k.octets * parts / k.units;
    if (threads <= 1024) consider({k.octets, 1, k.units, k.rows, k.tiles, k.stages, static_cast<int>(threads)});
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
  constants.emplace_back("OCTETS", s.octets);
  constants.emplace_back("SLICES", s.slices);
  constants.emplace_back("UNITS", s.units);
  constants.emplace_back("ROWS", s.rows);
  constants.emplace_back("TILES", s.tiles);
  constants.emplace_back("STAGES", s.stages);
  return make_spec(grp_mma_nhwc, std::move(constants), s.threads);
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(config);
  return streamed_geometry(work_of(p, s), config, smem_bytes(p, s));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  streamed_params(work_of(p, shape_of(config)), config, p, out);
}

}  // namespace

constinit const Schedule grp_mma_nhwc{
    .name = "grp_mma_nhwc",
    .source = "grp_mma_nhwc.cuh",
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
