// dw_band (kernels/dw_band.cuh): 16-bit depthwise NCHW as banded matrices on the matrix unit. Knobs: copy elements of
// an asynchronous copy, tiles of 8 outputs a strip, blocks strips of a piece that lie side by side in a row, share
// output channels that multiply one A, batch output rows of one turn of the loop, depth turns that a warp's ring holds,
// rows a piece slides down (a run-time number: it costs no compilation).
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr std::int64_t strips_of_a_warp = 16;  // the rows of A

std::int64_t dilation_w(const ConvProblem& p) { return p.s == 1 ? 1 : p.dil_w; }

/// One-row images under a one-row kernel: the rows of a piece are the images of the batch.
bool rows_are_images(const ConvProblem& p) { return p.r == 1 && p.h == 1 && p.p == 1 && p.pad_top == 0; }

/// Of one-row images the rows are the batch, and no kernel row reaches from one to the next.
Slide slide_of_rows(const ConvProblem& p) {
  return rows_are_images(p) ? Slide{.phases = 1, .step = 1, .slots = 1, .fresh = 1, .dil_h = 1} : slide_of(p);
}

/// The window of input columns that a strip multiplies.
struct Window {
  bool whole;  ///< the input row itself, where one strip covers the output row: what lies left and right is no column
  std::int64_t lead, words;
};
/// How rows are cut up and brought in: three of the knobs.
struct Cut {
  std::int64_t copy, tiles, blocks;
};
Cut cut_of(const Config& config) { return {config.get("copy"), config.get("tiles"), config.get("blocks")}; }

Window window_of(const ConvProblem& p, const Cut& cut) {
  const std::int64_t copy = cut.copy, tiles = cut.tiles, lead = (copy - p.pad_left % copy) % copy;
  const std::int64_t span = (8 * tiles - 1) * p.stride_w + (p.s - 1) * dilation_w(p) + 1 + lead;
  const Window band = {.whole = false, .lead = lead, .words = ceil_div(span, 8)};
  const Window whole = {.whole = true, .lead = -p.pad_left, .words = ceil_div(p.w, 8)};
  return 8 * tiles >= p.q && whole.words <= band.words ? whole : band;
}

/// What a warp works on at once: `strips` pieces of `blocks` neighbouring strips, 16 at most.
struct Piece {
  std::int64_t blocks, strips, across;  ///< pieces across a row
};
std::int64_t blocks_of_a_row(const ConvProblem& p, std::int64_t tiles) { return ceil_div(p.q, 8 * tiles); }
Piece piece_of(const ConvProblem& p, const Cut& cut) {
  return {cut.blocks, strips_of_a_warp / cut.blocks, ceil_div(blocks_of_a_row(p, cut.tiles), cut.blocks)};
}

/// Chunks (8 columns: a row of ldmatrix) of one row of a piece.
std::int64_t chunks_of(const ConvProblem& p, const Cut& cut) {
  return (cut.blocks - 1) * cut.tiles * p.stride_w + window_of(p, cut).words;
}

struct Way {
  double cost;
  Cut cut;
};
/// Ways to cut rows, the one first that should cost least: a warp's instructions are shared by the strips that compute
/// something, and some of them grow with the columns that are brought in for 8 outputs: 7x7 on rows of 56 takes 16.9 us
/// (32 images of 96 channels, f16, H200) with 16 pieces of one strip; a prototype with 2 pieces of 7 strips took 12.8.
std::vector<Way> cuts_of_a_row(const ConvProblem& p, std::int64_t copy, std::int64_t tiles) {
  const std::int64_t row = blocks_of_a_row(p, tiles);
  std::vector<Way> ways;
  for (std::int64_t blocks = std::min(row, strips_of_a_warp); blocks >= 1; --blocks) {
    const Cut cut = {copy, tiles, blocks};
    const Piece piece = piece_of(p, cut);
    const double used = static_cast<double>(piece.strips * row) / static_cast<double>(piece.across);
    const double brought = static_cast<double>(chunks_of(p, cut)) / static_cast<double>(blocks * tiles * p.stride_w);
    ways.push_back({(1 + brought) / used, cut});
  }
  std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.cost < b.cost; });
  return ways;
}

