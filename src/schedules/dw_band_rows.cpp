// dw_band_rows (kernels/dw_band_rows.cuh): 16-bit depthwise on the matrix unit for kernels that are large beside their
// planes. Knobs: channels and images of a block, groups of 8 output rows of a tile, pack images whose rows are
// multiplied at once, split warps that share the filter rows of a plane, threads, blocks that a multiprocessor should
// hold, grid blocks at most where they go on from tile to tile (NHWC).
#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

constexpr std::int64_t smem_limit = 227 * 1024;  ///< what a block may opt in to on the largest device
constexpr std::int64_t widest = 64;              ///< columns of a plane: the sums of its rows stay in registers

std::int64_t floor8(std::int64_t v) { return v >= 0 ? v / 8 : -((7 - v) / 8); }

/// Words of a band matrix; mirrors the kernel's WORDS.
struct Words {
  std::int64_t first, count;
};
Words words_of(const ConvProblem& p, std::int64_t lead) {
  const std::int64_t shift = p.pad_left - lead, first = -floor8(shift + 7);
  return {.first = first, .count = floor8(p.s + 6 - shift) - first + 1};
}

/// Where a row lies in shared memory.
struct Row {
  std::int64_t lead, chunks, pitch;
};
/// Matrix instructions of 8 columns for one group and filter row.
std::int64_t products(const ConvProblem& p, std::int64_t lead, std::int64_t chunks) {
  const Words words = words_of(p, lead);
  std::int64_t total = 0;
  for (std::int64_t q = 0; q < ceil_div(p.q, 8); ++q) {
    const std::int64_t from = std::max<std::int64_t>(0, q + words.first);
    total += std::max<std::int64_t>(0, std::min(chunks, q + words.first + words.count) - from);
  }
  return total;
}
Row row_of(const ConvProblem& p) {
  Row best{};
  std::int64_t least = -1;
  for (const std::int64_t lead : {0, 4, 2, 6}) {
    const std::int64_t chunks = ceil_div(p.w + lead, 8);
    const std::int64_t cost = 8 * products(p, lead, chunks) + 2 * chunks + lead % 4;
    if (least >= 0 && cost >= least) continue;
    least = cost;
    // An odd pitch: no two of the 8 rows that ldmatrix reads at a time lie in the same banks.
    best = {.lead = lead, .chunks = chunks, .pitch = std::max(chunks, ceil_div(p.q, 8)) | 1};
  }
  return best;
}

/// Words of a band matrix that some tile meets; mirrors used().
std::int64_t used_words(const ConvProblem& p, const Row& row) {
  const Words words = words_of(p, row.lead);
  std::int64_t count = 0;
  for (std::int64_t word = 0; word < words.count; ++word) {
    const std::int64_t first = words.first + word, last = first + ceil_div(p.q, 8) - 1;  // chunks of first, last tile
    if (last >= 0 && first < row.chunks) ++count;
  }
  return count;
}

/// Output rows of a group: the 16 rows of A are of one image, or of two.
std::int64_t group_rows(const Config& c) { return c.get("pack") == 1 ? 16 : 8; }

/// Tiles of rows of a plane, and the output rows of each: as even as they can be.
std::int64_t tiles_of(const ConvProblem& p, const Config& c) { return ceil_div(p.p, group_rows(c) * c.get("groups")); }
std::int64_t tile_rows(const ConvProblem& p, const Config& c) { return ceil_div(p.p, tiles_of(p, c)); }

struct Shape;
int load_of(const ConvProblem&, const Shape&);

/// Bytes between octets of channels, parts and planes.
struct Pads {
  std::int64_t octet = 0, part = 0, plane = 0;
};

/// Whether blocks may go on from tile to tile: measured up to 9x9.
bool goes_on(const ConvProblem& p) { return p.taps() <= 81; }

