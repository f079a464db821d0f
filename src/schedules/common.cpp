#include "schedules/common.hpp"

#include <algorithm>
#include <numeric>

namespace sl {

Constants common_constants(const ConvProblem& p) {
  return {
      {"DTYPE", static_cast<std::int64_t>(p.dtype)},
      {"LAYOUT", static_cast<std::int64_t>(p.layout)},
      {"BIAS", static_cast<std::int64_t>(p.bias)},
      {"ACT", static_cast<std::int64_t>(p.activation)},
      {"RESIDUAL", p.residual ? 1 : 0},
      {"INDEX64", p.needs_64bit_offsets() ? 1 : 0},
      {"R", p.r},
      {"S", p.s},
      {"STRIDE_H", p.stride_h},
      {"STRIDE_W", p.stride_w},
      {"MULT", p.multiplier()},
  };
}

void add_dilation(Constants& constants, const ConvProblem& p) {
  constants.emplace_back("DIL_H", p.r == 1 ? 1 : p.dil_h);
  constants.emplace_back("DIL_W", p.s == 1 ? 1 : p.dil_w);
}

void add_group(Constants& constants, const ConvProblem& p) {
  const bool one_layout = p.channels_per_group() == 1 || p.taps() == 1;
  constants.emplace_back("CPG", p.channels_per_group());
  constants.emplace_back("WLAYOUT", one_layout ? 0 : static_cast<std::int64_t>(p.weight_layout));
}

void add_plane(Constants& constants, const ConvProblem& p) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"H", p.h}, {"W", p.w}, {"P", p.p}, {"Q", p.q}, {"PAD_TOP", p.pad_top}, {"PAD_LEFT", p.pad_left}};
  for (const auto& [name, value] : sizes) constants.emplace_back(name, value);
}

void add_sizes(Constants& constants, const ConvProblem& p) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"C", p.c},
                                                        {"H", p.h},
                                                        {"W", p.w},
                                                        {"K", p.k},
                                                        {"P", p.p},
                                                        {"Q", p.q},
                                                        {"PAD_TOP", p.pad_top},
                                                        {"PAD_LEFT", p.pad_left}};
  for (const auto& [name, value] : sizes) constants.emplace_back(name, value);
}

Slide slide_of(const ConvProblem& p) {
  const std::int64_t dil_h = p.r == 1 ? 1 : p.dil_h;
  const std::int64_t common = std::gcd(p.stride_h, dil_h), step = p.stride_h / common;
  return {.phases = dil_h / common,
          .step = step,
          .slots = ceil_div(p.r, step),
          .fresh = std::min(step, p.r),
          .dil_h = dil_h};
}

KernelSpec make_spec(const Schedule& schedule, Constants constants, int threads) {
  KernelSpec spec;
  spec.schedule = std::string(schedule.name);
  spec.source = std::string(schedule.source);
  spec.constants = std::move(constants);
  spec.threads = threads;
  return spec;
}

std::string refuse(std::string_view field, std::int64_t value, std::string_view right) {
  return std::string(field) + " = " + std::to_string(value) + ": " + std::string(right);
}

Refusal coordinates_too_large(const ConvProblem& p) {
  constexpr std::int64_t limit = std::int64_t{1} << 29;  // sums of a few of these stay in int32
  const std::pair<std::string_view, std::int64_t> fields[] = {
      {"c", p.c},
      {"h", p.h},
      {"w", p.w},
      {"k", p.k},
      {"p", p.p},
      {"q", p.q},
      {"stride_h", p.stride_h},
      {"stride_w", p.stride_w},
      {"(r - 1) * dil_h", (p.r - 1) * p.dil_h},
      {"(s - 1) * dil_w", (p.s - 1) * p.dil_w},
      {"r * s * c / groups", p.taps() * p.channels_per_group()},
  };
  for (const auto& [field, value] : fields) {
    if (value > limit) return refuse(field, value, "kernels keep coordinates in 32 bits, so at most 536870912");
  }
  return std::nullopt;
}

Refusal image_too_large(const ConvProblem& p) {
  constexpr std::int64_t most = std::int64_t{1} << 28;
  const std::int64_t elements = std::max(p.c * p.h * p.w, p.k * p.p * p.q);
  if (elements > most) return refuse("elements of an image", elements, "at most 2^28");
  return std::nullopt;
}

Refusal not_depthwise(const ConvProblem& p) {
  if (p.depthwise()) return std::nullopt;
  return refuse("c / groups", p.channels_per_group(), "a depthwise schedule takes 1 input channel a group");
}

Refusal dilated(const ConvProblem& p) {
  if (p.r > 1 && p.dil_h > 1) return refuse("dil_h", p.dil_h, "this schedule takes 1 only");
  if (p.s > 1 && p.dil_w > 1) return refuse("dil_w", p.dil_w, "this schedule takes 1 only");
  return std::nullopt;
}

