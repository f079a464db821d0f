// dw_fold (kernels/dw_fold.cuh): fp32 NCHW planes folded in the middle, whole planes a warp. Knobs: cols outputs along
// the row a lane, planes a warp, unroll (2: the rows at both ends of a walk, which add to fewer sums than the others,
// are unrolled; 1: they are loops), warps (of a scheduler: bounds the registers of each), threads.
#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr std::int64_t half_warp = 16, per = 4;  ///< lanes of one half of the planes; elements of 16 bytes

/// What follows from a configuration; mirrors FoldShape of the kernel.
struct Shape {
  std::int64_t tiles = 0, planes = 0, half = 0, reach = 0, steps = 0, full = 0, tail = 0;
  std::int64_t vec = 0, reads = 0, first = 0, behind = 0, zeros = 0;
  std::int64_t rows = 0, run = 0, stores = 0;
  std::int64_t pitch = 0, stage_half = 0, stage_plane = 0;
  std::int64_t bytes = 0;  ///< of shared memory a warp
};

/// A lane's place in elements, by half, plane and tile.
template <class At>
std::array<std::int64_t, 32> lanes_at(const Shape& s, const At& at) {
  std::array<std::int64_t, 32> bytes{};
  for (std::int64_t i = 0; i < 32; ++i) {
    const std::int64_t place = i % half_warp;
    bytes[static_cast<std::size_t>(i)] =
        4 * at(i / half_warp, std::min(place / s.tiles, s.planes - 1), place % s.tiles);
  }
  return bytes;
}

/// Elements from one plane to the next, such that a warp's reads of its windows meet in few banks.
std::int64_t pitch_of(const ConvProblem& p, const Shape& s, std::int64_t cols) {
  const std::int64_t plane = p.h * p.w;
  const std::int64_t rows = std::min<std::int64_t>(s.steps, 8);  // then the banks repeat
  std::int64_t best = plane, best_cost = 0;
  for (std::int64_t pitch = plane; pitch < plane + 32; pitch += per) {
    std::int64_t cost = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto at = lanes_at(s, [&](std::int64_t half, std::int64_t g, std::int64_t tile) {
        return g * pitch + (half != 0 ? p.h - 1 - i : i) * p.w + tile * cols;
      });
      cost += shared_wavefronts(at, 4 * s.vec);
    }
    if (best_cost == 0 || cost < best_cost) best_cost = cost, best = pitch;
    if (cost == rows * s.vec) break;  // no two lanes in one bank
  }
  return best;
}

/// The same for the results' way through shared memory: from half to half and from plane to plane.
std::pair<std::int64_t, std::int64_t> stage_of(const ConvProblem& p, const Shape& s, std::int64_t cols) {
  std::pair<std::int64_t, std::int64_t> best{};
  std::int64_t best_cost = 0;
  for (std::int64_t plane = 2 * s.run; plane < 2 * s.run + 32; plane += per) {
    for (std::int64_t half = s.run; half <= plane - s.run; half += per) {
      std::int64_t cost = 0;
      for (std::int64_t row = 0; row < s.rows; ++row) {
        const auto at = lanes_at(s, [&](std::int64_t lower, std::int64_t g, std::int64_t tile) {
          return g * plane + (lower != 0 ? half + (s.rows - 1 - row) * p.q : row * p.q) + tile * cols;
        });
        cost += shared_wavefronts(at, 4 * s.vec);
      }
      if (best_cost == 0 || cost < best_cost) best_cost = cost, best = {half, plane};
      if (cost == s.rows * s.vec) return best;
    }
  }
  return best;
}

