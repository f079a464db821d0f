// What the schedules' .cpp files share: the constants every kernel takes, legality of vector widths, and the small
// model that orders configurations.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/schedule.hpp"

namespace sl {

using Constants = std::vector<std::pair<std::string, std::int64_t>>;

constexpr std::int64_t max_grid = (std::int64_t{1} << 31) - 1;
constexpr int static_smem_limit = 48 * 1024;  ///< bytes a block has without opting in

/// What a block may opt in to on every device with some to spare: those of capability 8.6, 8.9 and 12.0 give 99 KiB.
constexpr std::int64_t portable_smem_limit = 96 * 1024;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr std::int64_t round_up(std::int64_t a, std::int64_t to) { return ceil_div(a, to) * to; }

inline bool nhwc(const ConvProblem& p) { return p.layout == Layout::nhwc; }
/// Weights of an output channel.
inline std::int64_t per_out(const ConvProblem& p) { return p.taps() * p.channels_per_group(); }

/// DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_H STRIDE_W MULT: what every kernel has.
Constants common_constants(const ConvProblem&);
/// DIL_H DIL_W, 1 along an axis where the kernel has one tap (dilation means nothing there).
void add_dilation(Constants&, const ConvProblem&);
/// CPG WLAYOUT; the weight layout is fixed where both mean the same memory.
void add_group(Constants&, const ConvProblem&);
/// H W P Q PAD_TOP PAD_LEFT, for kernels that compile in the planes.
void add_plane(Constants&, const ConvProblem&);
/// C H W K P Q PAD_TOP PAD_LEFT, for kernels that compile in everything but the batch.
void add_sizes(Constants&, const ConvProblem&);

/// Stride and dilation along the rows as a dense window with a stride of its own: output rows of one phase (p, p +
/// phases, ...) slide over input rows dil_h apart, `step` of them for each output row.
struct Slide {
  std::int64_t phases, step;
  std::int64_t slots;  ///< output rows in flight
  std::int64_t fresh;  ///< input rows of one step that some output reads
  std::int64_t dil_h;  ///< 1 under one kernel row
};
Slide slide_of(const ConvProblem&);

KernelSpec make_spec(const Schedule&, Constants, int threads);

/// "c = 3: ..." - the one form of a refusal.
std::string refuse(std::string_view field, std::int64_t value, std::string_view right);

/// Limits of the kernels' 32-bit coordinates, which every schedule shares.
Refusal coordinates_too_large(const ConvProblem&);
/// Of kernels whose offsets within an image are ints.
Refusal image_too_large(const ConvProblem&);
Refusal not_depthwise(const ConvProblem&);
Refusal dilated(const ConvProblem&);

/// Elements of x, y or z that one access may cover: the smaller of 16 bytes and the alignment class.
int max_vector(const ConvProblem&);
bool power_of_two(int v);
/// Smallest power of two >= v, at most `limit`.
int covering_power(std::int64_t v, int limit);
/// Largest power of two that divides v, at most `limit`.
int dividing_power(std::int64_t v, int limit);

/// The config has exactly these knobs, each at least 1; else why not.
Refusal wrong_knobs(const Config&, std::initializer_list<std::string_view> names);
/// threads is a multiple of 32 from 32 to 1024.
Refusal wrong_threads(const Config&);

/// Threads that keep a device busy at about 100 registers each.
std::int64_t busy_threads(const DeviceInfo&);

/// A configuration and how many threads it starts.
struct Option {
  Config config;
  std::int64_t threads = 0;
};
/// Options that fill the device first, in the order given; then the others, the one with most threads first. Drops
/// duplicates and what is beyond `limit`.
std::vector<Config> ranked(std::vector<Option>, const DeviceInfo&, std::size_t limit = 8);

/// Work of the thread-per-tile kernels (kernels/common/conv.cuh, locate()).
struct TileWork {
  std::int64_t channel_blocks = 1, tiles = 1, strips = 1;
  std::int64_t items(const ConvProblem& p) const { return p.n * channel_blocks * tiles * strips; }
};
Geometry tile_geometry(const ConvProblem&, const TileWork&, int threads);
void tile_params(const ConvProblem&, const TileWork&, SlParams&);
/// Refuses where even `threads` a block would need more blocks than a grid has.
Refusal too_many_blocks(const ConvProblem&, const TileWork&, int threads);

/// Work of the kernels that share weights in a block (kernels/common/block_tile.cuh).
struct BlockWork {
  std::int64_t channel_blocks = 1;
  int slots = 1;                      ///< threads of a block along the strips
  std::int64_t tiles = 1;             ///< of columns in a row
  std::int64_t strips = 1;            ///< n * p * tiles
  std::int64_t turns = 1, along = 1;  ///< strips a slot works through; blocks along the strips
};
/// Raises `turns` where the grid would be too large, so that no problem is refused for its size.
BlockWork block_work(const ConvProblem&, std::int64_t channel_blocks, int slots, int cols, std::int64_t turns);
Geometry block_geometry(const BlockWork&, int threads);
void block_params(const BlockWork&, const ConvProblem&, SlParams&);
/// Units dealt evenly to the blocks of a grid: aux[0] for each, one more for the first aux[1] blocks.
void dealt_params(const ConvProblem&, const Geometry&, std::int64_t units, SlParams&);
/// Strips a slot should work through so that staging weights costs little and the device is still full.
int turns_for(const DeviceInfo&, std::int64_t blocks_of_one_turn);

}  // namespace sl
