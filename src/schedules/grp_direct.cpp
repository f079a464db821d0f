// grp_direct (kernels/grp_direct.cuh): groups, everything asked for at once, for calls that latency decides. Knobs:
// outs outputs of one group, cols and rows of places a thread, split threads that share a group's channels, vec (NHWC:
// channels a load; NCHW: columns), lanes units of outs outputs a block, threads.
#include <algorithm>
#include <tuple>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

/// Elements of one image and of the weights: offsets within them have 32 bits.
constexpr std::int64_t most_elements = std::int64_t{1} << 29;
constexpr std::int64_t most_channels = 8, most_taps = 81;
constexpr std::int64_t most_reach = 64;       ///< rows or columns of a window, those between holes counted
constexpr std::int64_t most_products = 2400;  ///< of a thread, all of them unrolled

std::int64_t size(const ConvProblem& p) { return static_cast<std::int64_t>(size_of(p.dtype)); }

/// Dilation along an axis with one tap means nothing.
std::int64_t dil_h(const ConvProblem& p) { return p.r == 1 ? 1 : p.dil_h; }
std::int64_t dil_w(const ConvProblem& p) { return p.s == 1 ? 1 : p.dil_w; }

struct Knobs {
  int outs, cols, rows, split, vec, lanes, threads;
  friend bool operator==(const Knobs&, const Knobs&) = default;
};
Knobs knobs_of(const Config& c) {
  return {c.get("outs"), c.get("cols"), c.get("rows"), c.get("split"), c.get("vec"), c.get("lanes"), c.get("threads")};
}
Config config_of(const Knobs& k) {
  return {{{"outs", k.outs},
           {"cols", k.cols},
           {"rows", k.rows},
           {"split", k.split},
           {"vec", k.vec},
           {"lanes", k.lanes},
           {"threads", k.threads}}};
}

/// What follows from a configuration; mirrors GroupWindow, GroupPlace and DirectGroupWeights of the kernel.
struct Shape {
  std::int64_t outs, cols, rows, split, vec, lanes, threads;  // the knobs
  std::int64_t share;                                         ///< channels of a thread
  std::int64_t outputs, products;                             ///< sums of a thread; their multiply-adds
  std::int64_t high, span;                                    ///< input rows and columns of a thread's window
  std::int64_t loads, words, values;                          ///< of a window; registers of a load; elements used
  std::int64_t lead;           ///< NCHW: columns before the window that its first load brings
  std::int64_t across, down;   ///< NHWC: tiles of the output that a block covers
  std::int64_t along, blocks;  ///< blocks over the same units; blocks of an image
  std::int64_t copy, turns;    ///< weights of one copy; copies a thread
  std::int64_t reads, shared;  ///< reads of weights a thread; bytes that the block keeps of them
};

/// Tiles and strips of a block of `places` tiles: as square as covers the output with least reading.
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

std::int64_t units(const ConvProblem& p, std::int64_t outs) { return p.k / outs; }

Shape shape_of(const ConvProblem& p, const Knobs& k) {
  Shape s{};
  s.outs = k.outs, s.cols = k.cols, s.rows = k.rows, s.split = k.split;
  s.vec = k.vec, s.lanes = k.lanes, s.threads = k.threads;
  s.share = p.channels_per_group() / s.split;
  s.outputs = s.outs * s.rows * s.cols;
  s.products = s.outputs * s.share * p.taps();
  s.high = (s.rows - 1) * p.stride_h + (p.r - 1) * dil_h(p) + 1;
  s.span = (s.cols - 1) * p.stride_w + (p.s - 1) * dil_w(p) + 1;
  s.lead = nhwc(p) ? 0 : ((-p.pad_left) % s.vec + s.vec) % s.vec;
  // Where stride or dilation leap, not all of the window is used.
  const std::int64_t high = std::min(s.high, s.rows * p.r), span = std::min(s.span, s.cols * p.s);
  s.loads = high * (nhwc(p) ? span * s.share / s.vec : ceil_div(s.lead + s.span, s.vec) * s.share);
  s.values = high * span * s.share;
  s.words = std::max<std::int64_t>(1, s.vec * size(p) / 4);
  const std::int64_t tiles = ceil_div(p.q, s.cols), strips = ceil_div(p.p, s.rows), places = s.threads / s.split;
  if (nhwc(p)) {
    cover(p, tiles, strips, std::max<std::int64_t>(1, places / s.lanes), s);
  } else {
    s.across = s.down = 1;
    s.along = ceil_div(s.lanes * tiles * strips, places);
  }
  s.blocks = ceil_div(units(p, s.outs), s.lanes) * s.along;
  const std::int64_t weights = s.lanes * s.outs * per_out(p);
  s.copy = dividing_power(p.k * per_out(p), dividing_power(weights, max_vector(p)));
  s.turns = ceil_div(weights / s.copy, s.threads);
  const std::int64_t reads = ceil_div(s.share * p.taps(), 4), out = s.split * (reads + 1 - reads % 2);
  s.reads = reads * s.outs;
  s.shared = 16 * (s.lanes * (s.outs * out + ((s.split - s.outs * out) % 8 + 8) % 8) + 1);
  return s;
}

