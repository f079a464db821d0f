// dw_toeplitz_bulk (kernels/dw_toeplitz_bulk.cuh): dw_toeplitz with bulk copies, from compute capability 9.0 on. Knobs:
// channels a unit, times 16 images of a unit, warps a channel, buffers of x, blocks at most (a run-time number).
#include <algorithm>
#include <numeric>

#include "schedules/list.hpp"
#include "schedules/toeplitz.hpp"

namespace sl {
namespace {

using toeplitz::rows_of_a;

constexpr int capability = 90;         // of cp.async.bulk
constexpr std::int64_t of_a_copy = 8;  // elements: runs are multiples of 16 bytes

/// Neighbouring planes that are a run of whole copies, of x and of y.
std::int64_t whole_planes(const ConvProblem& p) {
  return of_a_copy / std::gcd(of_a_copy, std::gcd(p.h * p.w, p.p * p.q));
}

struct Shape {
  std::int64_t channels, groups, parts, stages;
  std::int64_t threads() const { return rows_of_a * 2 * channels * parts; }
};
Shape shape_of(const Config& c) { return {c.get("channels"), c.get("groups"), c.get("parts"), c.get("stages")}; }

std::int64_t smem_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t images = rows_of_a * s.groups;
  const std::int64_t x = images * toeplitz::pitch_of(s.channels * p.h * p.w);
  const std::int64_t y = images * toeplitz::pitch_of(s.channels * p.p * p.q);
  const std::int64_t columns = 8 * toeplitz::chunks_of(p.p * p.q) + 8;
  const std::int64_t tables = ceil_div(s.channels * p.q * toeplitz::length_of(p), 4) * 4;
  return 4 * (s.stages * x + (s.stages > 1 ? 2 : 1) * y + columns + tables) + 8 * s.stages;
}

struct Units {
  std::int64_t along;  ///< of the images
  std::int64_t all;
};
Units units_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t along = ceil_div(p.n, rows_of_a * s.groups);
  return {along, along * ceil_div(p.c, s.channels)};
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = toeplitz::not_small_planes(p)) return refusal;
  if (!device_supports(capability, device)) return refuse("capability", device.capability, "bulk copies need 90");
  if (p.align < 16) return refuse("align", p.align, "bulk copies begin at multiples of 16 bytes");
  if (p.c % whole_planes(p) != 0) return refuse("c", p.c, "images must begin at multiples of 16 bytes");
  if (smem_of(p, {whole_planes(p), 1, 1, 1}) > portable_smem_limit) {
    return refuse("h * w", p.h * p.w, "more than 96 KiB of shared memory");
  }
  if (units_of(p, {whole_planes(p), 1, 1, 1}).all > max_grid) {
    return refuse("n * c", p.n * p.c, "more than 2147483647 units");
  }
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"channels", "groups", "parts", "stages", "grid", "threads"}))
    return refusal;
  const Shape s = shape_of(config);
  if (s.channels > 32 || s.channels % whole_planes(p) != 0) {
    return refuse("channels", s.channels, "at most 32 planes, and whole copies of 16 bytes");
  }
  if (s.groups > 2) return refuse("groups", s.groups, "at most 2");
  if (s.parts > toeplitz::chunks_of(p.p * p.q)) return refuse("parts", s.parts, "at most the tiles of a plane");
  if (s.stages > 8) return refuse("stages", s.stages, "at most 8");
  if (config.get("threads") != s.threads() || s.threads() > 512) {
    return refuse("threads", config.get("threads"), "a warp for every part of every channel, at most 512");
  }
  if (toeplitz::registers_of(p, s.parts, s.groups) + 8 > (s.threads() > 256 ? 120 : 220)) {
    return refuse("parts", s.parts, "too many registers");
  }
  if (smem_of(p, s) > portable_smem_limit) return refuse("stages", s.stages, "more than 96 KiB of shared memory");
  return std::nullopt;
}

/// Blocks that a multiprocessor holds, where a device does not say otherwise one of an H200.
std::int64_t resident(const ConvProblem& p, const Shape& s, const DeviceInfo& device) {
  const std::int64_t smem = device.smem_per_sm > 0 ? device.smem_per_sm : 233472;
  // An upper bound; twice 16 images share what one needs beside them.
  const std::int64_t bound = toeplitz::registers_of(p, s.parts, s.groups);
  const std::int64_t registers = (s.groups > 1 ? bound * 18 / 25 + 7 : bound + 7) / 8 * 8;
  return std::max<std::int64_t>(
      1, std::min({smem / (smem_of(p, s) + 1024), 65536 / (s.threads() * registers), 2048 / s.threads()}));
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  // Runs of about half a kilobyte: shorter ones are more work to ask for than to bring.
  const std::int64_t step = whole_planes(p),
                     c = step * std::clamp<std::int64_t>(256 / (step * p.h * p.w), 1, 32 / step);
  const std::initializer_list<Shape> tries[] = {
      {{c, 1, 3, 2}, {c, 1, 4, 2}, {c, 2, 4, 1}, {c, 1, 4, 1}, {c, 1, 2, 2}, {c, 1, 1, 1}},
      {{c, 1, 1, 2}, {c, 1, 2, 2}, {c, 1, 1, 1}, {c, 1, 1, 3}, {step, 1, 2, 2}, {step, 1, 1, 1}}};
  std::vector<Config> configs;
  configs.reserve(8);
  for (const Shape& t : tries[p.h * p.w <= 64 ? 1 : 0]) {
    Shape s = t;
    s.parts = std::min(s.parts, toeplitz::chunks_of(p.p * p.q));
    Config config{{{"channels", static_cast<int>(s.channels)},
                   {"groups", static_cast<int>(s.groups)},
                   {"parts", static_cast<int>(s.parts)},
                   {"stages", static_cast<int>(s.stages)},
                   {"grid", static_cast<int>(resident(p, s, device) * std::max(1, device.sm_count))},
                   {"threads", static_cast<int>(s.threads())}}};
    if (fits(p, config) || std::find(configs.begin(), configs.end(), config) != configs.end()) continue;
    configs.push_back(std::move(config));
  }
  if (configs.size() > 6) configs.resize(6);
  return configs;
}

Refusal can_run_configured(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = can_run(p, device)) return refusal;
  if (configs_of(p, device).empty()) return refuse("h * w", p.h * p.w, "too large for a unit's planes");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(config);
  Constants constants = toeplitz::constants(p, s.channels, s.groups, s.parts);
  constants.emplace_back("STAGES", s.stages);
  return make_spec(dw_toeplitz_bulk, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(config);
  return {.grid = std::min<std::int64_t>(units_of(p, s).all, config.get("grid")),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(smem_of(p, s))};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  const Units units = units_of(p, shape_of(config));
  dealt_params(p, geometry(p, config), units.all, out);
  out.div[0] = fast_div(std::max<std::int64_t>(1, units.along));
}

}  // namespace

constinit const Schedule dw_toeplitz_bulk{
    .name = "dw_toeplitz_bulk",
    .source = "dw_toeplitz_bulk.cuh",
    .min_capability = capability,
    .size_generic = false,
    .promises_no_spill = true,
    .arithmetic = Arithmetic::mma,
    .can_run = can_run_configured,
    .configs = configs_of,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