/// All but pitches and bytes.
Shape outline_of(const ConvProblem& p, const Config& config) {
  const std::int64_t cols = config.get("cols");
  Shape s;
  s.tiles = p.q / cols, s.planes = config.get("planes");
  s.half = p.p / 2, s.reach = p.r - 1 - p.pad_top, s.steps = s.half + s.reach;
  s.full = s.reach, s.tail = std::max(s.full, s.half - p.pad_top);
  s.vec = dividing_power(cols, dividing_power(p.w, per));
  const std::int64_t lead = (s.vec - p.pad_left % s.vec) % s.vec;
  s.reads = ceil_div(lead + cols + p.s - 1, s.vec);
  s.first = -p.pad_left - lead;
  s.behind = std::clamp<std::int64_t>(ceil_div(p.w - (s.tiles - 1) * cols - s.first, s.vec), 0, s.reads);
  s.zeros = s.tiles == 1 ? 0 : ceil_div(std::max((s.reads - s.behind) * s.vec, -s.first), per) * per;
  s.rows = p.q % per == 0 ? 1 : 2;
  s.run = s.rows * p.q;
  s.stores = ceil_div(s.planes * s.run / per, half_warp);
  return s;
}

Shape shape_of(const ConvProblem& p, const Config& config) {
  const std::int64_t cols = config.get("cols");
  Shape s = outline_of(p, config);
  s.pitch = pitch_of(p, s, cols);
  std::tie(s.stage_half, s.stage_plane) = stage_of(p, s, cols);
  const std::int64_t beside = std::max(s.planes * p.taps(), s.planes * s.stage_plane);  // weights, then results
  s.bytes = 4 * (s.zeros + s.planes * s.pitch + ceil_div(beside, per) * per);
  return s;
}

/// Registers a thread needs; an upper bound in practice, set against ptxas (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem& p, const Shape& s, std::int64_t cols) {
  return p.taps() + p.r * cols + s.reads * s.vec + 2 * s.stores + (p.needs_64bit_offsets() ? 24 : 20);
}
constexpr std::int64_t register_budget = 245;
/// Warps that a scheduler holds, by the registers of each; and the most that ptxas does without spilling.
int warps_for(std::int64_t registers) { return registers <= 118 ? 4 : registers <= 156 ? 3 : 2; }
int most_warps(const ConvProblem& p, std::int64_t registers, const Config& config) {
  // Exactly 128 registers do for this one.
  const bool tight = p.r == 7 && p.s == 7 && config.get("cols") == 7 && config.get("unroll") == 2;
  return tight ? 4 : warps_for(registers);
}

/// Bytes of one copy of weights: a warp's planes begin at any multiple of what its planes and all have in common.
int weight_bytes(const ConvProblem& p, std::int64_t planes) {
  return dividing_power(std::gcd(planes, p.c) * p.taps() * 4, 16);
}

std::int64_t blocks_of(const ConvProblem& p, const Config& config) {
  return ceil_div(ceil_div(p.n * p.c, config.get("planes")), config.get("threads") / 32);
}

