// dw_toeplitz (kernels/dw_toeplitz.cuh): 16-bit depthwise NCHW on the matrix unit, small planes as vectors. Knobs:
// channels a block, warps a channel, times 16 images that a block works through (a run-time number: it costs no
// compilation).
#include <algorithm>
#include <numeric>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr std::int64_t rows_of_a = 16;  // images
constexpr std::int64_t largest = 256;   // pixels of a plane: its chunks of 8 are registers

/// How late in a chunk of 8 elements a plane may begin.
std::int64_t late_of(std::int64_t plane) { return 8 - std::gcd<std::int64_t>(plane, 8); }
/// How many chunks of 8 elements a plane meets, wherever it begins.
std::int64_t chunks_of(std::int64_t plane) { return ceil_div(plane + late_of(plane), 8); }

/// As PlaneMatrix in the kernel: the pixel under the first tap of output n, and whether a chunk may meet a tile's taps.
struct Matrix {
  const ConvProblem& p;
  std::int64_t x = p.h * p.w, y = p.p * p.q;
  std::int64_t reach = (p.r - 1) * dil(p.r, p.dil_h) * p.w + (p.s - 1) * dil(p.s, p.dil_w);
  bool same = p.stride_h == 1 && p.stride_w == 1 && p.p == p.h && p.q == p.w;

  static std::int64_t dil(std::int64_t taps, std::int64_t dilation) { return taps == 1 ? 1 : dilation; }
  std::int64_t origin(std::int64_t n) const {
    return (n / p.q * p.stride_h - p.pad_top) * p.w + n % p.q * p.stride_w - p.pad_left;
  }
  /// Distances from an output's first tap to the pixels that it is multiplied with.
  std::pair<std::int64_t, std::int64_t> distances() const {
    if (same) return {-14, reach + 14};
    std::int64_t low = 0, high = reach;
    for (std::int64_t j = 0; j < chunks_of(y); ++j) {
      const std::int64_t first = std::max<std::int64_t>(0, 8 * j - late_of(y)), last = std::min(8 * j + 7, y - 1);
      const std::int64_t next = std::min((first / p.q + 1) * p.q, last), before = std::max(last / p.q * p.q - 1, first);
      const std::int64_t lowest = std::min(origin(first), origin(next));
      const std::int64_t highest = std::max(origin(last), origin(before));
      // The first and last chunks that tile j uses, and what else is in them.
      low = std::min(low, lowest - 7 - late_of(x) - highest);
      high = std::max(high, highest + reach + late_of(x) + 7 - lowest);
    }
    return {low, high};
  }
};

/// From image to image in 32-bit words: whole chunks, what the last one holds beyond the planes, and an odd number of
/// them, so that matrix loads meet no bank twice.
std::int64_t pitch_of(std::int64_t elements) {
  const std::int64_t quads = ceil_div(elements, 8) + 2;
  return 4 * (quads % 2 == 0 ? quads + 1 : quads);
}
/// Elements of a table before the first tap.
std::int64_t low_of(const ConvProblem& p) { return -Matrix{p}.distances().first; }
/// Elements of a table: lengths of 14 modulo 16 bring most columns of a tile to banks of their own.
std::int64_t length_of(const ConvProblem& p) {
  const auto [low, high] = Matrix{p}.distances();
  return ceil_div(high - low + 2 - 14, 16) * 16 + 14;
}

/// Registers of a thread, `parts` warps a channel, 16 x `groups` images at once: above all the chunks of input that a
/// part of the tiles keeps, two each.
std::int64_t registers_of(const ConvProblem& p, std::int64_t parts, std::int64_t groups) {
  const Matrix m{p};
  const std::int64_t tiles = chunks_of(m.y), share = ceil_div(tiles, parts);
  const std::int64_t rows = ceil_div(8 * share + late_of(m.y), p.q) + 1;
  const std::int64_t span = (rows * p.stride_h * p.w + m.reach) / 8 + 3;
  return (2 * std::min(chunks_of(m.x), span) + 8) * groups + (groups > 1 ? 75 : 50);
}

/// Elements of an access to `channels` neighbouring planes of `plane` elements, of `all` in an image.
int access(const ConvProblem& p, std::int64_t channels, std::int64_t all, std::int64_t plane) {
  return dividing_power(std::gcd(channels * plane, all * plane), max_vector(p));
}

