// grp_tf32 (kernels/grp_tf32.cuh): grouped fp32 with 4 or 8 channels a group on the matrix unit, in halves of numbers.
// Knobs: cols columns of a lane, across lanes of a row; ahead steps on their way, steps of a strip, turns of images of
// a warp; phases (1: sums move from register to register; slots_of(): the loop is unrolled instead); threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr std::int64_t most_taps = 12;  ///< whose weights fit in registers

/// Outputs of a product, and its output rows.
std::int64_t outs_of(const ConvProblem& p) { return p.multiplier() % 8 == 0 ? 8 : 4; }
std::int64_t fold_of(const ConvProblem& p) { return 8 / outs_of(p); }
/// Products of a kernel row; input rows of one.
std::int64_t steps_of(const ConvProblem& p) { return p.channels_per_group() == 8 ? p.s : ceil_div(p.s, 2); }
std::int64_t products_down(const ConvProblem& p) { return p.r + fold_of(p) - 1; }

/// Steps that add to an output.
std::int64_t slots_of(const ConvProblem& p) {
  return ceil_div((fold_of(p) - 1) * p.stride_h + p.effective_r(), fold_of(p) * p.stride_h);
}

struct Knobs {
  int cols, across, ahead, steps, turns, phases, threads;
};
Knobs knobs_of(const Config& c) {
  return {c.get("cols"),  c.get("across"), c.get("ahead"),  c.get("steps"),
          c.get("turns"), c.get("phases"), c.get("threads")};
}
Config config_of(const Knobs& k) {
  return {{{"cols", k.cols},
           {"across", k.across},
           {"ahead", k.ahead},
           {"steps", k.steps},
           {"turns", k.turns},
           {"phases", k.phases},
           {"threads", k.threads}}};
}

/// What follows from a configuration; mirrors GrpTf32 of the kernel.
struct Shape {
  std::int64_t wide, length, fresh, slots, row, images;  ///< images side by side
  std::int64_t parts, column_tiles, all_steps, strips, image_blocks, warps;
  std::int64_t bytes;  ///< of a block
  int copy, lead;
};
Shape shape_of(const ConvProblem& p, const Knobs& k) {
  Shape s{};
  s.wide = std::int64_t{k.across} * k.cols;
  s.images = 8 / k.across;
  s.parts = p.k / outs_of(p);
  s.column_tiles = ceil_div(p.q, s.wide);
  s.all_steps = ceil_div(p.p, fold_of(p));
  s.strips = ceil_div(s.all_steps, k.steps);
  s.image_blocks = ceil_div(p.n, k.turns * s.images);
  s.warps = s.parts * s.column_tiles * s.strips * s.image_blocks;
  s.fresh = fold_of(p) * p.stride_h;
  s.slots = slots_of(p);
  if (nhwc(p)) {
    s.copy = max_vector(p);
  } else {
    s.copy = dividing_power(s.column_tiles > 1 ? std::gcd(p.w, s.wide * p.stride_w) : p.w, max_vector(p));
    s.lead = static_cast<int>(((-p.pad_left) % s.copy + s.copy) % s.copy);
  }
  s.length = s.lead + (s.wide - 1) * p.stride_w + p.effective_s();
  const std::int64_t last = s.length - 1, near = k.cols * p.stride_w;
  s.row = p.channels_per_group() * (nhwc(p) ? last + last / near + 1 : (s.length + 7) / 16 * 16 + 8);
  s.bytes = 4 * (k.threads / 32) * ((k.ahead + 1) * s.images * s.fresh * s.row + outs_of(p) * per_out(p));
  return s;
}

/// Registers that ptxas gets by with; an upper bound in practice (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem& p, const Knobs& k) {
  const std::int64_t span = (k.cols - 1) * p.stride_w + p.effective_s();
  const std::int64_t weights = 4 * products_down(p) * steps_of(p), sums = 2 * slots_of(p) * k.cols;
  const std::int64_t rows = std::min<std::int64_t>(fold_of(p) * p.stride_h, 2);  // of a step, at once in registers
  const std::int64_t x = std::max<std::int64_t>(4, p.channels_per_group() / 2 * rows) * span;
  return weights + sums + x + 34 + (p.needs_64bit_offsets() ? 12 : 0);
}
std::int64_t blocks_beside(const ConvProblem& p, const Knobs& k) {
  const std::int64_t registers = round_up(std::max<std::int64_t>(registers_of(p, k), 96), 8);
  return std::clamp<std::int64_t>(65536 / (registers * k.threads), 1, 16);
}