Refusal too_large(int threads) { return refuse("threads", threads, "more than 96 KiB of shared memory"); }

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"cols", "planes", "unroll", "warps", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int cols = config.get("cols"), planes = config.get("planes"), threads = config.get("threads");
  if (cols > 16 || p.q % cols != 0)
    return refuse("cols", cols, "at most 16, and a divisor of q = " + std::to_string(p.q));
  if (config.get("unroll") > 2) return refuse("unroll", config.get("unroll"), "1 or 2");
  if (planes > half_warp || planes * (p.q / cols) > half_warp) {
    return refuse("planes", planes, "planes * q / cols are at most the 16 lanes of half a warp");
  }
  if (threads > 256) return refuse("threads", threads, "at most 256");
  const Shape s = outline_of(p, config);
  // Only the first and the last tile read beyond the row, and no read lies on both sides of it.
  const bool first_only = s.first + cols >= 0;
  const bool last_only = s.first + (s.reads - 1) * s.vec + (s.tiles - 2) * cols < p.w;
  if (s.tiles > 1 && !(first_only && last_only && s.first + s.behind * s.vec >= 0)) {
    return refuse("cols", cols, "fewer than the columns of padding");
  }
  if (registers_of(p, s, cols) > register_budget) return refuse("cols", cols, "the sums of r rows need more registers");
  if (config.get("warps") > most_warps(p, registers_of(p, s, cols), config)) {
    return refuse("warps", config.get("warps"), "the sums of r rows need more registers");
  }
  if (shape_of(p, config).bytes * (threads / 32) > portable_smem_limit) return too_large(threads);
  if (blocks_of(p, config) > max_grid) {
    return refuse("threads", threads, "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

/// Cycles of the busiest scheduler: instructions counted in what ptxas makes of it, and what is lost where few warps
/// hide each other's waiting. Not measured.
double cycles_of(const ConvProblem& p, const DeviceInfo& device, const Config& config, const Shape& s) {
  const std::int64_t cols = config.get("cols"), threads = config.get("threads");
  std::int64_t slots = 0, tests = 0;
  for (std::int64_t i = 0; i < s.steps; ++i) {
    std::int64_t of_row = 0;
    for (std::int64_t d = 0; d < p.r; ++d) {
      const std::int64_t row = i + p.pad_top - d;
      of_row += row >= 0 && row < s.half ? 1 : 0;
    }
    slots += of_row;
    if (config.get("unroll") == 1 && (i < s.full || i >= s.tail)) tests += 12 + 2 * of_row;
  }
  std::int64_t products = 0;  // of a slot
  for (std::int64_t i = 0; i < cols * p.s; ++i) {
    const std::int64_t column = i / p.s + i % p.s - p.pad_left;
    products += s.tiles > 1 || (column >= 0 && column < p.w) ? 1 : 0;
  }
  const std::int64_t copies = s.planes * p.h * p.w / (32 * per);
  const std::int64_t a_row = 14 + s.reads + cols / s.vec + 4 * s.stores / s.rows;
  const auto instructions = static_cast<double>(130 + 2 * copies + 2 * p.taps() + s.steps * a_row + tests) +
                            1.12 * static_cast<double>(slots * products);
  const std::int64_t sms = std::max(1, device.sm_count), warps = threads / 32;
  const std::int64_t by_registers = config.get("warps") * 4 / warps;
  const std::int64_t by_memory = 225 * 1024 / (s.bytes * warps + 1024);
  const std::int64_t mine = ceil_div(blocks_of(p, config), sms);
  const std::int64_t resident = std::max<std::int64_t>(1, std::min({by_registers, by_memory, mine})) * warps;
  const double busy = 1 - 0.4 / static_cast<double>(std::max<std::int64_t>(1, resident / 4));
  return static_cast<double>(ceil_div(mine * warps, 4)) * instructions / busy;
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<std::pair<double, Config>> estimated;
  for (int cols = 4; cols <= 16; ++cols) {
    if (p.q % cols != 0 || p.q / cols > half_warp) continue;
    const int planes = static_cast<int>(half_warp / (p.q / cols));
    const Config smallest{{{"cols", cols}, {"planes", planes}, {"unroll", 1}, {"warps", 1}, {"threads", 32}}};
    if (fits(p, smallest)) continue;
    const Shape shape = shape_of(p, smallest);
    const int warps = warps_for(registers_of(p, shape, cols));
    for (const int unroll : {2, 1}) {
      for (const int threads : {128, 64, 32}) {
        if (shape.bytes * (threads / 32) > portable_smem_limit) continue;
        Config config{{{"cols", cols}, {"planes", planes}, {"unroll", unroll}, {"warps", warps}, {"threads", threads}}};
        const double estimate = cycles_of(p, device, config, shape);
        estimated.emplace_back(estimate, std::move(config));
      }
    }
  }
  std::vector<Config> sorted = fastest_first(std::move(estimated)), configs;
  configs.reserve(6);  // g++ 12 at -O3 warns wrongly about inserting into an empty vector
  // What differs in more than the size of a block comes first; of each number of columns two at most.
  for (Config& config : sorted) {
    const auto same = std::count_if(configs.begin(), configs.end(),
                                    [&](const Config& other) { return other.get("cols") == config.get("cols"); });
    const auto twin = std::any_of(configs.begin(), configs.end(), [&](const Config& other) {
      return other.get("cols") == config.get("cols") && other.get("unroll") == config.get("unroll");
    });
    if (same < 2 && !twin && configs.size() < 5) configs.push_back(config);
  }
  if (configs.empty()) return configs;
  // One more warp a scheduler where that can be had; else blocks of another size.
  Config other = configs.front();
  const auto set = [&](const char* knob, int value) {
    for (auto& [name, now] : other.knobs) now = name == knob ? value : now;
  };
  set("unroll", 2);
  set("warps", other.get("warps") + 1);
  if (fits(p, other)) {
    other = configs.front();
    set("threads", other.get("threads") == 64 ? 32 : 64);
  }
  configs.push_back(std::move(other));
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.layout != Layout::nchw) return refuse("layout", static_cast<std::int64_t>(p.layout), "NCHW (0) only");
  if (p.dtype != DType::f32) return refuse("dtype", static_cast<std::int64_t>(p.dtype), "f32 (0) only");
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = dilated(p)) return refusal;
  if (p.stride_h != 1) return refuse("stride_h", p.stride_h, "this schedule takes 1 only");
  if (p.stride_w != 1) return refuse("stride_w", p.stride_w, "this schedule takes 1 only");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.align < 16) return refuse("align", p.align, "planes are copied 16 bytes at a time");
  if (p.r < 3) return refuse("r", p.r, "at least 3 kernel rows");
  if (p.taps() < 15) return refuse("r * s", p.taps(), "at least 15 taps; below, others read less of shared memory");
  if (p.taps() > 81) return refuse("r * s", p.taps(), "weights stay in registers, so at most 81 taps");
  if (p.pad_top != p.pad_bottom()) return refuse("pad_bottom", p.pad_bottom(), "both halves of a plane alike: pad_top");
  if (p.pad_top > p.r - 1) return refuse("pad_top", p.pad_top, "no window wholly in the padding: at most r - 1");
  if (p.p % 2 != 0) return refuse("p", p.p, "an even number of output rows");
  if (p.q % 2 != 0) return refuse("q", p.q, "an even number of output columns");
  if (p.h * p.w % per != 0) return refuse("h * w", p.h * p.w, "planes of a multiple of 16 bytes");
  if (p.h * p.w > 8192) return refuse("h * w", p.h * p.w, "at most 8192 elements: a warp keeps whole planes");
  if (p.p / 2 + p.r - 1 - p.pad_top > p.h) return refuse("h", p.h, "at least the input rows of half the output");
  if (configs_of(p, device).empty()) {
    return refuse("q", p.q, "no divisor from 4 to 16 whose sums fit in registers and whose planes in shared memory");
  }
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(p, config);
  Constants constants = common_constants(p);
  add_plane(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"COLS", config.get("cols")},           {"PLANES", s.planes},           {"PITCH", s.pitch},
      {"STAGE_HALF", s.stage_half},           {"STAGE_PLANE", s.stage_plane}, {"W_BYTES", weight_bytes(p, s.planes)},
      {"UNROLLED", config.get("unroll") - 1},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  KernelSpec spec = make_spec(dw_fold, std::move(constants), config.get("threads"));
  spec.min_blocks = std::max(1, config.get("warps") * 4 * 32 / config.get("threads"));
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const int threads = config.get("threads");
  return {.grid = blocks_of(p, config),
          .block = threads,
          .dynamic_smem = static_cast<int>(shape_of(p, config).bytes * (threads / 32))};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  out.work = geometry(p, config).grid * config.get("threads");
  out.div[0] = fast_div(p.c);
}

}  // namespace

constinit const Schedule dw_fold{
    .name = "dw_fold",
    .source = "dw_fold.cuh",
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
