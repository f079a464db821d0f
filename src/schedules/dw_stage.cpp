// dw_stage (kernels/dw_stage.cuh): input rows staged through a ring in shared memory. Knobs: vec (NHWC: channels a
// thread; NCHW: 1), cols outputs along the row a thread, lanes threads along the channels (NHWC) or planes (NCHW),
// tiles threads along the row, stages of the ring, rows of a strip (a run-time number: it costs no compilation),
// threads.
#include <algorithm>
#include <array>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr std::int64_t most_turns = 8;  ///< copies a thread issues for one stage; each keeps two registers

std::int64_t size(const ConvProblem& p) { return static_cast<std::int64_t>(size_of(p.dtype)); }

/// Dilation along an axis with one tap means nothing.
std::int64_t dil_h(const ConvProblem& p) { return p.r == 1 ? 1 : p.dil_h; }
std::int64_t dil_w(const ConvProblem& p) { return p.s == 1 ? 1 : p.dil_w; }

/// Elements that one asynchronous copy moves: they divide what lies together in memory (the channels of a pixel, the
/// row of a plane). Below 4 bytes there is no such copy.
std::int64_t copy_elements(const ConvProblem& p) { return dividing_power(nhwc(p) ? p.c : p.w, max_vector(p)); }

/// What follows from a configuration; mirrors StageShape of the kernel.
struct Shape {
  std::int64_t channels, tile, span, wide, slots, fresh, per, lead, pitch, stage, turns, bytes;
};
/// A thread has a whole row, and the input begins within its window.
bool whole(const ConvProblem& p, const Config& config) {
  return config.get("cols") == p.q && config.get("tiles") == 1 &&
         p.pad_left < (p.q - 1) * p.stride_w + (p.s - 1) * dil_w(p) + 1;
}

/// NCHW: stored by each thread for itself, rows of an odd number of outputs, or far apart, are many small writes.
bool via_shared(const ConvProblem& p, const Config& config) {
  return !nhwc(p) && (config.get("cols") % 2 != 0 || whole(p, config)) && config.get("cols") > 1;
}

/// Bytes of a copy of weights: they divide the weights of a block and of all channels.
std::int64_t weight_chunk(const ConvProblem& p, const Config& config) {
  const std::int64_t block = std::int64_t{config.get("lanes")} * config.get("vec") * p.taps();
  const std::int64_t bytes = dividing_power(p.c * p.taps(), dividing_power(block, max_vector(p))) * size(p);
  return bytes < 4 ? 0 : bytes;
}

/// NCHW: elements from one line of a stage to the next, such that a warp's reads of its windows meet in few banks. Up
/// to 3x3, where shared memory decides how many blocks there are, lines lie close.
std::int64_t pitch_of(const ConvProblem& p, const Config& config, const Shape& s) {
  const std::int64_t dense = ceil_div(s.lead + s.wide, s.per) * s.per;
  const std::int64_t tiles = config.get("tiles"), move = tiles > 1 ? config.get("cols") * p.stride_w : 0;
  const std::int64_t furthest = p.taps() <= 9 ? s.per : 8 * s.per;
  std::int64_t best = dense, best_cost = 0;
  for (std::int64_t pitch = dense; pitch < dense + furthest; pitch += s.per) {
    const int vec = dividing_power(move > 0 ? move : pitch, dividing_power(pitch, static_cast<int>(16 / size(p))));
    std::array<std::int64_t, 32> at{};
    for (std::int64_t i = 0; i < 32; ++i) {
      at[static_cast<std::size_t>(i)] = (i / tiles * pitch + i % tiles * move) * size(p);
    }
    const std::int64_t reads = ceil_div(s.lead + std::min(s.span, s.wide), vec) - s.lead / vec;
    const std::int64_t cost = reads * shared_wavefronts(at, vec * size(p));
    if (best_cost == 0 || cost < best_cost) best_cost = cost, best = pitch;
  }
  return best;
}

