// dw_toeplitz (kernels/dw_toeplitz.cuh): 16-bit depthwise NCHW on the matrix unit, small planes as vectors. Knobs:
// channels a block, warps a channel, times 16 images that a block works through (a run-time number: it costs no
// compilation).
#include <algorithm>
#include <numeric>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/toeplitz.hpp"

namespace sl {
namespace {

using toeplitz::chunks_of;
using toeplitz::length_of;
using toeplitz::pitch_of;
using toeplitz::registers_of;
using toeplitz::rows_of_a;

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
  if (Refusal refusal = toeplitz::not_small_planes(p)) return refusal;
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
  Constants constants = toeplitz::constants(p, channels, config.get("groups"), config.get("parts"));
  constants.emplace_back("COPY", access(p, channels, p.c, p.h * p.w));
  constants.emplace_back("FLUSH", access(p, channels, p.k, p.p * p.q));
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