/// What follows from the problem and the knobs; mirrors the kernel's constants.
struct Shape {
  std::int64_t channels, images, groups, pack, split, threads;
  std::int64_t rows, warps_of_units, units, smem, registers;
  std::int64_t resident;  ///< blocks that fit a multiprocessor
  bool keep, stream, held;
  Row row;
  Pads pads;
  Shape(const ConvProblem& p, const Config& c)
      : channels(c.get("channels")),
        images(c.get("images")),
        groups(c.get("groups")),
        pack(c.get("pack")),
        split(c.get("split")),
        threads(c.get("threads")),
        rows(split == 1 ? p.r : ceil_div(ceil_div(p.r, split), groups) * groups),
        warps_of_units(threads / 32 / split),
        units(channels * (images / pack)),
        smem(0),
        registers(0),
        resident(1),
        keep(false),
        stream(false),
        held(false),
        row(row_of(p)) {
    const std::int64_t words = words_of(p, row.lead).count, halves = (pack == 1 ? 1 : pack / 2) * groups;
    const std::int64_t tiles = halves * ceil_div(p.q, 8);
    const std::int64_t part = (groups + split * rows - 2) / groups + group_rows(c);
    const std::int64_t shift = p.pad_left - row.lead, start = 7 - 8 * words_of(p, row.lead).first - shift;
    const std::int64_t filter_row = ceil_div(p.s + std::max(start, 8 * words + 8 - start - p.s), 2) * 2;
    const std::int64_t copy = ceil_div(2 * channels * split * rows * filter_row + 16 * words + 16, 128) * 128 + 64;
    const std::int64_t tile = tile_rows(p, c), window = p.p <= tile ? p.h : tile + p.r - 1;
    const bool nhwc = p.layout == Layout::nhwc;
    const std::int64_t items = nhwc ? items_of_thread(p, window) : 0;
    const std::int64_t kept = std::max<std::int64_t>(1, channels / std::max<std::int64_t>(1, warps_of_units));
    const int load = load_of(p, *this);
    held = load < 8 ? items * load <= 24 : items == 1;
    stream = nhwc && goes_on(p) && split == 1 && p.p == p.h && p.q == p.w && p.pad_top < p.r && (load > 1 || held) &&
             items <= 12;
    registers = 4 * tiles + halves * 2 * (row.chunks + 1) + words + 20 + (stream ? (held ? load + 2 : 2) * items : 0);
    const std::int64_t bands = kept * rows * used_words(p, row);  // of a warp's channels
    if (stream) {
      keep = warps_of_units > 0 && (warps_of_units % channels == 0 || channels % warps_of_units == 0) &&
             registers + bands <= 65536 / (threads * c.get("blocks"));
    } else {
      keep = warps_of_units > 0 && warps_of_units % channels == 0 && units > warps_of_units && rows * words <= 64;
    }
    if (nhwc) pads = pads_of(p, part * row.pitch * 16);
    const std::int64_t plane = groups * (part * row.pitch * 16 + pads.part) + pads.plane;
    smem = images * (channels * plane + ceil_div(channels, 8) * pads.octet);
    if (!stream || !keep) smem += ceil_div(2 * copy, 128) * 128;
    if (split > 1) smem += threads / 32 * tiles * 512;
    if (stream && !held) smem += items * 2 * threads * 2 * load;
    if (keep) registers += bands;
    const std::int64_t by_smem = 227 * 1024 / (smem + 1024),
                       by_registers = 65536 / (threads * ceil_div(registers, 8) * 8);
    resident = std::clamp<std::int64_t>(std::min(by_smem, by_registers), 1, 2048 / threads);
  }
  std::int64_t items_of_thread(const ConvProblem& p, std::int64_t lines) const;
  Pads pads_of(const ConvProblem& p, std::int64_t part) const;
};

/// Elements of a copy of x: along a row (NCHW), or channels (NHWC).
int load_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t along =
      p.layout == Layout::nhwc ? std::gcd(p.c, std::gcd(s.channels, std::int64_t{8})) : std::gcd(p.w, s.row.lead);
  return dividing_power(along, max_vector(p));
}
int store_of(const ConvProblem& p, const Shape& s) {
  return p.layout == Layout::nhwc ? load_of(p, s) : dividing_power(p.q, max_vector(p));
}