/// Registers of a thread, about.
std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t window = s.loads * s.words + (size(p) == 2 ? s.values / 4 : 0);
  return window + s.outputs * (p.residual ? 5 : 1) / 4 + 4 * s.outs + s.split + 24;
}
/// What the register file leaves a thread of a block, less what the estimate may be wrong by.
std::int64_t register_budget(std::int64_t threads) { return std::min<std::int64_t>(200, 65536 / threads - 32); }

Refusal illegal(const ConvProblem& p, const Knobs& k) {
  if (k.outs > 16 || p.multiplier() % k.outs != 0) {
    return refuse("outs", k.outs, "at most 16, and must divide k / groups");
  }
  if (k.cols > 16) return refuse("cols", k.cols, "at most 16");
  if (k.rows > 8) return refuse("rows", k.rows, "at most 8");
  if (!power_of_two(k.split) || k.split > 8 || p.channels_per_group() % k.split != 0 || k.outs % k.split != 0) {
    return refuse("split", k.split, "1, 2, 4 or 8, and must divide c / groups and outs");
  }
  if (!power_of_two(k.vec) || k.vec > max_vector(p)) {
    return refuse("vec", k.vec, "a power of two within the alignment class");
  }
  if (nhwc(p)) {
    if (p.channels_per_group() / k.split % k.vec != 0) return refuse("vec", k.vec, "must divide c / groups / split");
  } else {
    if (p.w % k.vec != 0) return refuse("vec", k.vec, "must divide w = " + std::to_string(p.w));
    if (k.cols < p.q && k.cols * p.stride_w % k.vec != 0) return refuse("vec", k.vec, "must divide cols * stride_w");
  }
  if (k.lanes > k.threads / k.split) return refuse("lanes", k.lanes, "at most threads / split");
  return std::nullopt;
}

/// What does not fit of a legal one.
Refusal too_large(const ConvProblem& p, const Shape& s) {
  if (s.high > most_reach) return refuse("rows", s.rows, "a window of more than 64 rows");
  if (s.span > most_reach) return refuse("cols", s.cols, "a window of more than 64 columns");
  if (s.products > most_products) return refuse("outs", s.outs, "too many products a thread");
  if (!nhwc(p) && s.lanes > 1 && s.along > 1) return refuse("lanes", s.lanes, "planes that a block holds whole, or 1");
  if (s.turns > 16) return refuse("lanes", s.lanes, "too many copies of weights a thread");
  if (s.shared > static_smem_limit) return refuse("lanes", s.lanes, "more than 48 KiB of shared memory");
  if (registers_of(p, s) + s.turns * std::max<std::int64_t>(1, s.copy * size(p) / 4) > register_budget(s.threads)) {
    return refuse("cols", s.cols, "too many registers with these outs, rows and threads");
  }
  if (p.n * s.blocks > max_grid) return refuse("cols", s.cols, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"outs", "cols", "rows", "split", "vec", "lanes", "threads"}))
    return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const Knobs k = knobs_of(config);
  if (Refusal refusal = illegal(p, k)) return refusal;
  return too_large(p, shape_of(p, k));
}

