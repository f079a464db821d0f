// dw_band_nhwc (kernels/dw_band_nhwc.cuh): depthwise 16-bit NHWC on the sparse tensor cores. Knobs: ch channels a block
// in groups of cw, own groups a warp, rows output rows of a strip, groups row groups of a step, strips across, images
// of a block, slots units of rows in the ring, chunk kernel rows in registers (the filter is in shared memory where
// that is not all), threads, blocks a multiprocessor should hold (caps the registers), and steps a block works through,
// which costs no compilation. Pitches of the tiles in shared memory are searched here so that no access conflicts.
#include <algorithm>
#include <array>
#include <utility>

#include "schedules/common.hpp"
#include "schedules/list.hpp"

namespace sl {
namespace {

constexpr int smem_limit = 227 * 1024;  ///< what a block may opt in to on the largest device

int store_of(const ConvProblem& p) { return dividing_power(p.k, max_vector(p)); }

/// What follows from the problem and the knobs; the kernel's constants of the same names.
struct Shape {
  int ch, cw, own, rows, row_groups, strips, images, slots, chunk, threads;
  int out, pixels, units, first_units;
  bool held;  ///< the input of a step comes through registers
  int lanes;
  bool wide;
  Shape(const ConvProblem& p, const Config& c)
      : ch(c.get("ch")),
        cw(c.get("cw")),
        own(c.get("own")),
        rows(c.get("rows")),
        row_groups(c.get("groups")),
        strips(c.get("strips")),
        images(c.get("images")),
        slots(c.get("slots")),
        chunk(c.get("chunk") < p.r ? c.get("chunk") : 0),
        threads(c.get("threads")),
        out(16 / cw),
        pixels(8 / cw),
        units(static_cast<int>(ceil_div((out - 1) * p.stride_w + p.effective_s(), 2 * pixels))),
        first_units(units_of_step(p, rows, row_groups)),
        held(p.p == 1 && p.r == 1 && p.stride_h == 1 && cw == 2 && ch % 32 == 0 && images == 1 &&
             slots == first_units && store_of(p) == 8),
        lanes(power_of_two(ch / cw) ? std::min(ch / cw, cw == 8 || held ? 8 : 16) : ch / cw),
        wide(p.residual) {}
  /// Units of rows that an item's first step reads.
  static int units_of_step(const ConvProblem& p, std::int64_t rows, std::int64_t row_groups) {
    return static_cast<int>(ceil_div((row_groups * rows - 1) * p.stride_h + p.effective_r(), rows * p.stride_h));
  }
  int groups() const { return ch / cw; }
  /// Of a row, those that the products read.
  int row_chunks(const ConvProblem& p) const { return static_cast<int>((strips - 1) * 2 * p.stride_w + 2 * units); }
  int stage_columns() const { return strips * out; }
  int stage_pixels() const { return images * row_groups * rows * stage_columns(); }
  int kernel_rows(const ConvProblem& p) const { return chunk > 0 ? chunk : static_cast<int>(p.r); }
  /// Elements of a filter row in shared memory, even; bytes of one of the two copies, apart by half the banks.
  int filter_row(const ConvProblem& p) const { return chunk > 0 ? static_cast<int>(8 * units + 8 * p.stride_w) : 2; }
  int filter_copy(const ConvProblem& p) const {
    const int bytes = ch * static_cast<int>(p.r) * filter_row(p) * 2;
    return chunk > 0 ? (bytes + 127) / 128 * 128 + 64 : 0;
  }
  int stage_rows() const { return wide ? ch : ch / 2; }
};

/// Pitches in chunks of 16 bytes.
struct Layout16 {
  int swizzle = 0, row = 0, unit = 0, image = 0, group = 0;
};
int chunk_at(int chunk, int swizzle) { return chunk ^ ((chunk >> 3) & swizzle); }

/// Lanes of the worst bank when each of `count` lanes moves `words` words from word address at(lane), in the groups
/// that the hardware makes of them.
template <class At>
int conflicts(int count, int words, const At& at) {
  int total = 0;
  const int lanes_at_once = 32 / words;
  for (int base = 0; base < count; base += lanes_at_once) {
    std::array<int, 32> uses{};
    for (int lane = base; lane < std::min(count, base + lanes_at_once); ++lane) {
      for (int word = 0; word < words; ++word) ++uses[static_cast<std::size_t>((at(lane) + word) % 32)];
    }
    total += *std::max_element(uses.begin(), uses.end());
  }
  return total;
}

/// The pitches whose reads by load_matrix and writes by the copies conflict least, small ones first.
Layout16 layout_of(const ConvProblem& p, const Shape& s) {
  const int stride = static_cast<int>(p.stride_w);
  const int need = s.row_chunks(p);
  Layout16 best;
  int least = -1;
  for (const int swizzle : {0, 2 * stride - 1}) {
    if (swizzle > 0 && !power_of_two(stride)) continue;
    const int step = swizzle + 1;
    for (int row = (need + step - 1) / step * step, tries = 0; tries < 4; ++tries, row += step) {
      const int unit_rows = s.rows * static_cast<int>(p.stride_h) * row;
      for (int pads = 0; pads < 16; ++pads) {
        const int unit_pad = pads % 2, image_pad = pads / 2;
        if ((unit_pad > 0 && (s.row_groups == 1 || s.chunk > 0)) || (image_pad > 0 && s.images == 1)) continue;
        const int unit = unit_rows + unit_pad, image = s.slots * unit + image_pad;
        int reads = 0, tiles = 0;
        for (int tile = 0; tile * 8 < s.strips * s.row_groups * s.images; ++tile, ++tiles) {
          const int present = std::min(8, s.strips * s.row_groups * s.images - tile * 8);
          reads += conflicts(8, 4, [&](int lane) {
            const int strip = tile * 8 + (lane < present ? lane : 0);
            return 4 * (chunk_at(strip % s.strips * 2 * stride, swizzle) + strip / s.strips % s.row_groups * unit +
                        strip / (s.strips * s.row_groups) * image);
          });
        }
        for (int group_pad = 0; group_pad < 8; ++group_pad) {
          const int group = s.images * image + group_pad;
          const int writes = conflicts(32, s.held ? 4 : s.cw / 2, [&](int lane) {
            if (s.held) {  // Item of the kernel
              const int vector = lane % 2 + lane / 8 % (s.ch / 16) * 2;
              return 4 * (4 * vector * group + chunk_at(lane / 2 % 4 + lane / 8 / (s.ch / 16) * 4, swizzle));
            }
            const int pixel = lane / s.lanes;
            const int flip = lane % s.lanes / 8 % 2 * (s.pixels / 2);
            return lane % s.lanes * group * 4 + chunk_at(pixel / s.pixels, swizzle) * 4 +
                   (pixel % s.pixels ^ flip) * (s.cw / 2);
          });
          const int cost = 40 * reads / tiles + 8 * writes + s.groups() * group / 256;
          if (least < 0 || cost < least) least = cost, best = {swizzle, row, unit, image, group};
        }
      }
    }
  }
  return best;
}

/// Words between the stage's channel pairs: the threads that read STORE channels of neighbouring pixels meet no bank
/// twice.
int stage_pitch(const ConvProblem& p, const Shape& s) {
  const int store = store_of(p), vectors = s.ch / store;
  int best = 0, least = -1;
  for (int pitch = s.stage_pixels(); pitch < s.stage_pixels() + 32; ++pitch) {
    const int reads = conflicts(32, 1, [&](int lane) {
      return (s.wide ? lane % vectors * store : lane % vectors * store / 2) * pitch + lane / vectors;
    });
    const int writes = conflicts(32, 1, [&](int lane) {
      const int g = lane / 4, pairs = s.cw / 2, strip = lane % 4;
      return g % pairs * (s.wide ? 2 : 1) * pitch + strip / s.strips * s.rows * s.stage_columns() +
             strip % s.strips * s.out + g / pairs;
    });
    if (least < 0 || reads + writes < least) least = reads + writes, best = pitch;
  }
  return best;
}

/// Bytes of the ring and the stage; the filters follow where they are in shared memory.
int filter_at(const ConvProblem& p, const Shape& s, const Layout16& layout) {
  // Threads that store lines of y side by side read beyond the last.
  const int at_work = s.threads / (s.ch / store_of(p));
  const int columns = static_cast<int>(std::min<std::int64_t>(p.q, s.stage_columns()));
  const int lines_at_once = at_work / std::min(columns, at_work);
  const int lines = s.images * s.row_groups * s.rows;
  const int idle_lines = static_cast<int>(ceil_div(lines, lines_at_once)) * lines_at_once - lines;
  const int beyond = idle_lines * s.stage_columns() + at_work;
  const int bytes = s.groups() * layout.group * 16 + (s.stage_rows() * stage_pitch(p, s) + beyond) * 4;
  return (bytes + 15) / 16 * 16;
}
int smem_of(const ConvProblem& p, const Shape& s, const Layout16& layout) {
  return filter_at(p, s, layout) + 2 * s.filter_copy(p);
}

struct Work {
  std::int64_t channel_blocks, tiles, steps_of_image, all_steps, steps, along;
  std::int64_t blocks() const { return channel_blocks * tiles * along; }
};
Work work_of(const ConvProblem& p, const Config& config) {
  const Shape s(p, config);
  Work work{.channel_blocks = ceil_div(p.c, s.ch),
            .tiles = ceil_div(p.q, s.stage_columns()),
            .steps_of_image = ceil_div(p.p, std::int64_t{s.row_groups} * s.rows),
            .all_steps = 0,
            .steps = 0,
            .along = 0};
  work.all_steps = work.steps_of_image * ceil_div(p.n, s.images);
  // More steps a block where the grid would be too large.
  const std::int64_t along_at_most = std::max<std::int64_t>(1, max_grid / (work.channel_blocks * work.tiles));
  work.steps = std::max<std::int64_t>(config.get("steps"), ceil_div(work.all_steps, along_at_most));
  work.along = ceil_div(work.all_steps, work.steps);
  return work;
}

/// Registers of the filter, the sums and a row; beside them a thread needs about 16 (ptxas for sm_90).
std::int64_t fragments(const ConvProblem& p, const Shape& s) {
  return s.own * s.kernel_rows(p) * s.units * 2 + 4 * s.rows + 2 * s.units;
}

/// Whether the band matrices of a pair of channels are too many for registers.
bool streams(const ConvProblem& p) { return 2 * p.r * ceil_div(7 * p.stride_w + p.effective_s(), 8) > 96; }

std::vector<Config> configs(const ConvProblem&, const DeviceInfo&);

Refusal can_run(const ConvProblem& p, const DeviceInfo& device) {
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (p.dtype == DType::f32) return "dt = f32: the tensor cores take f16 and bf16";
  if (p.layout != Layout::nhwc) return "tag = nchw: this schedule takes nhwc";
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.stride_w > 4) return refuse("stride_w", p.stride_w, "at most 4");
  if (p.stride_h > 4) return refuse("stride_h", p.stride_h, "at most 4");
  if (p.effective_s() > 64) return refuse("(s - 1) * dil_w + 1", p.effective_s(), "at most 64 columns of a band");
  if (p.effective_r() > 64) return refuse("(r - 1) * dil_h + 1", p.effective_r(), "at most 64 rows of a tile");
  if (p.taps() < 15) return refuse("r * s", p.taps(), "below 15 taps fp32 arithmetic is as fast");
  if (ceil_div(p.c, 16) * ceil_div(p.q, 2) > max_grid) {
    return refuse("k * q", p.k * p.q, "needs more blocks than the 2147483647 of a grid");
  }
  if (streams(p) && configs(p, device).empty()) {
    return refuse("r * s", p.taps(), "the filters and the rows they read do not fit in shared memory");
  }
  return std::nullopt;
}

Refusal fits(const ConvProblem& p, const Config& config) {
  if (Refusal refusal = wrong_knobs(config, {"ch", "cw", "own", "rows", "groups", "strips", "images", "slots", "chunk",
                                             "threads", "blocks", "steps"})) {
    return refusal;
  }
  if (Refusal refusal = wrong_threads(config)) return refusal;
  const int ch = config.get("ch"), cw = config.get("cw"), threads = config.get("threads");
  if (ch % 16 != 0 || ch > 256) return refuse("ch", ch, "a multiple of 16, at most 256");
  if (cw != 2 && cw != 4 && cw != 8) return refuse("cw", cw, "2, 4 or 8");
  const int own = config.get("own");
  if (own > 4 || ch / cw % own != 0) return refuse("own", own, "at most 4, dividing ch / cw");
  if (config.get("rows") > 16) return refuse("rows", config.get("rows"), "at most 16");
  if (config.get("groups") > 16) return refuse("groups", config.get("groups"), "at most 16");
  if (config.get("strips") > 16) return refuse("strips", config.get("strips"), "at most 16");
  if (config.get("images") > 16) return refuse("images", config.get("images"), "at most 16");
  if (config.get("slots") > 64) return refuse("slots", config.get("slots"), "at most 64");
  if (threads % (32 * (ch / cw / own)) != 0) return refuse("threads", threads, "a warp for each cw * own channels");
  if (config.get("blocks") * threads > 2048) return refuse("blocks", config.get("blocks"), "more threads than fit");
  const Shape s(p, config);
  if (threads < ch / store_of(p)) return refuse("threads", threads, "a thread for each vector of a pixel's channels");
  if (s.chunk > 0 && (cw != 2 || own != 1)) return refuse("chunk", s.chunk, "all kernel rows unless cw is 2 and own 1");
  if (s.slots < s.first_units) return refuse("slots", s.slots, "a step reads " + std::to_string(s.first_units));
  if (fragments(p, s) + 16 > 65536 / (config.get("blocks") * threads) / 8 * 8) {
    return refuse("rows", s.rows, "does not fit in the registers that blocks and threads leave");
  }
  if (const int bytes = smem_of(p, s, layout_of(p, s)); bytes > smem_limit) {
    return refuse("rows", s.rows, "needs " + std::to_string(bytes) + " bytes of shared memory");
  }
  return std::nullopt;
}

constexpr std::size_t slots_knob = 7;

/// The shape of a block; what it leaves open follows from the problem.
struct Choice {
  int ch, cw, own, rows, along, blocks, chunk = 64;
  int images = 0;     ///< of a block; 0: as many as fill its products
  bool ahead = true;  ///< the next step is loaded while one is computed
};

/// Blocks of a multiprocessor, by registers (`blocks` asks for them) and shared memory (228 KiB, 1 KiB a block lost).
std::int64_t resident(const Config& config, int smem, const DeviceInfo& device) {
  const std::int64_t by_smem = std::max(1, 227 * 1024 / (smem + 1024));
  return std::min<std::int64_t>(config.get("blocks"), by_smem) * std::max(1, device.sm_count);
}

/// Sets steps: the fewest waves of blocks, each of which begins with loads and filters that hide nothing.
void divide_work(const ConvProblem& p, const DeviceInfo& device, Config& config) {
  const Shape s(p, config);
  const std::int64_t at_once = resident(config, smem_of(p, s, layout_of(p, s)), device);
  const double start = 1.5, halo = 0.4 * (s.first_units - s.row_groups) / s.row_groups;  // in steps
  double least = -1;
  Config best = config;
  for (const std::int64_t waves : {1, 2, 3, 4, 6, 8}) {
    const Work one = work_of(p, config);
    const std::int64_t along = std::max<std::int64_t>(1, waves * at_once / (one.channel_blocks * one.tiles));
    config.knobs.back().second = static_cast<int>(std::clamp<std::int64_t>(ceil_div(one.all_steps, along), 1, 1 << 20));
    const Work work = work_of(p, config);
    const auto whole = 1 + (work.steps - 1) / work.steps_of_image;
    const auto bands = static_cast<double>(whole);
    const double time = static_cast<double>(ceil_div(work.blocks(), at_once)) *
                        (start + static_cast<double>(work.steps) + bands * halo);
    if (least < 0 || time < least) least = time, best = config;
  }
  config = best;
}

std::vector<Config> configs(const ConvProblem& p, const DeviceInfo& device) {
  std::vector<Config> result;
  const auto add = [&](const Config& config) {
    if (result.size() < 8 && std::find(result.begin(), result.end(), config) == result.end()) result.push_back(config);
  };
  const auto consider = [&](const Choice& c) {
    const int out = 16 / c.cw;
    const int across = static_cast<int>(std::min<std::int64_t>(ceil_div(p.q, out), 16));
    const int free = std::max(1, 8 * c.along / across);  // strips that a row leaves to other rows and images
    const int rows = static_cast<int>(std::min<std::int64_t>(c.rows, p.p));
    const int groups = static_cast<int>(std::clamp<std::int64_t>(p.p / rows, 1, free));
    const bool whole = std::int64_t{rows} * groups >= p.p;
    // A plane of one row (1-D) is too little for a step.
    const int planes = p.p == 1 ? std::max(4, free) : free / groups;
    const int most = c.images > 0 ? c.images : std::max(1, planes);
    const int images = whole ? static_cast<int>(std::clamp<std::int64_t>(p.n, 1, most)) : 1;
    const int first = Shape::units_of_step(p, rows, groups);
    Config config{{{"ch", c.ch},
                   {"cw", c.cw},
                   {"own", c.own},
                   {"rows", rows},
                   {"groups", groups},
                   {"strips", across},
                   {"images", images},
                   {"slots", c.ahead ? first + groups : first},
                   {"chunk", c.chunk},
                   {"threads", 32 * c.along * (c.ch / c.cw / c.own)},
                   {"blocks", c.blocks},
                   {"steps", 1}}};
    const auto refused = [&] {
      if (fits(p, config)) return true;
      const Shape shape(p, config);
      // 99 KiB is what every device from sm_80 on has.
      return smem_of(p, shape, layout_of(p, shape)) > std::max(99 * 1024, device.smem_optin);
    };
    if (refused()) {  // then without rows loaded ahead
      config.knobs[slots_knob].second = first;
      if (!streams(p) || refused()) return;
    }
    divide_work(p, device, config);
    if (config.get("steps") == 1) config.knobs[slots_knob].second = first;  // nothing to load ahead
    add(config);
    // Whole images a block: the rows between two bands are read once. It wins where blocks are few either way.
    if (streams(p)) return;
    Config whole_images = config;
    whole_images.knobs[7].second = first + groups;
    whole_images.knobs.back().second = static_cast<int>(work_of(p, config).steps_of_image);
    if (whole_images.get("steps") > config.get("steps") && result.size() < 4 &&
        work_of(p, whole_images).blocks() >= device.sm_count) {
      add(whole_images);
    }
  };
  const std::int64_t reach = p.effective_s();
  if (streams(p)) {
    for (const int rows : {8, 7, 4, 2, 1}) {
      consider({16, 2, 1, rows, 2, 1, 4});
      consider({16, 2, 1, rows, 1, 1, 4});
    }
    // Compute decides: the least rows beyond the image first, and of those the most at once.
    const auto computed = [&](const Config& config) {
      return work_of(p, config).steps_of_image * config.get("rows") * config.get("groups");
    };
    std::stable_sort(result.begin(), result.end(),
                     [&](const Config& a, const Config& b) { return computed(a) < computed(b); });
    return result;
  }
  // A band of one row is small enough for several pairs a warp, and its input for registers.
  if (p.p == 1 && p.r == 1) {
    for (const Choice& c :
         {Choice{.ch = 64, .cw = 2, .own = 4, .rows = 1, .along = 1, .blocks = 2, .images = 1, .ahead = false},
          Choice{.ch = 32, .cw = 2, .own = 4, .rows = 1, .along = 1, .blocks = 4, .images = 1, .ahead = false},
          Choice{.ch = 32, .cw = 2, .own = 2, .rows = 1, .along = 1, .blocks = 4, .images = 1, .ahead = false},
          Choice{.ch = 32, .cw = 2, .own = 2, .rows = 1, .along = 1, .blocks = 3, .images = 1, .ahead = false}}) {
      consider(c);
    }
  }
  if (p.stride_w + reach <= 4) consider({16, 8, 1, 7, 4, 4});
  if (3 * p.stride_w + reach <= 8) {
    for (const Choice& c : {Choice{32, 4, 1, 4, 1, 4}, Choice{32, 4, 1, 7, 1, 3}, Choice{16, 4, 1, 4, 1, 8}})
      consider(c);
  } else if (3 * p.stride_w + reach <= 12 && p.q <= 14) {
    consider({16, 4, 1, 7, 1, 4});
  }
  for (const Choice& c : {Choice{16, 2, 1, 4, 1, 3}, Choice{16, 2, 1, 7, 1, 3}, Choice{32, 2, 2, 4, 1, 2},
                          Choice{16, 2, 1, 7, 1, 2}, Choice{16, 2, 1, 4, 1, 2}, Choice{16, 2, 1, 2, 1, 2}}) {
    consider(c);
  }
  if (result.empty()) consider({16, 2, 1, 1, 1, 1});
  return result;
}

KernelSpec kernel(const ConvProblem& p, const Config& config) {
  const Shape s(p, config);
  const Layout16 layout = layout_of(p, s);
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"CH", s.ch},
      {"CW", s.cw},
      {"OWN", s.own},
      {"GL", s.lanes},
      {"L", s.rows},
      {"RG", s.row_groups},
      {"HH", s.strips},
      {"PI", s.images},
      {"SLOTS", s.slots},
      {"XC", std::min<std::int64_t>(p.w, layout.row * s.pixels)},
      {"QC", std::min<std::int64_t>(p.q, s.stage_columns())},
      {"SWIZZLE", layout.swizzle},
      {"ROW_CHUNKS", layout.row},
      {"UNIT_CHUNKS", layout.unit},
      {"IMAGE_CHUNKS", layout.image},
      {"GROUP_CHUNKS", layout.group},
      {"STAGE_PITCH", stage_pitch(p, s)},
      {"LOAD", 2 * store_of(p)},
      {"STORE", store_of(p)},
      {"HELD", s.held ? 1 : 0},
      {"CHUNKS", s.row_chunks(p)},
      {"CHUNK", s.chunk},
      {"FILTER_ROW", s.filter_row(p)},
      {"FILTER_COPY", s.filter_copy(p)},
      {"FILTER_AT", filter_at(p, s, layout)},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  KernelSpec spec = make_spec(dw_band_nhwc, std::move(constants), s.threads);
  spec.min_blocks = config.get("blocks");
  return spec;
}

Geometry geometry(const ConvProblem& p, const Config& config) {
  const Shape s(p, config);
  return {.grid = work_of(p, config).blocks(), .block = s.threads, .dynamic_smem = smem_of(p, s, layout_of(p, s))};
}

void params(const ConvProblem& p, const Config& config, SlParams& out) {
  out = common_params(p);
  const Work work = work_of(p, config);
  out.work = work.blocks() * config.get("threads");
  out.aux[0] = work.steps;
  out.aux[1] = work.all_steps;
  out.div[0] = fast_div(work.channel_blocks);
  out.div[1] = fast_div(work.tiles);
  out.div[2] = fast_div(work.steps_of_image);
}

}  // namespace

constinit const Schedule dw_band_nhwc{
    .name = "dw_band_nhwc",
    .source = "dw_band_nhwc.cuh",
    .min_capability = 80,
    .size_generic = false,       // the tile and its pitches follow from the width
    .promises_no_spill = false,  // three blocks a multiprocessor leave 80 registers, which not every epilogue fits in
    .arithmetic = Arithmetic::mma,
    .can_run = can_run,
    .configs = configs,
    .fits = fits,
    .kernel = kernel,
    .geometry = geometry,
    .params = params,
};

}  // namespace sl