Shape shape_of(const ConvProblem& p, const Config& config) {
  const std::int64_t vec = config.get("vec"), cols = config.get("cols"), lanes = config.get("lanes");
  Shape s{};
  s.channels = nhwc(p) ? vec : 1;
  s.tile = config.get("tiles") * cols;
  const std::int64_t reach = (p.s - 1) * dil_w(p) + 1;
  s.span = (cols - 1) * p.stride_w + reach;
  s.wide = whole(p, config) ? std::min(s.span - p.pad_left, p.w) : (s.tile - 1) * p.stride_w + reach;
  s.slots = ceil_div(p.r, p.stride_h);
  s.fresh = std::min(p.stride_h, p.r);
  s.per = copy_elements(p);
  std::int64_t copies = 0;  // of a stage
  if (nhwc(p)) {
    s.per = dividing_power(lanes * vec, static_cast<int>(s.per));
    s.pitch = s.wide * lanes * vec;
    s.stage = s.fresh * s.pitch;
    copies = s.stage / s.per;
  } else {
    // Where the tiles of a row do not start on copy boundaries, copies are narrower.
    if (s.tile < p.q) s.per = dividing_power(s.tile * p.stride_w, static_cast<int>(s.per));
    s.lead = whole(p, config) ? 0 : ((-p.pad_left) % s.per + s.per) % s.per;
    s.pitch = pitch_of(p, config, s);
    s.stage = s.fresh * s.pitch * lanes;
    copies = s.fresh * lanes * ceil_div(s.lead + s.wide, s.per);
  }
  s.turns = ceil_div(copies, config.get("threads"));
  s.bytes = ceil_div(lanes * s.channels * p.taps() * size(p), 16) * 16 + s.stage * config.get("stages") * size(p);
  if (via_shared(p, config)) s.bytes += ceil_div(2 * 4 * lanes * s.tile, 16) * 16;
  return s;
}

/// Registers a thread needs; an upper bound in practice, set against ptxas (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem& p, const Shape& s, std::int64_t cols) {
  const std::int64_t sums = s.slots * cols * s.channels;
  const std::int64_t offsets = s.turns * (p.needs_64bit_offsets() ? 3 : 2);
  return p.taps() * s.channels + sums + s.span * s.channels + offsets + 40;
}
/// What the register file leaves a thread of a block.
std::int64_t register_budget(int threads) { return std::min<std::int64_t>(225, 65536 / threads - 4); }

std::int64_t strips_of(const ConvProblem& p, std::int64_t rows) { return ceil_div(ceil_div(p.p, dil_h(p)), rows); }

struct Grid {
  std::int64_t channel_blocks, tiles, strips, outer;
  std::int64_t blocks(const ConvProblem& p) const { return channel_blocks * tiles * strips * dil_h(p) * outer; }
};
Grid grid_of(const ConvProblem& p, const Config& config) {
  const std::int64_t lanes = config.get("lanes"), channels = lanes * config.get("vec");
  return {.channel_blocks = nhwc(p) ? ceil_div(p.c, channels) : 1,
          .tiles = ceil_div(p.q, std::int64_t{config.get("tiles")} * config.get("cols")),
          .strips = strips_of(p, config.get("rows")),
          .outer = nhwc(p) ? p.n : ceil_div(p.n * p.c, lanes)};
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"vec", "cols", "lanes", "tiles", "stages", "rows", "threads"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int vec = config.get("vec"), cols = config.get("cols"), lanes = config.get("lanes");
  const int tiles = config.get("tiles"), stages = config.get("stages"), threads = config.get("threads");
  if (nhwc(p)) {
    if (!power_of_two(vec) || vec > max_vector(p)) {
      return refuse("vec", vec, "a power of two within the alignment class");
    }
    if (p.k % vec != 0) return refuse("vec", vec, "must divide k = " + std::to_string(p.k));
  } else if (vec != 1) {
    return refuse("vec", vec, "1 in NCHW");
  }
  if (cols > 16) return refuse("cols", cols, "at most 16");
  if (lanes > threads || tiles > threads || lanes * tiles > threads) {
    return refuse("tiles", tiles, "lanes * tiles must not exceed threads");
  }
  if (stages < 2 || stages > 16) return refuse("stages", stages, "2 to 16");
  const Shape shape = shape_of(p, config);
  if (shape.per * size(p) < 4) return refuse("lanes", lanes, "copies of 4 bytes at least");
  if (shape.turns > most_turns) return refuse("threads", threads, "too many copies a thread");
  if (shape.bytes > portable_smem_limit) return refuse("stages", stages, "more than 96 KiB of shared memory");
  if (registers_of(p, shape, cols) > register_budget(threads)) {
    return refuse("cols", cols, "too many registers with this vec and threads");
  }
  if (grid_of(p, config).blocks(p) > max_grid) {
    return refuse("rows", config.get("rows"), "needs more blocks than the 2147483647 of a grid");
  }
  return std::nullopt;
}

