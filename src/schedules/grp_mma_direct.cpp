// grp_mma_direct (kernels/grp_mma_direct.cuh): 16-bit, 2, 4 or 8 channels a group, on the matrix unit without shared
// memory, for calls that latency decides. Knobs: units of 8 outputs, rows (NHWC: of each of two strips) and 8 part
// columns (NHWC: 8) a warp, beside warps of a block along the units, threads.
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "schedules/tile_model.hpp"

namespace sl {
namespace {

/// Elements of one image and of the weights: offsets within them have 32 bits.
constexpr std::int64_t most_elements = std::int64_t{1} << 29;
constexpr std::int64_t most_registers = 200;  // by the estimate; ptxas has 255
constexpr std::size_t most_configs =
    4;  // on an H200 the first was within 2 %, the best of four within 0.2 % of the best of six

struct Shape {
  std::int64_t units, rows, part, beside, threads;  // the knobs
  std::int64_t high, tall, wide;                    ///< input rows, output rows and columns of a warp
  std::int64_t vec, lead;                           ///< NCHW: columns a load; those before the window
  std::int64_t loads, words;                        ///< of a lane for x; registers they take
  std::int64_t along, blocks;                       ///< blocks over the same units; blocks of an image
};

/// Units that read the same octet of channels.
std::int64_t parts(const ConvProblem& p) { return p.multiplier() / p.channels_per_group(); }

Shape shape_of(const ConvProblem& p, const Config& config) {
  Shape s{};
  s.units = config.get("units"), s.rows = config.get("rows"), s.part = config.get("part");
  s.beside = config.get("beside"), s.threads = config.get("threads");
  const std::int64_t octets = std::max<std::int64_t>(1, s.units / parts(p));
  s.tall = nhwc(p) ? 2 * s.rows : s.rows, s.wide = 8 * s.part;
  s.high = (s.tall - 1) * p.stride_h + p.effective_r();
  const std::int64_t high = std::min(s.high, s.tall * p.r);
  if (nhwc(p)) {
    s.vec = 1;
    s.loads = s.words = high * p.s * octets;
  } else {
    const std::int64_t span = (s.part - 1) * p.stride_w + p.effective_s();
    s.vec = dividing_power(p.w, dividing_power(s.part * p.stride_w, std::min(4, max_vector(p))));
    s.lead = ((-p.pad_left) % s.vec + s.vec) % s.vec;
    s.loads = 2 * high * std::min(ceil_div(s.lead + span, s.vec), s.part * p.s) * octets;
    s.words = s.loads * std::max<std::int64_t>(1, s.vec / 2) + 2 * std::min(span, s.part * p.s);
  }
  s.along = ceil_div(ceil_div(p.q, s.wide) * ceil_div(p.p, s.tall), s.threads / 32 / s.beside);
  s.blocks = ceil_div(p.k / 8, s.units * s.beside) * s.along;
  return s;
}

std::int64_t registers_of(const ConvProblem& p, const Shape& s) {
  const std::int64_t sums = nhwc(p) ? 4 * s.rows : 3 * s.rows * s.part;
  return s.words + s.units * (p.taps() + sums * (p.residual ? 3 : 2) / 2 + (p.bias == Bias::none ? 0 : 2)) + 32;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"units", "rows", "part", "beside", "threads"})) return refusal;
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int units = config.get("units"), rows = config.get("rows"), part = config.get("part");
  const int beside = config.get("beside"), threads = config.get("threads");
  if (units > 8 || p.k / 8 % units != 0 || (units % parts(p) != 0 && parts(p) % units != 0)) {
    return refuse("units", units, "at most 8; divides k / 8, and divides or is divided by k / c");
  }
  if (rows > 8) return refuse("rows", rows, "at most 8");
  if (part > (nhwc(p) ? 1 : 4) || !power_of_two(part)) return refuse("part", part, "1; 2 or 4 too in nchw");
  if (threads / 32 % beside != 0) return refuse("beside", beside, "must divide the warps of a block");
  const Shape s = shape_of(p, config);
  if (s.high > 64) return refuse("rows", rows, "a window of more than 64 rows");
  const std::int64_t budget = std::min<std::int64_t>(most_registers, 65536 / threads / 8 * 8);
  if (registers_of(p, s) > budget) return refuse("units", units, "too many registers with these rows and threads");
  if (p.n * s.blocks > max_grid) return refuse("units", units, "needs more blocks than the 2147483647 of a grid");
  return std::nullopt;
}

