// grp_mma_nchw (kernels/grp_mma_nchw.cuh): 16-bit NCHW, a few channels a group, on the matrix unit. Knobs: groups of a
// block, units of output channels a warp, part columns of a place, across places side by side, rows of a place, down
// warps one below the other, stages of buffering, blocks of a chunk of groups (a run-time number: it costs no
// compilation).
#include <algorithm>
#include <utility>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr int most_smem = 227 * 1024;         // of a block, on the devices that have most
constexpr std::int64_t most_registers = 216;  // by the estimate; ptxas has 255

struct Shape {
  int groups = 1, units = 1, part = 2, across = 1, rows = 1, down = 1, stages = 1, threads = 32;
};
Shape shape_of(const Config& c) {
  return {c.get("groups"), c.get("units"), c.get("part"),   c.get("across"),
          c.get("rows"),   c.get("down"),  c.get("stages"), c.get("threads")};
}

// The kernel's own constants, by the same names in lower case.
std::int64_t outs(const ConvProblem& p) { return covering_power(p.multiplier(), 8); }
std::int64_t cols(const ConvProblem& p) { return 8 / outs(p); }
std::int64_t units_in_all(const ConvProblem& p) { return ceil_div(p.multiplier(), outs(p)); }
std::int64_t lanes_c(const ConvProblem& p) { return covering_power(p.channels_per_group(), 4); }
std::int64_t sets(const ConvProblem& p) { return p.channels_per_group() > 4 ? 2 : 1; }
std::int64_t step(const ConvProblem& p) { return 4 / lanes_c(p); }
std::int64_t dil_w(const ConvProblem& p) { return p.s == 1 ? 1 : p.dil_w; }
std::int64_t words(const ConvProblem& p) {
  return ceil_div((1 + (cols(p) - 1) * p.stride_w + (p.s - 1) * dil_w(p)) / 2 + 1, step(p)) * sets(p);
}
std::int64_t wide(const Shape& s) { return std::int64_t{s.across} * s.part; }
/// Columns of one copy: rows are whole vectors, and so are the steps from one tile of a row to the next.
int vec_of(const ConvProblem& p, const Shape& s) {
  const int of_row = dividing_power(p.w, max_vector(p));
  return p.q <= wide(s) ? of_row : dividing_power(wide(s) * p.stride_w, of_row);
}
std::int64_t lead_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t vec = std::max(2, vec_of(p, s));
  return ((-p.pad_left) % vec + vec) % vec;
}
int strips(const Shape& s) { return 16 / covering_power(s.across, 8); }
std::int64_t high(const Shape& s) { return std::int64_t{strips(s)} * s.rows * s.down; }
std::int64_t rows_in(const ConvProblem& p, const Shape& s) { return (high(s) - 1) * p.stride_h + p.effective_r(); }
std::int64_t pairs_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t at = lead_of(p, s) + (s.part / cols(p) - 1) * cols(p) * p.stride_w;
  const std::int64_t last = ceil_div((at % 2 + (cols(p) - 1) * p.stride_w + (p.s - 1) * dil_w(p)) / 2 + 1, step(p));
  return at / 2 + (last - 1) * step(p) + 1;
}
std::int64_t buffer_bytes(const ConvProblem& p, const Shape& s) {
  const std::int64_t vec = vec_of(p, s);
  const std::int64_t needed = lead_of(p, s) + (wide(s) - 1) * p.stride_w + (p.s - 1) * dil_w(p) + 1;
  const std::int64_t read = (s.across - 1) * s.part * p.stride_w + 2 * (pairs_of(p, s) + step(p) - 1);
  const std::int64_t filled = std::max(ceil_div(needed, vec), ceil_div(read, vec));
  const std::int64_t pitch = ceil_div(filled * vec * 2, 16) * 16;
  const std::int64_t plane = (rows_in(p, s) * pitch + 95) / 128 * 128 + 32;
  return s.groups * p.channels_per_group() * plane;
}
std::int64_t weight_bytes(const ConvProblem& p, const Shape& s) {
  return s.groups * p.multiplier() * p.channels_per_group() * p.taps() * 2;
}
std::int64_t smem_bytes(const ConvProblem& p, const Shape& s) {
  const std::int64_t buffer = buffer_bytes(p, s);
  return std::max(s.stages * buffer, std::max(1, s.stages - 1) * buffer + weight_bytes(p, s));
}

/// What a thread keeps: weights, sums, a row's words, and about 56 besides.
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t products = s.part / cols(p);
  const std::int64_t variants = products > 1 && cols(p) * p.stride_w % 2 != 0 ? 2 : 1;
  const std::int64_t row_words = 2 * sets(p) * std::min(pairs_of(p, s), products * words(p));
  return s.units * (p.r * variants * words(p) + 4 * s.rows * products) + row_words + 56 +
         (p.needs_64bit_offsets() ? 16 : 0);
}