/// Rows of a strip such that the blocks share out evenly over the multiprocessors, counting what overlap costs.
int rows_for(const ConvProblem& p, const DeviceInfo& device, const Config& one_strip) {
  Config config = one_strip;
  const std::int64_t height = ceil_div(p.p, dil_h(p));
  config.knobs[5].second = static_cast<int>(height);
  const Shape shape = shape_of(p, config);
  const std::int64_t cols = config.get("cols"), threads = config.get("threads");
  // Blocks a multiprocessor holds: what is typical here, where registers_of() is a bound. Each of its four parts gives
  // whole warps their registers, eight at a time.
  const std::int64_t registers =
      p.taps() * shape.channels + shape.slots * cols * shape.channels + shape.span * shape.channels / 2 + 32;
  const std::int64_t warps = 4 * (16384 / (32 * ceil_div(registers, 8) * 8));
  const std::int64_t resident =
      std::max<std::int64_t>(1, std::min({warps / (threads / 32), 2048 / threads, 220 * 1024 / (shape.bytes + 1024)}));
  const std::int64_t sms = std::max(1, device.sm_count);
  const std::int64_t blocks_of_one = grid_of(p, config).blocks(p);
  // Steps over rows of padding, which the first and the last strip have, cost next to nothing. (Up to 3x3 the weights
  // below were set without them.)
  const bool small = p.taps() <= 9;
  const std::int64_t padding = p.pad_top + std::max<std::int64_t>(0, p.pad_bottom());
  const std::int64_t unfed = small ? 0 : std::min(padding / (p.stride_h * dil_h(p)), shape.slots - 1);
  std::int64_t best = height;
  double best_cost = 0;
  for (std::int64_t strips = 1; strips <= height; ++strips) {
    const std::int64_t rows = ceil_div(height, strips);
    if (ceil_div(height, rows) != strips) continue;
    // The busiest multiprocessor works through its blocks' rows; every wave fills the rings again; few blocks wait for
    // each copy alone (3x3 C = 144, 56x56, f16: one block of two takes 1.15 times as long a row, one of five 1.4 times)
    // and leave schedulers idle, which costs more where the multiply-adds are the limit.
    const std::int64_t blocks = ceil_div(blocks_of_one * strips, sms), waves = ceil_div(blocks, resident);
    const auto alone =
        static_cast<double>(std::max<std::int64_t>(0, resident - blocks)) / static_cast<double>(resident);
    const double steps =
        static_cast<double>(rows + shape.slots - 1) - static_cast<double>(unfed) / static_cast<double>(strips);
    const double cost =
        (static_cast<double>(blocks) * steps + static_cast<double>(waves * std::min(resident, blocks) * 2)) *
        (1 + (small ? 0.4 : 1.0) * alone);
    if (best_cost == 0 || cost < best_cost) best_cost = cost, best = rows;
  }
  return static_cast<int>(best);
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  struct Try {
    int vec, cols, lanes, threads, stages;  // lanes, threads: at most
  };
  std::vector<Try> tries;
  const bool long_rows = p.s > 2 * p.r && p.s > 8;
  tries.reserve(16);  // g++ 12 at -O3 warns wrongly about inserting into an empty vector
  if (nhwc(p)) {
    const int two = size(p) == 2 ? 2 : 1;  // 4 bytes a thread and pixel
    if (p.taps() <= 9) {
      tries = {{two, 7, 96, 160, 4}, {4, 4, 64, 256, 4},   {two, 4, 96, 352, 4},
               {1, 4, 96, 256, 4},   {two, 7, 96, 288, 4}, {two, 4, 96, 512, 6}};
    } else if (long_rows) {  // a wide tile, or most of what it reads is overlap
      tries = {{1, 16, 32, 256, 2}, {1, 8, 32, 256, 2}, {1, 12, 32, 256, 2}, {1, 16, 32, 128, 2}};
    } else if (p.taps() < 49) {
      tries = {{1, 14, 32, 32, 4}, {1, 7, 32, 64, 4},    {1, 7, 32, 128, 4},
               {1, 8, 32, 64, 4},  {two, 4, 96, 128, 4}, {1, 4, 32, 64, 4}};
      if (two == 2) std::swap(tries[0], tries[1]);
    } else if (p.taps() == 49) {
      tries = {{1, 14, 32, 32, 4}, {1, 7, 32, 64, 4}, {1, 7, 32, 128, 4},
               {1, 8, 32, 64, 4},  {1, 4, 32, 64, 4}, {1, 4, 32, 128, 4}};
    } else {
      tries = {{1, 4, 32, 64, 4}, {1, 4, 32, 128, 4}, {1, 7, 32, 64, 4}, {1, 4, 32, 32, 4}};
    }
  } else if (p.taps() <= 9) {
    tries = {{1, 4, 128, 128, 4}, {1, 8, 128, 128, 4}, {1, 4, 128, 128, 8}, {1, 4, 128, 256, 4}};
  } else if (long_rows) {
    tries = {{1, 8, 64, 64, 4}, {1, 4, 128, 128, 4}, {1, 8, 128, 128, 4}, {1, 4, 64, 64, 4}};
  } else if (p.taps() <= 49) {
    tries = {{1, 4, 64, 64, 4},   {1, 7, 64, 64, 4}, {1, 14, 32, 32, 4},
             {1, 4, 128, 128, 4}, {1, 8, 64, 64, 4}, {1, 7, 128, 128, 4}};
  } else {
    tries = {{1, 4, 64, 64, 4}, {1, 4, 128, 128, 4}, {1, 8, 64, 64, 4}, {1, 8, 128, 128, 4}};
  }
  if (p.taps() > 9) {  // shapes that compute a twelfth of the columns and more in vain come last
    std::stable_partition(tries.begin(), tries.end(), [&](const Try& one) {
      return one.cols <= 4 || (ceil_div(p.q, one.cols) * one.cols - p.q) * 12 < p.q;
    });
  }
  tries.insert(tries.end(), {{1, 4, 96, 128, 2}, {1, 2, 96, 128, 2}, {1, 1, 96, 128, 2}});

  std::vector<Config> configs;
  for (const auto& [vec, cols, most_lanes, threads, stages] : tries) {
    if (cols >= 2 * covering_power(p.q, 16)) continue;  // a row shorter than that wastes the rest
    if (cols == 14 && p.q != 14) continue;              // worth its registers where a thread has a whole row
    int tiles = 1, lanes = 1;
    if (nhwc(p)) {
      // Whole pixels where they are small; else parts of equal size.
      const std::int64_t all = ceil_div(p.c, vec);
      const std::int64_t parts = ceil_div(all, std::min(most_lanes, threads));
      const std::int64_t unit = std::max<std::int64_t>(1, copy_elements(p) / vec);
      lanes = static_cast<int>(ceil_div(ceil_div(all, parts), unit) * unit);
      const std::int64_t row = ceil_div(p.q, cols);
      const std::int64_t at_most = std::max(1, threads / lanes);
      tiles = static_cast<int>(ceil_div(row, ceil_div(row, at_most)));
    } else {
      const std::int64_t row = ceil_div(p.q, cols);
      tiles = static_cast<int>(ceil_div(row, ceil_div(row, threads)));
      lanes = static_cast<int>(std::clamp<std::int64_t>(p.n * p.c, 1, threads / tiles));
    }
    Config config{{{"vec", vec},
                   {"cols", cols},
                   {"lanes", lanes},
                   {"tiles", tiles},
                   {"stages", stages},
                   {"rows", 1},
                   {"threads", static_cast<int>(ceil_div(std::int64_t{lanes} * tiles, 32) * 32)}}};
    if (fits(p, config)) continue;
    config.knobs[5].second = rows_for(p, device, config);
    if (!fits(p, config) && std::find(configs.begin(), configs.end(), config) == configs.end()) {
      configs.push_back(std::move(config));
    }
  }
  if (configs.size() > 6) configs.resize(6);
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (dil_h(p) > 1 && p.stride_h > 1) return refuse("dil_h", p.dil_h, "1 where stride_h is not 1");
  if (p.taps() > 81) return refuse("r * s", p.taps(), "weights stay in registers, so at most 81 taps");
  if (p.r > 16) return refuse("r", p.r, "at most 16 kernel rows");
  if (copy_elements(p) * size(p) < 4) {
    return refuse(nhwc(p) ? "c" : "w", nhwc(p) ? p.c : p.w, "rows are copied 4 bytes at a time at least");
  }
  if (configs_of(p, device).empty()) {
    return refuse("(s - 1) * dil_w", (p.s - 1) * dil_w(p), "no tile fits in registers and shared memory");
  }
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape shape = shape_of(p, config);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  for (const char* knob : {"vec", "cols", "lanes", "tiles", "stages"}) {
    std::string name = knob;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    constants.emplace_back(std::move(name), config.get(knob));
  }
  constants.emplace_back("CHUNK", shape.per * size(p));
  constants.emplace_back("LEAD", shape.lead);
  const std::int64_t run = via_shared(p, config) ? shape.tile : config.get("cols");
  constants.emplace_back("STORE", nhwc(p) ? 1 : dividing_power(p.q, dividing_power(run, max_vector(p))));
  constants.emplace_back("PITCH", nhwc(p) ? 0 : shape.pitch);
  constants.emplace_back("WHOLE", whole(p, config) ? 1 : 0);
  constants.emplace_back("WIDTH", whole(p, config) ? p.w : 0);
  constants.emplace_back("PAD_LEFT", whole(p, config) ? p.pad_left : 0);
  constants.emplace_back("WEIGHT_CHUNK", weight_chunk(p, config));
  constants.emplace_back("VIA_SHARED", via_shared(p, config) ? 1 : 0);
  constants.emplace_back("EVEN", p.q % config.get("cols") == 0 ? 1 : 0);
  constants.emplace_back("X_ROW", nhwc(p) ? p.w * p.c : p.w);
  constants.emplace_back("Y_ROW", nhwc(p) ? p.q * p.k : p.q);
  constants.emplace_back("APART", nhwc(p) ? p.c : 1);
  KernelSpec spec = make_spec(dw_stage, std::move(constants), config.get("threads"));
  // 7 columns of 7x7 do with 128 registers, so that a scheduler has four warps; by itself the compiler takes a few
  // more.
  if (nhwc(p) && p.dtype == DType::f32 && p.taps() == 49 && config.get("cols") == 7 && config.get("vec") == 1) {
    spec.min_blocks = 512 / config.get("threads");
  }
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = grid_of(p, config).blocks(p),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(shape_of(p, config).bytes)};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Grid grid = grid_of(p, config);
  out = common_params(p);
  out.work = grid.blocks(p) * config.get("threads");
  out.aux[0] = config.get("rows");
  out.div[0] = fast_div(nhwc(p) ? grid.channel_blocks : p.c);
  out.div[1] = fast_div(grid.tiles);
  out.div[2] = fast_div(grid.strips);
  out.div[3] = fast_div(dil_h(p));
}

}  // namespace

constinit const Schedule dw_stage{
    .name = "dw_stage",
    .source = "dw_stage.cuh",
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