/// How a row of a piece gets into the ring.
struct Arrival {
  bool full;  ///< a piece spans its row: what lies left and right of it stays zero
  std::int64_t start, copies;
};
Arrival arrival_of(const ConvProblem& p, const Cut& cut) {
  const Window window = window_of(p, cut);
  const std::int64_t copy = cut.copy;
  const std::int64_t held = 8 * chunks_of(p, cut), start = window.whole ? 0 : p.pad_left + window.lead;
  if (piece_of(p, cut).across == 1 && start + copy <= held) {
    return {.full = true, .start = start, .copies = std::min(p.w, held - start) / copy};
  }
  return {.full = false, .start = 0, .copies = held / copy};
}

/// Chunks from one piece's row to the next one's, so that as few as possible of the 8 rows that ldmatrix reads at a
/// time lie in the same banks.
std::int64_t pitch_of(const ConvProblem& p, const Cut& cut) {
  const Piece piece = piece_of(p, cut);
  const auto conflicts = [&](std::int64_t pitch) {
    std::int64_t extra = 0;
    for (std::int64_t half = 0; half < 2; ++half) {
      std::int64_t users[8] = {};
      for (std::int64_t i = 8 * half; i < std::min(8 * half + 8, piece.strips * piece.blocks); ++i) {
        ++users[(i / piece.blocks * pitch + i % piece.blocks * cut.tiles * p.stride_w) % 8];
      }
      extra += *std::max_element(users, users + 8);
    }
    return extra;
  };
  std::int64_t best = chunks_of(p, cut);
  for (std::int64_t pitch = best + 1; pitch < chunks_of(p, cut) + 8; ++pitch) {
    if (conflicts(pitch) < conflicts(best)) best = pitch;
  }
  return best;
}

/// Registers a lane needs, from what it keeps: the band, sums in flight, one row, what it copies, and about 40 besides.
std::int64_t registers_of(const ConvProblem& p, const Cut& cut, std::int64_t share, std::int64_t batch) {
  const Slide slide = slide_of_rows(p);
  const Window window = window_of(p, cut);
  const Piece piece = piece_of(p, cut);
  const std::int64_t band = share * cut.tiles * p.r * window.words;
  const std::int64_t sums = share * cut.tiles * (slide.slots - 1 + batch) * 4;
  const std::int64_t copies =
      ceil_div(piece.strips * arrival_of(p, cut).copies, 32) * (p.needs_64bit_offsets() ? 7 : 5);
  return band + sums + 2 * window.words + copies + 44;
}
constexpr std::int64_t register_budget = 192;  // at 199 ptxas spilled for capability 8.0

/// Bytes of a warp's ring of so many steps.
std::int64_t ring_bytes(const ConvProblem& p, const Cut& cut, std::int64_t steps) {
  return steps * slide_of_rows(p).fresh * piece_of(p, cut).strips * pitch_of(p, cut) * 16;
}

/// The cut of what runs where nothing else does: it uses most rows of the matrix, in as few pieces as that takes.
Cut narrow_cut(const ConvProblem& p) {
  const std::int64_t row = blocks_of_a_row(p, 1);
  Cut best = {2, 1, 1};
  std::int64_t most = 0, across = 1;  // strips that compute something, of so many pieces a row
  for (std::int64_t blocks = std::min(row, strips_of_a_warp); blocks >= 1; --blocks) {
    const Piece piece = piece_of(p, {2, 1, blocks});
    if (piece.strips * row * across <= most * piece.across) continue;
    best.blocks = blocks, most = piece.strips * row, across = piece.across;
  }
  return best;
}

/// Whether the rows of a turn leave as 16-byte vectors by way of shared memory: pieces that span their rows, and turns
/// that are whole vectors, all of them outputs.
bool leaves_in_vectors(const ConvProblem& p, const Config& config) {
  const std::int64_t batch = config.get("batch");
  const bool whole_turns = p.p % batch == 0 && config.get("rows") % batch == 0 && batch * p.q % 8 == 0;
  return whole_turns && p.q % 2 == 0 && max_vector(p) == 8 && slide_of_rows(p).phases == 1 && !rows_are_images(p) &&
         piece_of(p, cut_of(config)).across == 1 && config.get("share") == 1;
}