/// Elements of one store.
std::int64_t store_of(const ConvProblem& p, const Shape& s) {
  return nhwc(p) ? dividing_power(s.outs / s.split, max_vector(p))
                 : dividing_power(p.q, dividing_power(s.cols, max_vector(p)));
}

/// Nanoseconds of one image on an H200, beyond what every kernel takes: a call's batch is compiled into nothing, so it
/// may not decide what is. Fitted to the times of 1170 kernels: on average the first took 1.04 times the best of those
/// tried, the best of six 1.004 times. What counts beside a thread's way through its instructions is how many pieces of
/// memory the 32 threads of a warp read and write at once, for all warps of a multiprocessor.
double cost_of(const ConvProblem& p, const DeviceInfo& device, const Shape& s) {
  const auto count = [](std::int64_t v) { return static_cast<double>(v); };
  const double handed = 2 * count(s.outputs) * (1 - 1 / count(s.split));
  const double instructions = 200 + 3 * count(s.loads) + (size(p) == 2 ? count(s.values) : 0) + count(s.products) +
                              handed + 2 * count(s.outputs) / count(s.split) + 12 * count(s.turns);
  const std::int64_t store = store_of(p, s);
  const double stores = count(s.outputs) / count(s.split) / count(store);
  // Bytes from one thread's load to the next one's, and pieces of a load and of a store.
  double apart = count(size(p) * s.vec), read = 0, written = 0;
  if (nhwc(p)) {
    const double pixels = std::max(1.0, 32 / count(s.lanes * s.split));
    read = std::max(pixels, apart / 4), written = std::max(pixels, count(store * size(p)) / 4);
  } else {
    apart = count(size(p) * std::min(s.cols * p.stride_w, p.w));
    read = std::max(count(s.split), std::min(apart, 128.0) / 4);
    written = std::max(count(s.split), count(size(p) * std::min(s.cols, p.q)) / 4);
  }
  const std::int64_t readers = nhwc(p) ? std::min<std::int64_t>(s.lanes * s.split, 32) : s.split;
  const double weights = count(s.reads) * std::max(1.0, count(readers) / 8);
  const double loads = count(s.loads) * (0.11 * std::clamp(apart / 4, 1.0, 32.0) + 0.23 * read);
  const double warps = count(ceil_div(s.blocks, std::max(1, device.sm_count)) * (s.threads / 32));
  return 0.35 * instructions + 45 * count(s.turns) +
         warps * (5 + loads + 0.54 * weights + 1.4 * stores * written + 0.35 * handed);
}

struct Priced {
  double cost;
  Knobs knobs;
};

/// The least that a thread can do, where its window fits.
Knobs smallest() { return {1, 1, 1, 1, 1, 1, 64}; }

