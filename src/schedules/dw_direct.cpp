// dw_direct (kernels/dw_direct.cuh): everything asked for at once, for calls that latency decides. Knobs: vec (NHWC:
// channels a thread; NCHW: columns a load), cols and rows of outputs a thread, lanes threads along the channels (NHWC)
// or planes (NCHW) of a block, split threads that share the kernel rows of an output, threads.
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

/// Elements of one image and of the weights: offsets within them have 32 bits.
constexpr std::int64_t most_elements = std::int64_t{1} << 29;
constexpr std::int64_t most_reach = 64;  ///< rows or columns of a window, those between holes counted
constexpr std::size_t most_configs = 6;

std::int64_t size(const ConvProblem& p) { return static_cast<std::int64_t>(size_of(p.dtype)); }

/// Dilation along an axis with one tap means nothing.
std::int64_t dil_h(const ConvProblem& p) { return p.r == 1 ? 1 : p.dil_h; }
std::int64_t dil_w(const ConvProblem& p) { return p.s == 1 ? 1 : p.dil_w; }

/// What follows from a configuration; mirrors DirectWindow and DirectPlace of the kernel.
struct Shape {
  std::int64_t vec, cols, rows, lanes, split, threads;  // the knobs
  std::int64_t channels, outputs;                       ///< of a thread
  std::int64_t tall;                                    ///< kernel rows of a part
  std::int64_t high, span;                              ///< input rows and columns of a thread's window
  std::int64_t loads, words;                            ///< of a window; registers of one load
  std::int64_t values;                                  ///< elements of a window that are used
  std::int64_t lead;                                    ///< NCHW: columns before the window that its first load brings
  std::int64_t lines;                                   ///< channels of a block
  std::int64_t across, down;                            ///< NHWC: tiles of the output that a block covers
  std::int64_t along, blocks;                           ///< blocks over the same channels; blocks of an image
  std::int64_t copy, turns;                             ///< weights of one copy; copies a thread
  std::int64_t read;                                    ///< weights of one read
};

/// Tiles and strips of a block of `places` threads: as square as covers the output with least reading.
void cover(const ConvProblem& p, std::int64_t tiles, std::int64_t strips, std::int64_t places, Shape& s) {
  double least = 0;
  for (std::int64_t across = 1; across <= std::min(places, tiles); ++across) {
    const std::int64_t down = std::min(places / across, strips);
    const std::int64_t along = ceil_div(tiles, across) * ceil_div(strips, down);
    const std::int64_t wide = (across * s.cols - 1) * p.stride_w + (p.s - 1) * dil_w(p) + 1;
    const std::int64_t tall = (down * s.rows - 1) * p.stride_h + (p.r - 1) * dil_h(p) + 1;
    const auto input = static_cast<double>(std::min(wide, p.w) * std::min(tall, p.h));
    const double cost = static_cast<double>(along) * (input + 0.3 * static_cast<double>(places * s.rows * s.cols));
    if (least == 0 || cost < least) least = cost, s.across = across, s.down = down, s.along = along;
  }
}