/// Elements of shared memory from one piece's finished rows to the next one's: 16-byte aligned, with the fewest lanes
/// of a store in the same bank.
std::int64_t leaving_pitch(const ConvProblem& p, const Cut& cut, std::int64_t batch) {
  const Piece piece = piece_of(p, cut);
  const auto conflicts = [&](std::int64_t pitch) {
    std::int64_t worst = 0;
    for (std::int64_t half = 0; half < 2; ++half) {
      std::int64_t users[32] = {};
      for (std::int64_t i = 8 * half; i < std::min(8 * half + 8, piece.strips * piece.blocks); ++i) {
        const std::int64_t word = i / piece.blocks * pitch / 2 + i % piece.blocks * 4 * cut.tiles;
        for (std::int64_t t = 0; t < 4; ++t) worst = std::max(worst, ++users[(word + t) % 32]);
      }
    }
    return worst;
  };
  std::int64_t best = batch * p.q;
  for (std::int64_t pitch = best + 8; pitch < batch * p.q + 64; pitch += 8) {
    if (conflicts(pitch) < conflicts(best)) best = pitch;
  }
  return best;
}

struct BandWork {
  std::int64_t rows, across, parts, pieces, warps;
  std::int64_t skip;  ///< first steps of every part whose rows lie above the plane
};
BandWork work_of(const ConvProblem& p, const Config& config) {
  const Slide slide = slide_of_rows(p);
  const Piece piece = piece_of(p, cut_of(config));
  const bool images = rows_are_images(p);
  BandWork work{};
  work.rows = config.get("rows");
  work.across = piece.across;
  work.parts = ceil_div(ceil_div(images ? p.n : p.p, slide.phases), work.rows) * slide.phases;
  work.pieces = (images ? 1 : p.n) * work.parts * work.across;
  work.warps = ceil_div(work.pieces, piece.strips) * (p.k / config.get("share"));
  if (!images && work.parts == slide.phases) {
    const std::int64_t above = p.pad_top - (slide.phases - 1) * p.stride_h;
    work.skip = std::clamp<std::int64_t>(above / (slide.step * slide.dil_h), 0, slide.slots - 1);
  }
  if (config.get("store") == 8) {  // the first output row begins a turn
    const std::int64_t before = slide.slots - 1, batch = config.get("batch");
    work.skip = before - ceil_div(before - work.skip, batch) * batch;
  }
  return work;
}