/// In the measure of an H200, of one image: a call's batch is compiled into nothing, so it may not decide what is.
double cost_of(const ConvProblem& p, const DeviceInfo& device, const Shape& s) {
  const auto count = [](std::int64_t v) { return static_cast<double>(v); };
  const double weights = count(s.units * p.taps()), sums = count(s.units * s.rows * s.part);
  const double instructions = 100 + 2 * count(s.loads) + 2 * weights + sums * (count(p.taps()) + 24);
  const std::int64_t sms = std::max(1, device.sm_count), warps = s.threads / 32, blocks = ceil_div(s.blocks, sms);
  const std::int64_t registers = ceil_div(std::max<std::int64_t>(32, registers_of(p, s)), 8) * 8;
  const std::int64_t resident = std::clamp<std::int64_t>(65536 / (registers * s.threads), 1, 2048 / s.threads);
  const double all = count(blocks * warps), later = count(ceil_div(blocks, resident) - 1);
  return (1 + later) * instructions + all * (0.1 * instructions + 0.5 * (count(s.loads) + weights));
}

std::vector<Config> every_config(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<std::pair<double, Config>> all;
  for (const int units : {1, 2, 4}) {
    for (const int rows : {1, 2, 4}) {
      for (const int part : {1, 2, 4}) {
        if (8 * part >= 2 * covering_power(p.q, 32) && part > 1) continue;  // most of the columns beyond the row
        for (const int threads : {64, 128}) {
          for (const int beside : {1, 2}) {
            Config config{{{"units", units}, {"rows", rows}, {"part", part}, {"beside", beside}, {"threads", threads}}};
            if (fits(p, config)) continue;
            const double cost = cost_of(p, device, shape_of(p, config));
            all.emplace_back(cost, std::move(config));
          }
        }
      }
    }
  }
  return fastest_first(std::move(all));
}

std::vector<Config> configs_of(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> configs;
  for (Config& config : every_config(p, device)) {
    if (configs.size() == most_configs) break;
    const auto same = std::count_if(configs.begin(), configs.end(), [&](const Config& other) {
      return std::equal(other.knobs.begin(), other.knobs.begin() + 3, config.knobs.begin());  // units, rows, part
    });
    if (same < 2) configs.push_back(std::move(config));
  }
  return configs;
}

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (p.dtype == DType::f32) return "dt = f32: the matrix unit takes f16 and bf16 here";
  const std::int64_t cpg = p.channels_per_group();
  if (cpg != 2 && cpg != 4 && cpg != 8) return refuse("c / groups", cpg, "2, 4 or 8");
  if (p.multiplier() % cpg != 0) return refuse("k / groups", p.multiplier(), "a multiple of c / groups");
  if (p.c % 8 != 0) return refuse("c", p.c, "a multiple of 8, so that units of 8 outputs read 8 channels");
  if (p.align < 4) return refuse("align", p.align, "at least 4: two channels are loaded at once");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  const std::int64_t elements = std::max({p.c * p.h * p.w, p.k * p.p * p.q, p.w_elements()});
  if (elements > most_elements) return refuse("elements of an image", elements, "offsets within it have 32 bits");
  if (configs_of(p, device).empty()) return refuse("r * s", p.taps(), "no window fits in registers");
  return std::nullopt;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s = shape_of(p, config);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  add_sizes(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"UNITS", s.units},   {"ROWS", s.rows},
      {"PART", s.part},     {"VEC", s.vec},
      {"LEAD", s.lead},     {"STORE", dividing_power(p.q, dividing_power(2 * s.part, max_vector(p)))},
      {"BESIDE", s.beside}, {"IMAGE_BLOCKS", s.blocks},
      {"ALONG", s.along},   {"SWAP", nhwc(p) && s.units % 2 == 0 && p.align >= 8 ? 1 : 0},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return make_spec(grp_mma_direct, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return {.grid = p.n * shape_of(p, config).blocks, .block = config.get("threads"), .dynamic_smem = 0};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  out.work = geometry(p, config).grid * config.get("threads");
}

}  // namespace

constinit const Schedule grp_mma_direct{
    .name = "grp_mma_direct",
    .source = "grp_mma_direct.cuh",
    .min_capability = 80,
    .size_generic = false,
    .promises_no_spill = true,
    .arithmetic = Arithmetic::mma,
    .can_run = can_run,
    .configs = configs_of,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