Shape shape_of(const ConvProblem& p, const Config& config) {
  Shape s{};
  s.vec = config.get("vec"), s.cols = config.get("cols"), s.rows = config.get("rows");
  s.lanes = config.get("lanes"), s.split = config.get("split"), s.threads = config.get("threads");
  s.channels = nhwc(p) ? s.vec : 1;
  s.tall = ceil_div(p.r, s.split);
  s.high = (s.rows - 1) * p.stride_h + (s.tall - 1) * dil_h(p) + 1;
  s.span = (s.cols - 1) * p.stride_w + (p.s - 1) * dil_w(p) + 1;
  s.lead = nhwc(p) ? 0 : ((-p.pad_left) % s.vec + s.vec) % s.vec;
  s.outputs = s.rows * s.cols * s.channels;
  // Where stride or dilation leap, not all of the window is used.
  const std::int64_t high = std::min(s.high, s.rows * s.tall), span = std::min(s.span, s.cols * p.s);
  s.loads = high * (nhwc(p) ? span : ceil_div(s.lead + s.span, s.vec));
  s.values = high * span * s.channels;
  s.words = std::max<std::int64_t>(1, s.vec * size(p) / 4);
  s.lines = s.lanes * s.channels;
  const std::int64_t tiles = ceil_div(p.q, s.cols), strips = ceil_div(p.p, s.rows), part = s.threads / s.split;
  if (nhwc(p)) {
    cover(p, tiles, strips, part / s.lanes, s);
  } else {
    s.across = s.down = 1;
    s.along = ceil_div(s.lanes * tiles * strips, part);
  }
  s.blocks = ceil_div(p.c, s.lines) * s.along;
  s.copy = dividing_power(p.c * p.taps(), dividing_power(s.lines * p.taps(), max_vector(p)));
  s.turns = ceil_div(s.lines * p.taps() / s.copy, s.threads);
  s.read = 4;
  if (nhwc(p)) {
    s.read = std::min<std::int64_t>(s.vec, 4);
    if (s.split > 1) s.read = dividing_power(s.tall * p.s, static_cast<int>(s.read));  // every part starts on one
  }
  return s;
}

/// Registers of a thread: about what ptxas takes (within 30 of it for 700 kernels of sm_90).
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  return s.loads * s.words + s.outputs * (p.residual ? 2 : 1) + 2 * p.s * s.channels + 16;
}
/// What the register file leaves a thread of a block, less what the estimate may be wrong by.
std::int64_t register_budget(std::int64_t threads) { return std::min<std::int64_t>(200, 65536 / threads - 32); }