/// Pairs of pixels of V channels that a thread moves in a step (NHWC); mirrors PixelLines.
std::int64_t Shape::items_of_thread(const ConvProblem& p, std::int64_t lines) const {
  const std::int64_t wide = channels / load_of(p, *this) * ceil_div(p.w, 2), lanes = std::min(wide, threads);
  return ceil_div(images * lines * ceil_div(wide, lanes), threads / lanes);
}

/// Those where the lanes of a warp that move pixels side by side meet no bank twice, as far as there are.
Pads Shape::pads_of(const ConvProblem& p, std::int64_t part) const {
  const int vector = load_of(p, *this), across = static_cast<int>(channels) / vector;
  const int lanes = static_cast<int>(std::min(across * ceil_div(p.w, 2), threads)), parts = static_cast<int>(groups);
  struct Lane {
    int word, octet, part, plane;  ///< without pads; how many of each lie before it
  };
  std::array<Lane, 32> all{};
  for (int i = 0; i < 32; ++i) {
    const int line = i / lanes, item = i % lanes, channel = item % across * vector;
    const auto at = channel * groups * part + line % parts * part + line / parts * (row.pitch * 16);
    all[static_cast<std::size_t>(i)] = {.word = static_cast<int>(at / 4) + item / across,
                                        .octet = channel / 8,
                                        .part = channel * parts + line % parts,
                                        .plane = channel};
  }
  Pads best;
  int least = 1 << 30;
  for (int plane = 0; plane < (vector == 8 ? 16 : 64); plane += 16) {
    for (int between = 0; between < (parts == 1 ? 16 : 128); between += 16) {
      for (int octet = 0; octet < (channels > 8 ? 128 : 16); octet += 16) {
        std::array<unsigned char, 32> uses{};
        int most = 0;
        for (const Lane& lane : all) {
          const int word = lane.word + (lane.octet * octet + lane.part * between + lane.plane * plane) / 4;
          most = std::max<int>(most, ++uses[static_cast<std::size_t>(word) % 32]);
        }
        const int cost = most * 1024 + plane + between + octet / 8;
        if (cost < least) least = cost, best = {.octet = octet, .part = between, .plane = plane};
      }
    }
  }
  return best;
}

struct Work {
  std::int64_t channel_blocks, row_tiles, steps;
  std::int64_t along;  ///< blocks along the steps
  std::int64_t blocks() const { return channel_blocks * along; }
  std::int64_t pieces() const { return channel_blocks * steps; }  ///< that blocks could share
};
Work work_of(const ConvProblem& p, const Config& config, bool stream) {
  Work work{.channel_blocks = ceil_div(p.c, config.get("channels")),
            .row_tiles = tiles_of(p, config),
            .steps = 0,
            .along = 0};
  work.steps = work.along = work.row_tiles * ceil_div(p.n, config.get("images"));
  if (stream) work.along = std::clamp<std::int64_t>(config.get("grid") / work.channel_blocks, 1, work.steps);
  return work;
}

