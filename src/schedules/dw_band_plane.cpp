// dw_band_plane (kernels/dw_band_plane.cuh): 16-bit depthwise NCHW on the matrix unit for small planes. Knobs: channels
// a block, groups that the tiles of 8 outputs of a row are split into, rows of a part of a plane (a run-time number: it
// costs no compilation).
#include <algorithm>
#include <numeric>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr std::int64_t images_of_a_block = 16;  // the rows of A
constexpr std::int64_t widest = 16;             // columns of one matrix instruction

std::int64_t tiles_of(const ConvProblem& p) { return ceil_div(p.q, 8); }

/// Elements of an access to `channels` neighbouring planes of `plane` elements, of `all` in an image.
int access(const ConvProblem& p, std::int64_t channels, std::int64_t all, std::int64_t plane) {
  return dividing_power(std::gcd(channels * plane, all * plane), max_vector(p));
}

/// Shared memory from one image to the next, in 32-bit words: 16-byte aligned, what the last row reads beyond its end,
/// and no two of 8 images in the same banks.
std::int64_t pitch_of(std::int64_t elements) {
  const std::int64_t quads = ceil_div(ceil_div(elements, 2) + 8, 4);
  return 4 * (quads % 2 == 0 ? quads + 1 : quads);
}
std::int64_t pitch_in(const ConvProblem& p, std::int64_t channels) { return pitch_of(channels * p.h * p.w); }
std::int64_t pitch_out(const ConvProblem& p, std::int64_t channels) {
  return pitch_of(channels * p.multiplier() * p.p * p.q);
}
std::int64_t smem_of(const ConvProblem& p, std::int64_t channels) {
  return 4 * images_of_a_block * (pitch_in(p, channels) + pitch_out(p, channels));
}

std::int64_t registers_of(const ConvProblem& p, std::int64_t groups) {
  const std::int64_t tiles = ceil_div(tiles_of(p), groups);
  return tiles * (p.r * ceil_div(p.w, 8) + 4 * slide_of(p).slots) + (p.needs_64bit_offsets() ? 70 : 60);
}
constexpr std::int64_t register_budget = 220;

std::int64_t parts_of(const ConvProblem& p, std::int64_t rows) {
  const Slide slide = slide_of(p);
  return ceil_div(ceil_div(p.p, slide.phases), rows) * slide.phases;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (p.dtype == DType::f32) return "dtype = f32: the matrix unit takes f16 and bf16";
  if (p.layout == Layout::nhwc) return "layout = nhwc: planes are NCHW's";
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.w > widest) return refuse("w", p.w, "at most 16 columns, which one matrix instruction takes");
  if (p.q > 2 * widest) return refuse("q", p.q, "at most 32 columns");
  if (registers_of(p, tiles_of(p)) > register_budget) {
    return refuse("r", p.r, "the bands of all kernel rows do not fit in registers");
  }
  if (access(p, 8, p.c, p.h * p.w) < 2) {
    return refuse("c * h * w", p.c * p.h * p.w, "images must start on the 4 bytes of an asynchronous copy");
  }
  if (smem_of(p, 8) > static_smem_limit && smem_of(p, p.h * p.w % 2 == 0 ? 1 : 2) > static_smem_limit) {
    return refuse("h * w", p.h * p.w, "a plane of 16 images does not fit in 48 KiB of shared memory");
  }
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"channels", "groups", "rows", "threads"})) return refusal;
  const int channels = config.get("channels"), groups = config.get("groups");
  if (channels > 64) return refuse("channels", channels, "at most 64");
  if (access(p, channels, p.c, p.h * p.w) < 2) return refuse("channels", channels, "an even number of elements");
  if (groups > tiles_of(p)) return refuse("groups", groups, "at most the tiles of a row");
  if (registers_of(p, groups) > register_budget) return refuse("groups", groups, "too many registers");
  if (smem_of(p, channels) > static_smem_limit) {
    return refuse("channels", channels, "more than 48 KiB of shared memory");
  }
  return wrong_threads(config);
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Option> options;
  const std::int64_t plane = p.h * p.w;
  const auto consider = [&](std::int64_t channels, std::int64_t groups, std::int64_t split) {
    const std::int64_t rows = ceil_div(ceil_div(p.p, slide_of(p).phases), split);
    const std::int64_t units = channels * p.multiplier() * groups * parts_of(p, rows);
    const std::int64_t threads = 32 * std::clamp<std::int64_t>(units, 1, 8);
    Config config{{{"channels", static_cast<int>(channels)},
                   {"groups", static_cast<int>(groups)},
                   {"rows", static_cast<int>(rows)},
                   {"threads", static_cast<int>(threads)}}};
    if (fits(p, config)) return;
    options.push_back({std::move(config), ceil_div(p.c, channels) * ceil_div(p.n, images_of_a_block) * threads});
  };
  // The fewest planes whose start every vector may have, and twice and four times as many.
  const std::int64_t least = max_vector(p) / std::gcd<std::int64_t>(plane, max_vector(p));
  for (const std::int64_t channels : {std::max<std::int64_t>(2, least), 2 * least, 4 * least, least, std::int64_t{1}}) {
    if (channels > std::max<std::int64_t>(2, p.c)) continue;
    consider(channels, 1, 1);
    if (tiles_of(p) > 1) consider(channels, tiles_of(p), 1);
    if (p.p > 7) consider(channels, 1, 2);
  }
  consider(plane % 2 == 0 ? 1 : 2, tiles_of(p), 1);
  return ranked(std::move(options), device);
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Slide slide = slide_of(p);
  const std::int64_t channels = config.get("channels"), groups = config.get("groups");
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  constants.emplace_back("WORDS", ceil_div(p.w, 8));
  constants.emplace_back("ODD", p.w % 2 != 0 || p.h * p.w % 2 != 0 ? 1 : 0);
  constants.emplace_back("LEAD", -p.pad_left);
  constants.emplace_back("TILES", ceil_div(tiles_of(p), groups));
  constants.emplace_back("GROUPS", groups);
  constants.emplace_back("STORE", dividing_power(p.q, max_vector(p) >= 2 ? 2 : 1));
  constants.emplace_back("CHANNELS", channels);
  constants.emplace_back("COPY", access(p, channels, p.c, p.h * p.w));
  constants.emplace_back("FLUSH", access(p, channels * p.multiplier(), p.k, p.p * p.q));
  constants.emplace_back("PHASES", slide.phases);
  constants.emplace_back("STEP", slide.step);
  return make_spec(dw_band_plane, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const std::int64_t channels = config.get("channels");
  return {.grid = ceil_div(p.c, channels) * ceil_div(p.n, images_of_a_block),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(smem_of(p, channels))};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const std::int64_t channels = config.get("channels");
  out = common_params(p);
  out.work = geometry(p, config).grid * config.get("threads");
  out.aux[0] = config.get("rows");
  out.aux[1] = parts_of(p, config.get("rows"));
  out.aux[2] = pitch_in(p, channels);
  out.aux[3] = pitch_out(p, channels);
  out.div[0] = fast_div(ceil_div(p.c, channels));
  out.div[1] = fast_div(channels * p.h * p.w / access(p, channels, p.c, p.h * p.w));
  out.div[2] = fast_div(channels * p.multiplier() * p.p * p.q / access(p, channels * p.multiplier(), p.k, p.p * p.q));
}

}  // namespace

constinit const Schedule dw_band_plane{
    .name = "dw_band_plane",
    .source = "dw_band_plane.cuh",
    .min_capability = 80,
    .size_generic = false,  // row length, left pad and what divides a plane are compiled in
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