std::int64_t shared_bytes(const ConvProblem& p, const Shape& s) {
  // Those of a part of a plane are an odd number of fours apart (PITCH of the kernel).
  const std::int64_t fours = ceil_div(s.tall * p.s, 4), pitch = 4 * (fours + 1 - fours % 2);
  const std::int64_t weights =
      nhwc(p) ? s.lines * p.taps() + (s.tall * s.split - p.r) * p.s + 3 : s.lines * s.split * pitch;
  return 4 * (weights + (s.split - 1) * s.outputs * (s.threads / s.split));
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"vec", "cols", "rows", "lanes", "split", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int vec = config.get("vec"), cols = config.get("cols"), rows = config.get("rows"), lanes = config.get("lanes");
  const int split = config.get("split"), threads = config.get("threads");
  if (!power_of_two(vec) || vec > max_vector(p)) return refuse("vec", vec, "a power of two within the alignment class");
  if (cols > 16) return refuse("cols", cols, "at most 16");
  if (rows > 8) return refuse("rows", rows, "at most 8");
  if (nhwc(p)) {
    if (p.k % vec != 0) return refuse("vec", vec, "must divide k = " + std::to_string(p.k));
  } else {
    if (p.w % vec != 0) return refuse("vec", vec, "must divide w = " + std::to_string(p.w));
    if (cols < p.q && cols * p.stride_w % vec != 0) return refuse("vec", vec, "must divide cols * stride_w");
  }
  if (split > p.r || (split - 1) * ceil_div(p.r, split) >= p.r) return refuse("split", split, "a part without rows");
  if (threads % (32 * split) != 0) return refuse("split", split, "parts are whole warps");
  if (lanes > threads / split) return refuse("lanes", lanes, "at most threads / split");
  const Shape s = shape_of(p, config);
  if (s.high > most_reach) return refuse("rows", rows, "a window of more than 64 rows");
  if (s.span > most_reach) return refuse("cols", cols, "a window of more than 64 columns");
  if (!nhwc(p) && lanes > 1 && s.along > 1) return refuse("lanes", lanes, "planes that a block holds whole, or 1");
  if (s.turns > 16) return refuse("lanes", lanes, "too many copies of weights a thread");
  if (shared_bytes(p, s) > static_smem_limit) return refuse("lanes", lanes, "more than 48 KiB of shared memory");
  if (registers_of(p, s) > register_budget(threads)) {
    return refuse("cols", cols, "too many registers with this vec, rows and threads");
  }
  if (p.n * s.blocks > max_grid) return refuse("cols", cols, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

/// Cycles in the measure of an H200, of one image: a call's batch is compiled into nothing, so it may not decide what
/// is.
struct Cost {
  double alone;  ///< beyond those that every kernel takes
  double among;  ///< what each of many images adds
};
/// Fitted to the times of 1600 kernels of batch 1: on average the best by `alone` took 1.02 times the best of those
/// tried, the best of its first four 1.01 times. A thread's way through its instructions counts, whatever runs beside
/// it; then what the busiest multiprocessor's pipe of loads, or its issue slots, get from all.
Cost cost_of(const ConvProblem& p, const DeviceInfo& device, const Shape& s) {
  const auto count = [](std::int64_t v) { return static_cast<double>(v); };
  const double taps = count(s.tall * p.s), weights = taps * count(s.channels) / count(s.read);
  const double copies = count(s.turns) * (5 + 1.2 * count(s.copy));
  const double instructions = 250 + 4 * count(s.loads) + (size(p) == 2 ? count(s.values) : 0) +
                              count(s.outputs) * (taps + 2 + 0.25 * count(s.split - 1)) + weights + copies;
  // Of the L1 cache and shared memory; neighbouring lanes are this many bytes apart.
  const std::int64_t apart = size(p) * (nhwc(p) ? s.vec : std::min(s.cols * p.stride_w, p.w));
  const double wavefronts = count(s.loads) * std::clamp(count(apart) / 4, 1.0, 32.0) +
                            1.3 * weights * (nhwc(p) ? count(std::min<std::int64_t>(s.vec, 4)) : 1);
  // What lies together in memory: a block's channels of a pixel (NHWC) or outputs of its planes.
  const double together =
      count(size(p)) * (nhwc(p) ? count(s.lanes * s.vec) / 128
                                : count(std::min(s.lanes * p.p * p.q, s.threads / s.split * s.rows * s.cols)) / 512);
  const std::int64_t sms = std::max(1, device.sm_count), warps = s.threads / 32, blocks = ceil_div(s.blocks, sms);
  const std::int64_t registers = ceil_div(std::max<std::int64_t>(32, registers_of(p, s)), 8) * 8;
  const std::int64_t resident = std::clamp<std::int64_t>(65536 / (registers * s.threads), 1, 2048 / s.threads);
  const double all = count(blocks * warps), evenly = count(s.blocks * warps) / count(sms);
  return {.alone = std::max(0.16 * all * instructions, 1.6 * all * wavefronts) + 3 * instructions + 50 * count(warps) +
                   15 * count(blocks) + 50 / together + 1000 * count(ceil_div(blocks, resident) - 1),
          .among = evenly * std::max(0.25 * instructions, wavefronts) * (1 + 8 / count(resident * warps))};
}

struct Priced {
  Cost cost;
  Config config;
};

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Priced> all;
  const auto add = [&](int vec, int cols, int rows, std::int64_t lanes, int split, std::int64_t part) {
    Config config{{{"vec", vec},
                   {"cols", cols},
                   {"rows", rows},
                   {"lanes", static_cast<int>(lanes)},
                   {"split", split},
                   {"threads", static_cast<int>(part) * split}}};
    if (!fits(p, config)) all.push_back({cost_of(p, device, shape_of(p, config)), std::move(config)});
  };
  const auto add_shape = [&](int vec, int cols, int rows, int split) {
    for (const std::int64_t part : {64, 128, 192, 256, 320, 416}) {
      if (part * split > 512 || (part > 256 && nhwc(p))) continue;
      if (nhwc(p)) {  // parts of a pixel of equal size, of 2 to 8 sectors
        const std::int64_t vectors = ceil_div(p.c, vec);
        for (const std::int64_t most : {8, 16, 32}) {
          const std::int64_t lanes = ceil_div(vectors, ceil_div(vectors, most)), bytes = lanes * vec * size(p);
          const bool enough = bytes >= 64 || lanes == vectors || most == 32;
          if (enough && bytes <= 256) add(vec, cols, rows, lanes, split, part);
          if (lanes == vectors) break;
        }
      } else {  // one plane in blocks of equal size, or as many whole planes as there is room for
        const std::int64_t items = ceil_div(p.q, cols) * ceil_div(p.p, rows);
        const std::int64_t planes = std::clamp<std::int64_t>(part / items, 1, p.c);
        const std::int64_t threads = ceil_div(planes * items, ceil_div(planes * items, part));
        add(vec, cols, rows, planes, split, ceil_div(threads, 32) * 32);
      }
    }
  };
  for (int split = 1; split <= (p.taps() < 25 ? 1 : 5); ++split) {
    for (const int cols : {1, 2, 4, 7, 8, 14}) {
      if (cols >= 2 * covering_power(p.q, 16)) continue;  // a row shorter than that wastes the rest
      for (const int rows : {1, 2, 4}) {
        if (rows * cols > 16 || rows >= 2 * covering_power(p.p, 16)) continue;
        for (int vec = max_vector(p); vec >= 1; vec /= 2) add_shape(vec, cols, rows, split);
      }
    }
  }
  std::vector<Config> configs;
  configs.reserve(most_configs);
  const auto take = [&](std::size_t up_to, int of_a_shape, double Cost::*by) {
    std::stable_sort(all.begin(), all.end(), [&](const Priced& a, const Priced& b) { return a.cost.*by < b.cost.*by; });
    for (const Priced& next : all) {
      if (configs.size() >= up_to) break;
      const auto same = std::count_if(configs.begin(), configs.end(), [&](const Config& config) {
        const auto shape_ends = config.knobs.begin() + 3;  // vec, cols, rows
        return std::equal(config.knobs.begin(), shape_ends, next.config.knobs.begin());
      });
      const bool there = std::find(configs.begin(), configs.end(), next.config) != configs.end();
      if (same < of_a_shape && !there) configs.push_back(next.config);
    }
  };
  take(most_configs - 2, 2, &Cost::alone);
  take(most_configs, 1, &Cost::among);
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.taps() > 81) return refuse("r * s", p.taps(), "a window stays in registers, so at most 81 taps");
  const std::int64_t elements = std::max({p.c * p.h * p.w, p.k * p.p * p.q, p.w_elements()});
  if (elements > most_elements) return refuse("elements of an image", elements, "offsets within it have 32 bits");
  const std::int64_t reach_h = (p.r - 1) * dil_h(p), reach_w = (p.s - 1) * dil_w(p);
  if (reach_h >= most_reach) return refuse("(r - 1) * dil_h", reach_h, "a window of more than 64 rows");
  if (reach_w >= most_reach) return refuse("(s - 1) * dil_w", reach_w, "a window of more than 64 columns");
  if (configs_of(p, device).empty()) return refuse("r * s", p.taps(), "no window fits in registers");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(p, config);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  constants.emplace_back("C", p.c);
  add_plane(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"VEC", s.vec},           {"COLS", s.cols},
      {"ROWS", s.rows},         {"SPLIT", s.split},
      {"LEAD", s.lead},         {"STORE", nhwc(p) ? s.vec : dividing_power(p.q, dividing_power(s.cols, max_vector(p)))},
      {"LINES", s.lines},       {"COPY", s.copy},
      {"READ", s.read},         {"IMAGE_BLOCKS", s.blocks},
      {"ALONG", s.along},       {"BLOCK_TILES", s.across},
      {"BLOCK_STRIPS", s.down},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return make_spec(dw_direct, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = p.n * shape_of(p, config).blocks, .block = config.get("threads"), .dynamic_smem = 0};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  out.work = geometry(p, config).grid * config.get("threads");
}

}  // namespace

constinit const Schedule dw_direct{
    .name = "dw_direct",
    .source = "dw_direct.cuh",
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