std::int64_t smem_of(const ConvProblem& p, std::int64_t channels, std::int64_t groups) {
  const std::int64_t images = rows_of_a * groups * (pitch_of(channels * p.h * p.w) + pitch_of(channels * p.p * p.q));
  const std::int64_t columns = 8 * chunks_of(p.p * p.q) + 8, tables = ceil_div(channels * p.q * length_of(p), 4) * 4;
  return 4 * (images + columns + tables);
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (p.dtype == DType::f32) return "dtype = f32: the matrix unit takes f16 and bf16";
  if (p.layout == Layout::nhwc) return "layout = nhwc: planes are NCHW's";
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.h > largest || p.w > largest || p.h * p.w > largest) {
    return refuse("h * w", p.h * p.w, "planes of 256 pixels at most");
  }
  if (p.p > largest || p.q > largest || p.p * p.q > largest) {
    return refuse("p * q", p.p * p.q, "planes of 256 pixels at most");
  }
  if (p.stride_h > 1) return refuse("stride_h", p.stride_h, "dw_plane is faster beyond 1");
  if (p.stride_w > 1) return refuse("stride_w", p.stride_w, "dw_plane is faster beyond 1");
  if (p.taps() < 15) return refuse("r * s", p.taps(), "dw_plane is faster below 15 taps");
  if (p.taps() > 81) return refuse("r * s", p.taps(), "at most 81 taps");
  if (p.taps() >= 49 && p.h * p.w > 56) return refuse("h * w", p.h * p.w, "dw_band_rows is faster from 49 taps on");
  if (access(p, 8, p.c, p.h * p.w) < 2) {
    return refuse("c * h * w", p.c * p.h * p.w, "images must start on the 4 bytes of an asynchronous copy");
  }
  if (smem_of(p, 2, 1) > portable_smem_limit) return refuse("h * w", p.h * p.w, "more than 96 KiB of shared memory");
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"channels", "groups", "parts", "turns", "threads"})) return refusal;
  const int channels = config.get("channels"), groups = config.get("groups"), parts = config.get("parts");
  const int threads = config.get("threads");
  if (channels > 32) return refuse("channels", channels, "at most 32");
  if (groups > 2) return refuse("groups", groups, "at most 2");
  if (parts > chunks_of(p.p * p.q)) return refuse("parts", parts, "at most the tiles of a plane");
  if (access(p, channels, p.c, p.h * p.w) < 2) return refuse("channels", channels, "an even number of elements");
  if (threads != 32 * channels * parts || threads > 512) {
    return refuse("threads", threads, "a warp for every part of every channel, at most 512");
  }
  if (registers_of(p, parts, groups) > (threads > 256 ? 120 : 220)) return refuse("parts", parts, "too many registers");
  if (smem_of(p, channels, groups) > portable_smem_limit)
    return refuse("channels", channels, "more than 96 KiB of shared memory");
  return std::nullopt;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo&) {
  struct Try {
    std::int64_t channels, groups, parts, turns;
  };
  // About 256 pixels of an image a block.
  const std::int64_t c = std::max(2, covering_power(ceil_div(129, p.h * p.w), 32));
  const bool small = p.h * p.w <= 64;
  const std::initializer_list<Try> tries[] = {{{c, 2, 2, 2}, {c, 2, 3, 2}, {c, 2, 4, 2}, {c, 1, 3, 1}, {c, 1, 2, 1}},
                                              {{c, 1, 1, 1}, {c, 1, 2, 1}, {c, 1, 1, 2}, {c, 2, 1, 1}, {c, 1, 4, 1}}};
  std::vector<Config> configs;
  configs.reserve(8);
  for (const Try& t : tries[small ? 1 : 0]) {
    const std::int64_t parts = std::min(t.parts, chunks_of(p.p * p.q));
    Config config{{{"channels", static_cast<int>(t.channels)},
                   {"groups", static_cast<int>(t.groups)},
                   {"parts", static_cast<int>(parts)},
                   {"turns", static_cast<int>(t.turns)},
                   {"threads", static_cast<int>(32 * t.channels * parts)}}};
    if (fits(p, config) || std::find(configs.begin(), configs.end(), config) != configs.end()) continue;
    configs.push_back(std::move(config));
  }
  if (configs.size() > 4) configs.resize(4);
  return configs;
}

Refusal can_run_configured(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = can_run(p, device)) return refusal;
  if (configs(p, device).empty()) return refuse("h * w", p.h * p.w, "too large for a block's planes");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const std::int64_t channels = config.get("channels");
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  add_plane(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"CHANNELS", channels},
      {"GROUPS", config.get("groups")},
      {"PARTS", config.get("parts")},
      {"X_PITCH", pitch_of(channels * p.h * p.w)},
      {"Y_PITCH", pitch_of(channels * p.p * p.q)},
      {"LOW", low_of(p)},
      {"LENGTH", length_of(p)},
      {"COPY", access(p, channels, p.c, p.h * p.w)},
      {"FLUSH", access(p, channels, p.k, p.p * p.q)},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return make_spec(dw_toeplitz, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const std::int64_t channels = config.get("channels");
  return {.grid = ceil_div(p.c, channels) * ceil_div(p.n, rows_of_a * config.get("groups") * config.get("turns")),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(smem_of(p, channels, config.get("groups")))};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  out.work = geometry(p, config).grid * config.get("threads");
  out.aux[0] = config.get("turns");
  out.div[0] = fast_div(ceil_div(p.c, static_cast<std::int64_t>(config.get("channels"))));
}

}  // namespace

constinit const Schedule dw_toeplitz{
    .name = "dw_toeplitz",
    .source = "dw_toeplitz.cuh",
    .min_capability = 80,
    .size_generic = false,
    .promises_no_spill = true,
    .arithmetic = Arithmetic::mma,
    .can_run = can_run_configured,
    .configs = configs,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