StreamedWork work_of(const ConvProblem& p, const Shape& s) {
  return streamed_work(p, ceil_div(p.groups, s.groups), wide(s), high(s));
}

Shape smallest(const ConvProblem& p) {
  const int part = static_cast<int>(std::max<std::int64_t>(2, cols(p)));
  return {1, 1, part, 1, 1, 1, 1, static_cast<int>(32 * units_in_all(p))};
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.dtype == DType::f32) return "dt = f32: the matrix unit takes f16 and bf16 here";
  if (p.layout != Layout::nchw) return "tag = nhwc: this schedule takes nchw only";
  const std::int64_t cpg = p.channels_per_group();
  if (cpg > 8) return refuse("c / groups", cpg, "at most 8");
  if (p.depthwise() && p.multiplier() == 1) {
    return refuse("k / groups", 1, "at least 2 where c / groups is 1: plain depthwise belongs to the dw schedules");
  }
  if (units_in_all(p) > 16) return refuse("k / groups", p.multiplier(), "at most 128");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  const Shape s = smallest(p);
  if (registers_of(p, s) > most_registers) return refuse("r * s", p.taps(), "more weights than registers hold");
  if (smem_bytes(p, s) > std::max(device.smem_optin, static_smem_limit)) {
    return refuse("shared memory", smem_bytes(p, s),
                  "bytes for a tile of this dilation and stride: the device has fewer");
  }
  if (p.groups > max_grid) return refuse("groups", p.groups, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal =
          wrong_knobs(config, {"groups", "units", "part", "across", "rows", "down", "stages", "blocks", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Shape s = shape_of(config);
  if (s.groups > 32) return refuse("groups", s.groups, "at most 32");
  if (units_in_all(p) % s.units != 0) {
    return refuse("units", s.units, "must divide the " + std::to_string(units_in_all(p)) + " of a group");
  }
  if (!power_of_two(s.part) || s.part > 8 || s.part < 2 || s.part % cols(p) != 0) {
    return refuse("part", s.part, "2, 4 or 8, a multiple of " + std::to_string(cols(p)));
  }
  if (s.across > 8) return refuse("across", s.across, "at most 8");
  if (s.rows > 16) return refuse("rows", s.rows, "at most 16");
  if (s.down > 32) return refuse("down", s.down, "at most 32");
  if (s.threads != 32 * s.groups * s.down * units_in_all(p) / s.units) {
    return refuse("threads", s.threads, "32 * groups * down * the unit groups of a group");
  }
  if (s.stages > 4) return refuse("stages", s.stages, "at most 4");
  if (smem_bytes(p, s) > most_smem) return refuse("groups", s.groups, "the tile exceeds 227 KiB of shared memory");
  const std::int64_t budget = std::min<std::int64_t>(most_registers, 65536 / s.threads / 8 * 8);
  if (registers_of(p, s) > budget) return refuse("rows", s.rows, "too many registers with these threads");
  if (work_of(p, s).chunks * config.get("blocks") > max_grid) {
    return refuse("blocks", config.get("blocks"), "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

TileModel model_of(const ConvProblem& p, const Shape& s) {
  const StreamedWork work = work_of(p, s);
  const double channels = static_cast<double>(s.groups * p.channels_per_group());
  const double columns = static_cast<double>((wide(s) - 1) * p.stride_w + 1), vec = vec_of(p, s);
  const double inputs = 2.0 * channels * static_cast<double>(rows_in(p, s)) * columns;
  const std::int64_t products = s.part / cols(p);
  TileModel m;
  m.tiles = work.tiles * work.chunks;
  m.smem = smem_bytes(p, s);
  m.registers = registers_of(p, s);
  m.threads = s.threads;
  m.stages = s.stages;
  m.bytes_in = inputs;
  m.bytes_out = 2.0 * static_cast<double>(wide(s) * high(s) * s.groups * p.multiplier());
  m.border = std::max(1.0, static_cast<double>(rows_in(p, s)) / static_cast<double>(high(s) * p.stride_h));
  // Words of a row: a vector and two words beside it, four of a bank; copies; stores of whole places.
  const std::int64_t strip_rows = (s.rows - 1) * p.stride_h + p.effective_r();
  const double row_words =
      static_cast<double>(2 * sets(p) * (std::max<std::int64_t>(4, s.part * p.stride_w / 2) + s.part));
  m.wavefronts =
      s.threads / 32.0 * static_cast<double>(strip_rows) * row_words + inputs / (16 * vec) + m.bytes_out / 64;
  m.fetch = 60 + 5 * inputs / (2 * vec * s.threads);
  m.task = 80.0 + static_cast<double>(s.units * s.rows * products) * (12 + 1.3 * static_cast<double>(p.r * words(p)));
  m.tasks = s.threads / 32;
  m.rounds = 1;
  return m;
}

int across_of(const ConvProblem& p, int part) {
  const std::int64_t places = ceil_div(p.q, part);
  const auto across = static_cast<int>(ceil_div(places, ceil_div(places, 8)));
  // Tiles at other steps are copied in narrower vectors.
  const bool between = across < places && across * part * p.stride_w % dividing_power(p.w, max_vector(p)) != 0;
  return between ? 8 : across;
}

/// Shapes that were fastest on an H200, by kind of problem.
struct Known {
  int groups, part, rows, down, stages;
};
std::vector<Known> known_shapes(const ConvProblem& p, const DeviceInfo& device) {
  const int part = static_cast<int>(std::max<std::int64_t>(cols(p), p.q > 32 ? 8 : p.q > 16 ? 4 : 2));
  if (p.n * p.groups * ceil_div(p.p, 8) < 4 * static_cast<std::int64_t>(device.sm_count)) {  // few tiles
    return {{1, part, 1, 1, 1}, {1, part, 2, 1, 1}, {1, part, 1, 2, 1}, {1, part, 2, 2, 1}};
  }
  if (p.depthwise() && p.multiplier() > 4)
    return {{2, part, 1, 4, 2}, {4, part, 1, 1, 2}, {4, part, 4, 1, 1}, {2, part, 2, 4, 1}};
  if (p.depthwise()) return {{2, part, 4, 4, 2}, {2, part, 2, 2, 2}, {4, part, 2, 2, 2}, {4, part, 4, 1, 2}};
  if (part == 2) return {{4, part, 7, 1, 2}, {2, part, 7, 1, 2}, {2, part, 4, 2, 2}, {4, part, 7, 1, 1}};
  return {{2, part, 2, 2, 2}, {1, part, 2, 4, 2}, {4, part, 2, 2, 2}, {2, part, 2, 1, 2}, {1, part, 2, 7, 2}};
}

/// The whole space, in the order of the model.
std::vector<Shape> ranked_shapes(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<std::pair<double, Shape>> found;
  for (const int groups : {1, 2, 4, 8}) {
    for (const int units : {1, 2, 4}) {
      for (const int part : {2, 4, 8}) {
        if (part > std::max<std::int64_t>(2, cols(p)) && part >= 2 * p.q) continue;
        for (const int rows : {1, 2, 4, 7}) {
          for (const int down : {1, 2, 4, 7}) {
            for (const int stages : {1, 2, 3}) {
              const auto threads = static_cast<int>(32 * groups * down * ceil_div(units_in_all(p), units));
              const Shape s = {groups, units, part, across_of(p, part), rows, down, stages, threads};
              if (groups > p.groups || threads > 1024) continue;
              if (rows * down > 1 && high(s) - strips(s) >= p.p) continue;
              found.emplace_back(cycles(model_of(p, s), device), s);
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
    Config config{{{"groups", s.groups},
                   {"units", s.units},
                   {"part", s.part},
                   {"across", s.across},
                   {"rows", s.rows},
                   {"down", s.down},
                   {"stages", s.stages},
                   {"blocks", 1},
                   {"threads", s.threads}}};
    if (fits(p, config) || smem_bytes(p, s) > smem_limit) return;
    const auto blocks = streaming_blocks(work_of(p, s), model_of(p, s), device);
    if (!blocks) return;
    config.knobs[7].second = *blocks;
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) configs.push_back(std::move(config));
  };
  for (const Known& k : known_shapes(p, device)) {
    const auto threads = static_cast<int>(32 * k.groups * k.down * units_in_all(p));
    const Shape s = {k.groups, 1, k.part, across_of(p, k.part), k.rows, k.down, k.stages, threads};
    if (k.groups <= p.groups && threads <= 1024 && high(s) < 2 * p.p + strips(s)) consider(s);
  }
  for (const Shape& shape : ranked_shapes(p, device)) consider(shape);
  return configs;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  const Shape s = shape_of(config);
  constants.emplace_back("VEC", vec_of(p, s));
  constants.emplace_back("WVEC", dividing_power(weight_bytes(p, {.groups = 1}) / 2, max_vector(p)));
  constants.emplace_back("STORE", std::min(s.part, dividing_power(p.q, max_vector(p))));
  constants.emplace_back("LEAD", lead_of(p, s));
  constants.emplace_back("BLOCK_GROUPS", s.groups);
  constants.emplace_back("UNITS", s.units);
  constants.emplace_back("PART", s.part);
  constants.emplace_back("ACROSS", s.across);
  constants.emplace_back("ROWS", s.rows);
  constants.emplace_back("DOWN", s.down);
  constants.emplace_back("STAGES", s.stages);
  return make_spec(grp_mma_nchw, std::move(constants), s.threads);
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(config);
  return streamed_geometry(work_of(p, s), config, smem_bytes(p, s));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  streamed_params(work_of(p, shape_of(config)), config, p, out);
}

}  // namespace

constinit const Schedule grp_mma_nchw{
    .name = "grp_mma_nchw",
    .source = "grp_mma_nchw.cuh",
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