/// What there is to compute, as a part of what all blocks could in the turns that the busiest one takes.
double filled(const ConvProblem& p, const Config& config) {
  const Work work = work_of(p, config, true);
  const std::int64_t turns = ceil_div(work.steps, work.along), planes = config.get("channels") * config.get("images");
  const std::int64_t most = turns * std::max<std::int64_t>(config.get("grid"), work.blocks()) * planes;
  return static_cast<double>(p.n * p.c * p.p) / static_cast<double>(most * tile_rows(p, config));
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal =
          wrong_knobs(config, {"channels", "images", "groups", "pack", "split", "threads", "blocks", "grid"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int channels = config.get("channels"), images = config.get("images"), groups = config.get("groups");
  const int pack = config.get("pack"), split = config.get("split"), threads = config.get("threads");
  if (channels > 96) return refuse("channels", channels, "at most 96");
  if (images > 64) return refuse("images", images, "at most 64");
  if (groups > 8) return refuse("groups", groups, "at most 8");
  if (pack > 8 || (pack > 1 && pack % 2 != 0) || images % pack != 0) {
    return refuse("pack", pack, "1 or even, at most 8, dividing images");
  }
  if (split > 8 || threads / 32 % split != 0) return refuse("split", split, "at most 8, dividing the warps");
  if (config.get("blocks") * threads > 2048) return refuse("blocks", config.get("blocks"), "more threads than fit");
  const Shape s(p, config);
  if (!s.stream && !power_of_two(channels)) return refuse("channels", channels, "a power of two");
  if (s.registers > 200) return refuse("groups", groups, "too many registers");
  if (s.smem > smem_limit) {
    return refuse("channels", channels, "needs " + std::to_string(s.smem) + " bytes of shared memory");
  }
  if (work_of(p, config, s.stream).pieces() > max_grid / 2)
    return refuse("images", images, "more blocks than a grid has");
  return std::nullopt;
}

constexpr std::size_t blocks_knob = 6;

/// A shape of a block: `high` groups of 8 output rows at most.
struct Choice {
  int channels, images, high, pack, split, warps, blocks = 0;
};
// The first that has a block for every multiprocessor is the schedule's own choice. Many channels a block are wide
// copies in NHWC; two images share what is read of a filter; where there are few planes, warps share them. `blocks` as
// measured (0: what fits): fewer leave registers for band matrices.
constexpr Choice tiny_nhwc[] = {{32, 4, 1, 4, 1, 16, 2}, {32, 2, 1, 2, 1, 8, 3}, {16, 2, 1, 2, 1, 8, 4},
                                {16, 4, 1, 4, 1, 16, 2}, {16, 1, 2, 1, 1, 8},    {8, 1, 2, 1, 1, 8},
                                {4, 1, 2, 1, 1, 4},      {4, 1, 2, 1, 2, 8},     {2, 1, 2, 1, 4, 8},
                                {1, 1, 2, 1, 4, 4}};
constexpr Choice small_nhwc[] = {{16, 2, 4, 2, 1, 8, 2}, {32, 1, 4, 1, 1, 16, 1}, {16, 2, 4, 2, 1, 8, 3},
                                 {16, 1, 4, 1, 1, 8},    {16, 2, 4, 2, 1, 16, 1}, {8, 1, 4, 1, 1, 8},
                                 {4, 1, 4, 1, 1, 4},     {4, 1, 4, 1, 2, 8},      {2, 1, 4, 1, 4, 8},
                                 {1, 1, 4, 1, 4, 4}};
constexpr Choice large_nhwc[] = {{32, 1, 4, 1, 1, 16, 1}, {16, 1, 4, 1, 1, 16, 1}, {16, 1, 4, 1, 1, 8, 2},
                                 {32, 1, 2, 1, 1, 16, 1}, {8, 1, 4, 1, 1, 8},      {4, 1, 4, 1, 1, 4},
                                 {2, 1, 2, 1, 4, 8},      {2, 1, 4, 1, 4, 8},      {1, 1, 4, 1, 8, 8},
                                 {4, 1, 2, 1, 4, 16}};
// Where blocks do not go on.
constexpr Choice large_nhwc_once[] = {{32, 1, 4, 1, 1, 16}, {16, 1, 4, 1, 1, 8}, {8, 1, 4, 1, 1, 8},
                                      {4, 1, 4, 1, 1, 4},   {2, 1, 2, 1, 4, 8},  {2, 1, 4, 1, 4, 8},
                                      {1, 1, 4, 1, 8, 8},   {4, 1, 2, 1, 4, 16}};
constexpr Choice small_nhwc_once[] = {{32, 2, 4, 2, 1, 16}, {32, 2, 4, 2, 1, 32}, {16, 4, 4, 4, 1, 16},
                                      {16, 2, 4, 2, 1, 16}, {16, 2, 4, 2, 1, 8},  {16, 1, 4, 1, 1, 8},
                                      {8, 1, 4, 1, 1, 8},   {4, 1, 4, 1, 1, 4},   {4, 1, 4, 1, 2, 8},
                                      {2, 1, 4, 1, 4, 8},   {1, 1, 4, 1, 4, 4}};
constexpr Choice large_nchw[] = {{1, 8, 4, 1, 1, 8}, {1, 4, 4, 1, 1, 4}, {2, 4, 4, 2, 1, 4},
                                 {8, 2, 4, 2, 1, 8}, {4, 1, 4, 1, 1, 4}, {1, 4, 4, 1, 2, 8},
                                 {2, 1, 4, 1, 4, 8}, {1, 1, 4, 1, 8, 8}, {1, 1, 4, 1, 4, 4}};
constexpr Choice small_nchw[] = {{2, 8, 4, 2, 1, 8}, {2, 4, 4, 2, 1, 4}, {4, 4, 4, 4, 1, 4},
                                 {4, 4, 4, 2, 1, 8}, {8, 2, 4, 2, 1, 8}, {4, 1, 4, 1, 1, 4},
                                 {2, 1, 4, 1, 2, 4}, {2, 1, 4, 1, 4, 8}, {1, 1, 4, 1, 4, 4}};
constexpr Choice last_resort[] = {{1, 1, 2, 1, 4, 4}, {1, 1, 2, 1, 1, 1}};

std::span<const Choice> choices(const ConvProblem& p) {
  const bool small = p.p <= 16 && p.q <= 16;
  if (p.layout == Layout::nhwc) {
    if (!goes_on(p)) return small ? std::span<const Choice>(small_nhwc_once) : large_nhwc_once;
    if (p.p <= 8 && p.q <= 8) return tiny_nhwc;
    return small ? std::span<const Choice>(small_nhwc) : large_nhwc;
  }
  return small ? std::span<const Choice>(small_nchw) : large_nchw;
}

std::optional<Config> config_of(const ConvProblem& p, const DeviceInfo& device, const Choice& c) {
  if (c.channels > 2 * p.c || (c.pack == 1 && c.images > 1 && c.images > p.n)) return std::nullopt;
  const int images = std::min(c.images, covering_power(p.n, 64)), pack = std::min(c.pack, images);
  const int high = p.q > 32 ? std::min(c.high, 2) : c.high;  // sums of long rows leave registers for fewer
  const std::int64_t rows = pack == 1 ? 16 : 8, groups = std::min(ceil_div(p.p, rows), std::int64_t{8} * high / rows);
  const int warps = std::max(1, std::min(c.warps / c.split, c.channels * (images / pack))) * c.split;
  Config config{{{"channels", c.channels},
                 {"images", images},
                 {"groups", static_cast<int>(groups)},
                 {"pack", pack},
                 {"split", c.split},
                 {"threads", 32 * warps},
                 {"blocks", 1},
                 {"grid", 1}}};
  const int blocks = c.blocks > 0 ? c.blocks : static_cast<int>(Shape(p, config).resident);
  config.knobs[blocks_knob].second = blocks;
  config.knobs.back().second = blocks * std::max(1, device.sm_count);
  // 99 KiB is what every device from sm_80 on has.
  if (fits(p, config) || Shape(p, config).smem > std::max(99 * 1024, device.smem_optin)) return std::nullopt;
  return config;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> options;
  const auto add = [&](std::span<const Choice> some) {
    for (const Choice& choice : some) {
      const std::optional<Config> config = config_of(p, device, choice);
      if (config && std::find(options.begin(), options.end(), *config) == options.end()) options.push_back(*config);
    }
  };
  add(choices(p));
  if (options.empty()) add(last_resort);
  if (options.empty()) return options;
  const std::int64_t work = p.p * p.q * p.taps(), sms = std::max(1, device.sm_count);
  // Where blocks go on from tile to tile, and there are tiles for all: how evenly they go round counts for more than a
  // place in the list.
  if (Shape(p, options.front()).stream && std::max(p.p, p.q) > 8 &&
      work_of(p, options.front(), true).pieces() >= sms * 9 / 10) {
    std::vector<std::pair<double, Config>> estimated;
    for (const Config& option : options) {
      estimated.emplace_back((1 + 0.1 * static_cast<double>(estimated.size())) / filled(p, option), option);
    }
    options = fastest_first(std::move(estimated));
  }
  // Planes that cost little are left to half of the multiprocessors rather than split.
  const std::int64_t enough = work > 50000 ? sms * 9 / 10 : sms * 9 / 20;
  std::stable_sort(options.begin(), options.end(), [&](const Config& a, const Config& b) {
    return std::min(enough, work_of(p, a, true).pieces()) > std::min(enough, work_of(p, b, true).pieces());
  });
  if (options.size() > 8) options.resize(8);
  return options;
}

/// Where schedules that slide down the planes are faster, under up to 81 taps: in NHWC beyond what was measured (7x7,
/// f16, 32 images of 128x56x56 on an H200: 25.5 us here, 29.0 in dw_band_nhwc, but wider rows leave no room for 32
/// channels); in NCHW, where dw_band reads every byte once from shared memory, where there are many (9x9, 32 images of
/// 120x28x28: 7.2 against 8.4 us).
bool slides_faster(const ConvProblem& p) {
  if (p.taps() > 81) return false;
  const std::int64_t side = std::max(p.p, p.q);
  if (p.layout == Layout::nhwc) return side > 56;
  return side > 16 && p.n * p.c > 1024 && p.w % 2 == 0 && max_vector(p) >= 2;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (p.dtype == DType::f32) return "dt = f32: the matrix unit takes f16 and bf16";
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (Refusal refusal = dilated(p)) return refusal;
  if (p.stride_h != 1) return refuse("stride_h", p.stride_h, "this schedule takes 1 only");
  if (p.stride_w != 1) return refuse("stride_w", p.stride_w, "this schedule takes 1 only");
  const bool small = p.layout == Layout::nhwc && p.p <= 16 && p.q <= 16;
  if (p.taps() < (small ? 25 : 49)) return refuse("r * s", p.taps(), "below 49 taps others are as fast");
  if (p.r > 64) return refuse("r", p.r, "at most 64 kernel rows");
  if (p.s > 64) return refuse("s", p.s, "at most 64 kernel columns");
  if (p.w > widest) return refuse("w", p.w, "at most 64 columns");
  if (p.q > widest) return refuse("q", p.q, "at most 64 columns");
  if (slides_faster(p)) return refuse("n * c * p * q", p.y_elements(), "others, which slide, are faster");
  if (configs(p, device).empty()) return refuse("r * s", p.taps(), "planes and filters do not fit in shared memory");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s(p, config);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"H", p.h},
      {"W", p.w},
      {"P", p.p},
      {"Q", p.q},
      {"TOP", p.pad_top},
      {"LEFT", p.pad_left},
      {"GROUPS", s.groups},
      {"LEAD", s.row.lead},
      {"CHUNKS", s.row.chunks},
      {"PITCH", s.row.pitch},
      {"CHANNELS", s.channels},
      {"IMAGES", s.images},
      {"PACK", s.pack},
      {"SPLIT", s.split},
      {"LOAD", load_of(p, s)},
      {"STORE", store_of(p, s)},
      {"WHOLE", p.c % s.channels == 0 ? 1 : 0},
      {"KEEP", s.keep ? 1 : 0},
      {"STREAM", s.stream ? 1 : 0},
      {"HELD", s.held ? 1 : 0},
      {"SKEW", s.pads.octet},
      {"PART_PAD", s.pads.part},
      {"PLANE_PAD", s.pads.plane},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  KernelSpec spec = make_spec(dw_band_rows, std::move(constants), static_cast<int>(s.threads));
  spec.min_blocks = config.get("blocks");
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s(p, config);
  return {.grid = work_of(p, config, s.stream).blocks(),
          .block = static_cast<int>(s.threads),
          .dynamic_smem = static_cast<int>(s.smem)};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Work work = work_of(p, config, Shape(p, config).stream);
  out = common_params(p);
  out.work = work.blocks() * config.get("threads");
  out.aux[0] = work.along;
  out.div[0] = fast_div(work.channel_blocks);
  out.div[1] = fast_div(std::max<std::int64_t>(1, work.row_tiles));
}

}  // namespace

constinit const Schedule dw_band_rows{
    .name = "dw_band_rows",
    .source = "dw_band_rows.cuh",
    .min_capability = 80,
    .size_generic = false,       // the planes' sizes are compiled in
    .promises_no_spill = false,  // the registers that several blocks leave do not fit every epilogue
    .arithmetic = Arithmetic::mma,
    .can_run = can_run,
    .configs = configs,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