/// What is worth a look, with its cost.
std::vector<Priced> every_config(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Priced> all;
  const auto add = [&](const Knobs& k) {
    if (illegal(p, k)) return;
    const Shape s = shape_of(p, k);
    if (!too_large(p, s)) all.push_back({cost_of(p, device, s), k});
  };
  const auto add_blocks = [&](Knobs k) {
    const std::int64_t row = units(p, k.outs), items = ceil_div(p.q, k.cols) * ceil_div(p.p, k.rows);
    for (const int threads : {64, 128, 256}) {
      const std::int64_t places = threads / k.split;
      k.threads = threads;
      if (nhwc(p)) {  // equal parts of a pixel
        for (const std::int64_t most : {4, 8, 16, 32}) {
          k.lanes = static_cast<int>(ceil_div(row, ceil_div(row, most)));
          add(k);
          if (k.lanes == row) break;
        }
      } else {  // one unit in blocks of equal size, or as many whole ones as there is room for
        const std::int64_t lanes = std::clamp<std::int64_t>(places / items, 1, row), all_items = lanes * items;
        k.lanes = static_cast<int>(lanes);
        k.threads = 32 * static_cast<int>(ceil_div(ceil_div(all_items, ceil_div(all_items, places)) * k.split, 32));
        add(k);
      }
    }
  };
  for (const int outs : {1, 2, 3, 4, 5, 6, 7, 8}) {
    if (p.multiplier() % outs != 0) continue;
    for (const int split : {1, 2, 4, 8}) {
      if (p.channels_per_group() % split != 0 || outs % split != 0) continue;
      const int widest = nhwc(p) ? dividing_power(p.channels_per_group() / split, max_vector(p)) : max_vector(p);
      for (const int cols : {1, 2, 4, 7, 8}) {
        if (cols >= 2 * covering_power(p.q, 16)) continue;  // a row shorter than that wastes the rest
        for (const int rows : {1, 2, 4}) {
          if (rows >= 2 * covering_power(p.p, 16)) continue;
          for (int vec = widest; vec >= (nhwc(p) ? widest : 1); vec /= 2) {
            add_blocks({outs, cols, rows, split, vec, 1, 64});
          }
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [&](const Priced& a, const Priced& b) { return a.cost < b.cost; });
  return all;
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  // 8 channels a group in 16 bits are the matrix unit's.
  const std::size_t most = size(p) == 2 && p.channels_per_group() == 8 ? 3 : 6;
  std::vector<Knobs> chosen;
  for (const Priced& next : every_config(p, device)) {
    if (chosen.size() == most) break;
    const auto same = std::count_if(chosen.begin(), chosen.end(), [&k = next.knobs](const Knobs& other) {
      return std::tie(k.outs, k.cols, k.rows, k.split, k.vec) ==
             std::tie(other.outs, other.cols, other.rows, other.split, other.vec);
    });
    const bool there = std::find(chosen.begin(), chosen.end(), next.knobs) != chosen.end();
    if (same < 2 && !there) chosen.push_back(next.knobs);
  }
  if (chosen.empty()) chosen.push_back(smallest());  // it fits, see can_run
  std::vector<Config> configs;
  configs.reserve(chosen.size());
  for (const Knobs& knobs : chosen) configs.push_back(config_of(knobs));
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.depthwise() && p.multiplier() == 1) {
    return refuse("k / groups", 1, "at least 2 where c / groups is 1: plain depthwise belongs to the dw schedules");
  }
  if (p.channels_per_group() > most_channels) return refuse("c / groups", p.channels_per_group(), "at most 8");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.taps() > most_taps) return refuse("r * s", p.taps(), "a window stays in registers, so at most 81 taps");
  const std::int64_t elements = std::max({p.c * p.h * p.w, p.k * p.p * p.q, p.w_elements()});
  if (elements > most_elements) return refuse("elements of an image", elements, "offsets within it have 32 bits");
  const std::int64_t reach_h = (p.r - 1) * dil_h(p), reach_w = (p.s - 1) * dil_w(p);
  if (reach_h >= most_reach) return refuse("(r - 1) * dil_h", reach_h, "a window of more than 64 rows");
  if (reach_w >= most_reach) return refuse("(s - 1) * dil_w", reach_w, "a window of more than 64 columns");
  if (too_large(p, shape_of(p, smallest())) && every_config(p, device).empty()) {
    return refuse("r * s", p.taps(), "no window fits in registers");
  }
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(p, knobs_of(config));
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  add_sizes(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"OUTS", s.outs},         {"COLS", s.cols},           {"ROWS", s.rows},          {"SPLIT", s.split},
      {"VEC", s.vec},           {"LEAD", s.lead},           {"STORE", store_of(p, s)}, {"LINES", s.lanes},
      {"COPY", s.copy},         {"IMAGE_BLOCKS", s.blocks}, {"ALONG", s.along},        {"BLOCK_TILES", s.across},
      {"BLOCK_STRIPS", s.down},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return make_spec(grp_direct, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = p.n * shape_of(p, knobs_of(config)).blocks, .block = config.get("threads"), .dynamic_smem = 0};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  out.work = geometry(p, config).grid * config.get("threads");
}

}  // namespace

constinit const Schedule grp_direct{
    .name = "grp_direct",
    .source = "grp_direct.cuh",
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
