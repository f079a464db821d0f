// dw_row8 (kernels/dw_row8.cuh): register sliding window. Knobs: vec (NHWC: channels a thread; NCHW: columns a load),
// cols outputs along the row, rows a thread slides down (a run-time number: it costs no compilation).
#include <algorithm>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

/// Registers a thread needs, from what it keeps: weights, sums in flight, one row widened, two rows raw, the addresses
/// of a row's loads, and about 40 besides. An upper bound in practice, set against ptxas for sm_80, sm_90 and sm_120
/// (nvrtc_space_test): wide strides and 64-bit addresses are what spills first.
std::int64_t registers_of(const ConvProblem& p, std::int64_t vec, std::int64_t cols) {
  const bool nhwc = p.layout == Layout::nhwc;
  const std::int64_t channels = nhwc ? vec : 1;
  const std::int64_t span = (cols - 1) * p.stride_w + p.s;
  const std::int64_t slots = ceil_div(p.r, p.stride_h);
  const std::int64_t bytes = static_cast<std::int64_t>(size_of(p.dtype));
  const std::int64_t loads = nhwc ? span : ceil_div(span, vec);
  const std::int64_t words = loads * std::max<std::int64_t>(1, vec * bytes / 4);
  const std::int64_t addresses = loads * (p.needs_64bit_offsets() ? 4 : 2);
  const std::int64_t sums = slots * cols * channels;
  // Beyond 96 sums the shift between slots keeps copies: 7x1 with 2 channels x 8 columns (112) spilled at 255
  // registers.
  const std::int64_t copies = std::max<std::int64_t>(0, sums - 96);
  return p.taps() * channels + sums + copies + span * channels + 2 * words + addresses + 40;
}
constexpr std::int64_t register_budget = 225;

/// -pad_left mod vec: with vec dividing the row length, every vector starts on its own boundary.
std::int64_t lead_of(const ConvProblem& p, std::int64_t vec) { return ((-p.pad_left) % vec + vec) % vec; }

TileWork work_of(const ConvProblem& p, const Config& config) {
  const int channels = p.layout == Layout::nhwc ? config.get("vec") : 1;
  return {.channel_blocks = p.k / channels,
          .tiles = ceil_div(p.q, config.get("cols")),
          .strips = ceil_div(p.p, config.get("rows"))};
}

Refusal can_run(const ConvProblem& p, const DeviceInfo&) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (Refusal refusal = dilated(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.r > 16) return refuse("r", p.r, "at most 16 kernel rows");
  if (p.taps() > 81) return refuse("r * s", p.taps(), "weights stay in registers, so at most 81 taps");
  if (registers_of(p, 1, 2) > register_budget) {
    return refuse("stride_w", p.stride_w, "the window of 2 outputs does not fit in registers");
  }
  return too_many_blocks(p, {.channel_blocks = p.k, .tiles = p.q, .strips = p.p}, 128);
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"vec", "cols", "rows", "threads"})) return refusal;
  const int vec = config.get("vec"), cols = config.get("cols");
  if (!power_of_two(vec) || vec > max_vector(p)) return refuse("vec", vec, "a power of two within the alignment class");
  if (cols > 16) return refuse("cols", cols, "at most 16");
  if (p.layout == Layout::nhwc) {
    if (vec > 1 && p.multiplier() != 1) return refuse("vec", vec, "1 where the multiplier is not 1");
    if (p.k % vec != 0) return refuse("vec", vec, "must divide k = " + std::to_string(p.k));
  } else {
    if (p.w % vec != 0) return refuse("vec", vec, "must divide w = " + std::to_string(p.w));
    if (cols * p.stride_w % vec != 0) return refuse("vec", vec, "must divide cols * stride_w");
  }
  if (registers_of(p, vec, cols) > register_budget) return refuse("cols", cols, "too many registers with this vec");
  return wrong_threads(config);
}

/// Rows of a strip: the tallest that still fills the device, since every strip reads r - 1 rows again.
int rows_for(const ConvProblem& p, const DeviceInfo& device, std::int64_t threads_of_one_row) {
  std::int64_t parts = 1;
  while (parts < p.p && (threads_of_one_row / p.p * parts < busy_threads(device) || ceil_div(p.p, parts) > 64)) ++parts;
  return static_cast<int>(ceil_div(p.p, parts));
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  struct Shape {
    int vec, cols;
  };
  std::vector<Shape> shapes;
  shapes.reserve(16);  // g++ 12 at -O3 warns wrongly about inserting into an empty vector
  if (p.layout == Layout::nhwc) {
    // Narrow vectors keep many rows in flight at few registers: 3x3, f16, 32 images of 144x56x56 on an H200 take 25.2
    // us with 4 channels x 4 columns, 34.6 with 2 x 4, 50 with 1 x 4. From 5x5 on, one channel and a long row.
    if (p.q % 7 == 0 && p.q <= 14) shapes = {{2, 7}, {1, 7}};
    if (p.taps() <= 9) shapes.insert(shapes.end(), {{4, 4}, {2, 4}, {2, 8}, {1, 8}, {1, 4}});
    if (p.taps() > 9) shapes.insert(shapes.end(), {{1, 8}, {2, 4}, {1, 7}, {1, 4}});
  } else {
    for (int vec = dividing_power(p.w, max_vector(p)); vec >= 1; vec /= 2)
      shapes.insert(shapes.end(), {{vec, 8}, {vec, 4}});
  }
  // The smallest always fits; a row shorter than the tile wastes the rest of it.
  shapes.insert(shapes.end(), {{1, 4}, {1, 2}, {1, 1}});

  std::vector<Option> options;
  for (const bool shorter : {false, true}) {  // each shape once, then again with strips of half the height
    for (const auto& [vec, cols] : shapes) {
      Config config{{{"vec", vec}, {"cols", cols}, {"rows", 1}, {"threads", 128}}};
      if (fits(p, config) || cols >= 2 * covering_power(p.q, 16)) continue;
      const int rows = rows_for(p, device, work_of(p, config).items(p));
      if (shorter && rows < 4) continue;
      config.knobs[2].second = shorter ? (rows + 1) / 2 : rows;
      const std::int64_t started = work_of(p, config).items(p);
      options.push_back({std::move(config), started});
    }
  }
  return ranked(std::move(options), device);
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const int vec = config.get("vec"), cols = config.get("cols");
  Constants constants = common_constants(p);
  constants.emplace_back("VEC", vec);
  constants.emplace_back("COLS", cols);
  if (p.layout == Layout::nchw) {
    constants.emplace_back("LEAD", lead_of(p, vec));
    constants.emplace_back("STORE", dividing_power(p.q, dividing_power(cols, max_vector(p))));
  }
  return make_spec(dw_row8, std::move(constants), config.get("threads"));
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  return tile_geometry(p, work_of(p, config), config.get("threads"));
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  tile_params(p, work_of(p, config), out);
  out.aux[0] = config.get("rows");
}

}  // namespace

constinit const Schedule dw_row8{
    .name = "dw_row8",
    .source = "dw_row8.cuh",
    .min_capability = 80,
    .size_generic = false,  // NCHW compiles in which vectors the row length and the left pad allow
    .promises_no_spill = true,
    .arithmetic = Arithmetic::fma,
    .can_run = can_run,
    .configs = configs,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