Refusal illegal(const ConvProblem& p, const Knobs& k) {
  if (k.cols != 4 && k.cols != 8) return refuse("cols", k.cols, "4 or 8");
  if (k.across > 8 || !power_of_two(k.across)) return refuse("across", k.across, "1, 2, 4 or 8");
  if (k.phases != 1 && k.phases != slots_of(p)) {
    return refuse("phases", k.phases, "1 or " + std::to_string(slots_of(p)));
  }
  if (k.ahead > 8) return refuse("ahead", k.ahead, "at most 8");
  if (k.threads > 256) return refuse("threads", k.threads, "at most 256");
  return std::nullopt;
}

/// Of knobs that are legal.
Refusal too_large(const ConvProblem& p, const Knobs& k, const Shape& s) {
  if (s.bytes > portable_smem_limit) return refuse("ahead", k.ahead, "more than 96 KiB of shared memory");
  if (registers_of(p, k) > 225) return refuse("cols", k.cols, "too many registers");
  if (s.warps > max_grid) return refuse("steps", k.steps, "needs more warps than 2147483647");
  if (k.turns * (s.all_steps + s.slots) > max_grid) return refuse("turns", k.turns, "too many steps");
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"cols", "across", "ahead", "steps", "turns", "phases", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Knobs k = knobs_of(config);
  if (Refusal refusal = illegal(p, k)) return refusal;
  return too_large(p, k, shape_of(p, k));
}

/// Cycles, in the measure of an H200. Products and other instructions do not overlap, whatever the number of warps
/// (measured): both read their operands from one register file.
double cost_of(const ConvProblem& p, const Knobs& k, const Shape& s, const DeviceInfo& device) {
  const double products = static_cast<double>(3 * steps_of(p) * products_down(p)) * k.cols / 2.0;
  const double span = static_cast<double>((k.cols - 1) * p.stride_w + p.effective_s());
  const std::int64_t channels_of_a_lane = p.channels_per_group() / 4;
  const double numbers = static_cast<double>(channels_of_a_lane * s.fresh) * span;
  const double moves = p.channels_per_group() == 4 ? 0.9 * products : 0.0;
  const double conflicts = !nhwc(p) && k.cols == 8 ? 1.12 : 1.0;
  const double step = (6.1 * products + 1.2 * (82 + 7 * numbers + moves)) * conflicts, alone = step + 270;
  const double steps =
      static_cast<double>(std::min<std::int64_t>(k.steps, s.all_steps)) + 0.7 * static_cast<double>(s.slots - 1);
  TileModel m;
  m.smem = s.bytes;
  m.registers = 65536 / (k.threads * blocks_beside(p, k)) - 8;
  m.threads = k.threads;
  const auto multiprocessors = static_cast<double>(std::max(1, device.sm_count));
  const double blocks = std::ceil(static_cast<double>(s.warps) / (k.threads / 32.0) / multiprocessors);
  const double warps = blocks * k.threads / 128.0;  // of a multiprocessor's quarter
  const double places = static_cast<double>(resident_blocks(m, device)) * k.threads / 128.0;
  const double beside = std::min(warps, places);
  return 2500 + 700 * std::ceil(warps / places) +
         k.turns * steps * std::max(alone, beside * step) * std::max(1.0, warps / beside);
}