std::int64_t smem_of(const ConvProblem& p, const Config& config) {
  const Cut cut = cut_of(config);
  const std::int64_t batch = config.get("batch");
  const std::int64_t leaving =
      config.get("store") == 8 ? 2 * piece_of(p, cut).strips * leaving_pitch(p, cut, batch) : 0;
  return (ring_bytes(p, cut, batch * config.get("depth")) + leaving) * (config.get("threads") / 32);
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (p.dtype == DType::f32) return "dtype = f32: the matrix unit takes f16 and bf16";
  if (p.layout == Layout::nhwc) return "layout = nhwc: strips are rows of NCHW planes";
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.w % 2 != 0) return refuse("w", p.w, "an odd row length: rows do not start on the 4 bytes of a copy");
  if (p.align < 4) return refuse("align", p.align, "asynchronous copies move at least 4 bytes");
  const Cut narrow = narrow_cut(p);
  if (registers_of(p, narrow, 1, 1) > register_budget) {
    return refuse("r", p.r, "the bands of all kernel rows do not fit in registers");
  }
  if (ring_bytes(p, narrow, 2) > static_smem_limit) {
    return refuse("stride_h", p.stride_h, "the input rows of two steps do not fit in 48 KiB of shared memory");
  }
  return too_many_blocks(p, {.channel_blocks = p.k, .tiles = p.q, .strips = p.p}, 32);
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal =
          wrong_knobs(config, {"copy", "tiles", "blocks", "share", "batch", "depth", "store", "rows", "threads"}))
    return refusal;
  const int copy = config.get("copy"), tiles = config.get("tiles"), share = config.get("share");
  if (!power_of_two(copy) || copy < 2 || copy > max_vector(p)) {
    return refuse("copy", copy, "2, 4 or 8, within the alignment class");
  }
  if (p.w % copy != 0) return refuse("copy", copy, "must divide w = " + std::to_string(p.w));
  if (tiles > 4) return refuse("tiles", tiles, "at most 4");
  const std::int64_t most_blocks = std::min(blocks_of_a_row(p, tiles), strips_of_a_warp);
  if (config.get("blocks") > most_blocks)
    return refuse("blocks", config.get("blocks"), "at most " + std::to_string(most_blocks) + ": a row, 16 in all");
  if (p.multiplier() % share != 0) {
    return refuse("share", share, "must divide the multiplier, " + std::to_string(p.multiplier()));
  }
  if (registers_of(p, cut_of(config), share, config.get("batch")) > register_budget) {
    return refuse("batch", config.get("batch"), "too many registers with these tiles and this share");
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  if (config.get("depth") < 2) return refuse("depth", config.get("depth"), "at least 2");
  const int store = config.get("store");
  if (store != 8 && store != (p.q % 2 == 0 && max_vector(p) >= 2 ? 2 : 1)) {
    return refuse("store", store, "8, or 2 where rows and tensors are even, else 1");
  }
  if (store == 8 && !leaves_in_vectors(p, config)) {
    return refuse("store", store, "turns of the loop are not whole 16-byte vectors of outputs");
  }
  if (smem_of(p, config) > static_smem_limit) {
    return refuse("depth", config.get("depth"), "the rings of a block exceed 48 KiB of shared memory");
  }
  return std::nullopt;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Option> options;
  const std::int64_t rows_of_all =
      rows_are_images(p) ? std::max<std::int64_t>(1, p.n) : ceil_div(p.p, slide_of_rows(p).phases);
  const auto consider = [&](const Cut& cut, int share, int batch, int depth, std::int64_t rows, int threads,
                            bool vectors) {
    Config config{{{"copy", static_cast<int>(cut.copy)},
                   {"tiles", static_cast<int>(cut.tiles)},
                   {"blocks", static_cast<int>(cut.blocks)},
                   {"share", share},
                   {"batch", batch},
                   {"depth", depth},
                   {"store", vectors ? 8 : dividing_power(p.q, std::min(2, max_vector(p)))},
                   {"rows", static_cast<int>(std::min(rows, rows_of_all))},
                   {"threads", threads}}};
    if (fits(p, config)) return;
    // Rows on their way do not occupy registers here, so a warp does what two of other kernels do, and what three do
    // under many kernel rows, which every part reads again (9x9, 32 images of 120x28x28 on an H200: whole planes, 7
    // warps a multiprocessor, 7.1 us; halves, 14 warps, 10.0).
    const std::int64_t started = (p.r < 7 ? 2 : 3) * 32 * work_of(p, config).warps;
    options.push_back({std::move(config), started});
  };
  const int widest = std::min(dividing_power(p.w, 8), max_vector(p));
  // 16-byte copies pay where the window is long anyway; a short one grows by what they read ahead of it.
  const int copy = p.s > 16 ? widest : std::min(widest, 4);
  const std::vector<Way> ways = cuts_of_a_row(p, copy, 1);
  const Cut cut = ways[0].cut;
  const int share = dividing_power(p.multiplier(), 2);
  // Every part reads r - 1 rows again, so tall parts first; of a tall plane under 3 rows, parts that end a wave evenly.
  std::vector<std::int64_t> heights = {rows_of_all, ceil_div(rows_of_all, 2), ceil_div(rows_of_all, 4),
                                       ceil_div(rows_of_all, 8)};
  if (p.r <= 3 && rows_of_all > 28) heights.insert(heights.begin(), 14);
  // Rows of whole 32-byte sectors leave as they are; others gain from vectors that span rows.
  const bool vectors = p.q % 16 != 0;
  if (slide_of_rows(p).fresh > 1) {
    consider(cut, 1, covering_power(rows_of_all, 2), 3, heights[0], 64, vectors);
    consider(cut, 1, covering_power(rows_of_all, 2), 3, heights[0], 64, false);
    for (const std::int64_t rows : heights) consider(cut, 1, 1, 4, rows, 64, false);
  } else {
    // A long turn of the loop pays for its waiting and its addresses: 7x7, f16, 32 images of 96x56x56 on an H200 take
    // 12.8 us with 8 rows a turn, 13.2 with 4, 15.0 with 2, 19.1 with 1. Short rows under many kernel rows: whole
    // planes in two long turns, 4 warps a block; of 650 configurations of 5x5, 7x7 and 9x9 on 28x28 within 2 % of the
    // fastest.
    const bool short_rows = p.q <= 32 && p.r >= 5;
    const int batch = covering_power(rows_of_all, 4), depth = p.r < 7 || short_rows ? 3 : 4;
    // A warp's strips are of one channel: where there are fewer images, parts of a plane fill them (9x9, one image of
    // 1536x32x32: 5.5 us with 8 rows, 6.5 with 16, 8.5 with 32).
    const std::int64_t strips = rows_are_images(p) ? 1 : piece_of(p, cut).strips;
    const std::int64_t parts = ceil_div(strips, std::max<std::int64_t>(1, p.n));
    const auto filled = [&](std::int64_t rows) {
      return std::min(rows, std::max(ceil_div(rows_of_all, parts), (p.r + 1) / 2));
    };
    const std::int64_t tall = filled(heights[0]), whole = filled(rows_of_all);
    if (short_rows) consider(cut, 1, 2 * batch, 2, whole, 128, false);
    consider(cut, 1, batch, depth, tall, 64, vectors);
    if (ways.size() > 1 && ways[1].cost < 1.1 * ways[0].cost) {
      consider(ways[1].cut, 1, batch, depth, tall, 64, false);
    }
    consider(cut, 1, batch, depth, tall, 64, !vectors);
    consider(cut, 1, 2 * batch, 3, whole, 64, vectors);
    consider(cut, 1, 2 * batch, 3, whole, 64, !vectors);
    for (const std::int64_t rows : heights) {
      if (rows == rows_of_all || rows >= (p.r + 1) / 2) consider(cut, 1, batch, depth, rows, 64, false);
    }
    if (share > 1) consider(cut, share, batch, 3, heights[0], 64, false);
    consider(cut, 1, 1, 2, heights[0], 64, false);
  }
  consider(narrow_cut(p), 1, 1, 2, rows_of_all, 32, false);  // always fits
  return ranked(std::move(options), device);
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Cut cut = cut_of(config);
  const Window window = window_of(p, cut);
  const Piece piece = piece_of(p, cut);
  const Slide slide = slide_of_rows(p);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  constants.emplace_back("TILES", config.get("tiles"));
  constants.emplace_back("WORDS", window.words);
  constants.emplace_back("COPY", config.get("copy"));
  constants.emplace_back("LEAD", window.lead);
  constants.emplace_back("WHOLE_ROW", window.whole ? 1 : 0);
  const bool vectors = config.get("store") == 8;
  constants.emplace_back("STORE", dividing_power(p.q, std::min(2, max_vector(p))));
  constants.emplace_back("OUT_ROW", vectors ? p.q : 0);
  constants.emplace_back("OUT_PITCH", vectors ? leaving_pitch(p, cut, config.get("batch")) : 0);
  constants.emplace_back("SHARE", config.get("share"));
  constants.emplace_back("BATCH", config.get("batch"));
  constants.emplace_back("DEPTH", config.get("depth"));
  constants.emplace_back("BLOCKS", piece.blocks);
  constants.emplace_back("STRIPS", piece.strips);
  const Arrival arrival = arrival_of(p, cut);
  constants.emplace_back("FULL_ROWS", arrival.full ? 1 : 0);
  constants.emplace_back("ROW_START", arrival.start);
  constants.emplace_back("ROW_COPIES", arrival.copies);
  constants.emplace_back("PITCH", pitch_of(p, cut));
  constants.emplace_back("IMAGES", rows_are_images(p) ? 1 : 0);
  constants.emplace_back("PHASES", slide.phases);
  constants.emplace_back("STEP", slide.step);
  return make_spec(dw_band, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const int warps = config.get("threads") / 32;
  return {.grid = ceil_div(work_of(p, config).warps, warps), .block = config.get("threads"), .dynamic_smem = 0};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const BandWork work = work_of(p, config);
  out = common_params(p);
  out.work = 32 * work.warps;
  out.aux[0] = work.rows;
  out.aux[1] = work.pieces;
  out.aux[2] = work.skip;
  out.div[0] = fast_div(p.k / config.get("share"));
  out.div[1] = fast_div(work.across);
  out.div[2] = fast_div(std::max<std::int64_t>(1, work.parts));
}

}  // namespace

constinit const Schedule dw_band{
    .name = "dw_band",
    .source = "dw_band.cuh",
    .min_capability = 80,
    .size_generic = false,  // the width's divisor and the left pad are compiled in
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