int max_vector(const ConvProblem& p) {
  return std::max(1, std::min(16, static_cast<int>(p.align)) / static_cast<int>(size_of(p.dtype)));
}

bool power_of_two(int v) { return v > 0 && (v & (v - 1)) == 0; }

int covering_power(std::int64_t v, int limit) {
  int power = 1;
  while (power < v && power < limit) power *= 2;
  return power;
}

int dividing_power(std::int64_t v, int limit) {
  int power = 1;
  while (power * 2 <= limit && v % (power * 2) == 0) power *= 2;
  return power;
}

Refusal wrong_knobs(const Config& config, std::initializer_list<std::string_view> names) {
  if (config.knobs.size() != names.size()) {
    return refuse("knobs", static_cast<std::int64_t>(config.knobs.size()),
                  "this schedule has " + std::to_string(names.size()));
  }
  std::size_t i = 0;
  for (std::string_view name : names) {
    const auto& [knob, value] = config.knobs[i++];
    if (knob != name) return "knob '" + knob + "': '" + std::string(name) + "' belongs here";
    if (value < 1) return refuse(knob, value, "at least 1");
  }
  return std::nullopt;
}

Refusal wrong_threads(const Config& config) {
  const int threads = config.get("threads");
  if (threads >= 32 && threads <= 1024 && threads % 32 == 0) return std::nullopt;
  return refuse("threads", threads, "a multiple of 32 from 32 to 1024");
}

std::int64_t busy_threads(const DeviceInfo& device) {
  return 640 * static_cast<std::int64_t>(std::max(1, device.sm_count));
}

std::vector<Config> ranked(std::vector<Option> options, const DeviceInfo& device, std::size_t limit) {
  const std::int64_t busy = busy_threads(device);
  std::stable_sort(options.begin(), options.end(), [&](const Option& a, const Option& b) {
    return std::min(a.threads, busy) > std::min(b.threads, busy);
  });
  std::vector<Config> configs;
  for (Option& option : options) {
    if (configs.size() == limit) break;
    if (std::find(configs.begin(), configs.end(), option.config) == configs.end()) {
      configs.push_back(std::move(option.config));
    }
  }
  return configs;
}

Geometry tile_geometry(const ConvProblem& p, const TileWork& work, int threads) {
  return {.grid = ceil_div(work.items(p), threads), .block = threads, .dynamic_smem = 0};
}

void tile_params(const ConvProblem& p, const TileWork& work, SlParams& params) {
  params.work = work.items(p);
  params.div[0] = fast_div(work.channel_blocks);
  params.div[1] = fast_div(work.tiles);
  params.div[2] = fast_div(work.strips);
}

Refusal too_many_blocks(const ConvProblem& p, const TileWork& work, int threads) {
  if (tile_geometry(p, work, threads).grid <= max_grid) return std::nullopt;
  return refuse("n * k * p * q", p.y_elements(), "needs more blocks than the 2147483647 of a grid");
}

BlockWork block_work(const ConvProblem& p, std::int64_t channel_blocks, int slots, int cols, std::int64_t turns) {
  BlockWork work;
  work.channel_blocks = channel_blocks;
  work.slots = slots;
  work.tiles = ceil_div(p.q, cols);
  work.strips = p.n * p.p * work.tiles;
  const std::int64_t along_at_most = std::max<std::int64_t>(1, max_grid / channel_blocks);
  work.turns = std::max({std::int64_t{1}, turns, ceil_div(work.strips, slots * along_at_most)});
  work.along = ceil_div(work.strips, slots * work.turns);
  return work;
}

Geometry block_geometry(const BlockWork& work, int threads) {
  return {.grid = work.channel_blocks * work.along, .block = threads, .dynamic_smem = 0};
}

void block_params(const BlockWork& work, const ConvProblem& p, SlParams& params) {
  params.work = work.channel_blocks * work.along * work.slots * work.turns;
  params.aux[0] = work.strips;
  params.aux[1] = work.turns;
  params.div[0] = fast_div(work.channel_blocks);
  params.div[1] = fast_div(work.tiles);
  params.div[2] = fast_div(p.p);
  params.div[3] = fast_div(std::max<std::int64_t>(1, work.along));
}

void dealt_params(const ConvProblem& p, const Geometry& geometry, std::int64_t units, SlParams& params) {
  params = common_params(p);
  params.work = geometry.grid * geometry.block;
  params.aux[0] = geometry.grid == 0 ? 0 : units / geometry.grid;
  params.aux[1] = geometry.grid == 0 ? 0 : units % geometry.grid;
}

int turns_for(const DeviceInfo& device, std::int64_t blocks_of_one_turn) {
  const std::int64_t resident = 16 * static_cast<std::int64_t>(std::max(1, device.sm_count));
  int turns = 1;
  while (turns < 16 && blocks_of_one_turn / (2 * turns) >= resident) turns *= 2;
  return turns;
}

}  // namespace sl