std::vector<Knobs> search(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<std::pair<double, Knobs>> found;
  const std::int64_t all = ceil_div(p.p, fold_of(p));
  for (const int cols : {4, 8}) {
    int across = 1;
    while (across < 8 && across * cols < p.q) across *= 2;
    for (const int ahead : {3, 2, 1}) {
      for (const std::int64_t strips : {1, 2, 3, 4, 7, 8}) {
        if (strips > all) continue;
        for (const int turns : {1, 2}) {
          if (turns * (8 / across) >= 2 * p.n || (turns > 1 && strips > 1)) continue;
          const Knobs k = {cols, across, ahead, static_cast<int>(ceil_div(all, strips)), turns, 1, 128};
          const Shape s = shape_of(p, k);
          if (!too_large(p, k, s)) found.emplace_back(cost_of(p, k, s, device), k);
        }
      }
    }
  }
  return fastest_first(std::move(found));
}

/// The least that a warp can be.
Knobs smallest(const ConvProblem& p) { return {4, 8, 1, static_cast<int>(std::min<std::int64_t>(p.p, 64)), 1, 1, 32}; }

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> configs;
  std::vector<std::array<int, 3>> kinds;  // one of each: others differ by how far they read ahead
  for (const Knobs& knobs : search(p, device)) {
    const std::array<int, 3> kind = {knobs.cols, knobs.steps, knobs.turns};
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(kind);
    configs.push_back(config_of(knobs));
    if (slots_of(p) > 1 && slots_of(p) <= 4) {  // beyond, too much code
      Knobs unrolled = knobs;
      unrolled.phases = static_cast<int>(slots_of(p));
      configs.push_back(config_of(unrolled));
    }
    if (configs.size() >= 6) break;
  }
  if (configs.empty()) configs.push_back(config_of(smallest(p)));  // it fits, see can_run
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (p.dtype != DType::f32) {
    return std::string(p.dtype == DType::f16 ? "dt = f16" : "dt = bf16") + ": f32 only; 16 bits need no halves";
  }
  const std::int64_t channels = p.channels_per_group();
  if (channels != 4 && channels != 8) return refuse("c / groups", channels, "4 or 8");
  if (channels == 4 && nhwc(p)) {
    return refuse("c / groups", channels, "8 in NHWC, where rows of 16 bytes cost more than the products");
  }
  if (p.multiplier() % channels != 0) return refuse("k / groups", p.multiplier(), "a multiple of c / groups");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.taps() < 2 || p.taps() > most_taps) return refuse("r * s", p.taps(), "2 to 12 taps");
  if (Refusal refusal = image_too_large(p)) return refusal;
  if (too_large(p, smallest(p), shape_of(p, smallest(p)))) {
    const std::int64_t down = (p.r - 1) * p.dil_h, along = (p.s - 1) * p.dil_w;
    return refuse(down > along ? "(r - 1) * dil_h" : "(s - 1) * dil_w", std::max(down, along),
                  "no tile fits in registers and shared memory");
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
  const int store = nhwc(p) ? dividing_power(2, max_vector(p)) : dividing_power(std::gcd(p.q, k.cols), max_vector(p));
  constants.insert(constants.end(), {{"COLS", k.cols},
                                     {"ACROSS", k.across},
                                     {"AHEAD", k.ahead},
                                     {"COPY", s.copy},
                                     {"WCOPY", max_vector(p)},
                                     {"LEAD", s.lead},
                                     {"STORE", store},
                                     {"PHASES", k.phases}});
  KernelSpec spec = make_spec(grp_tf32, std::move(constants), k.threads);
  spec.min_blocks = static_cast<int>(blocks_beside(p, k));
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Knobs k = knobs_of(config);
  const Shape s = shape_of(p, k);
  return {.grid = ceil_div(s.warps, k.threads / 32), .block = k.threads, .dynamic_smem = static_cast<int>(s.bytes)};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Knobs k = knobs_of(config);
  const Shape s = shape_of(p, k);
  out = common_params(p);
  out.work = s.warps * 32;
  out.div[0] = fast_div(s.parts);
  out.div[1] = fast_div(s.column_tiles);
  out.div[2] = fast_div(s.strips);
  out.aux[0] = k.steps;
  out.aux[1] = k.turns;
  out.aux[2] = s.image_blocks;
}

}  // namespace

constinit const Schedule grp_tf32{
    .name = "grp_tf32",
    .source = "grp_tf32.cuh",
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
