// Kernels of persistent blocks that stream tiles through shared memory, as the grp_mma schedules are: their work and
// launch, and how long they take, which orders their configurations. Cycles of a multiprocessor, in the measure of an
// H200; only comparisons matter.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "schedules/schedule.hpp"

namespace sl {

/// One shape of such a kernel on one problem.
struct TileModel {
  std::int64_t tiles = 0;        ///< of the whole problem
  std::int64_t smem = 0;         ///< bytes a block
  std::int64_t registers = 0;    ///< a thread
  int threads = 32, stages = 1;  ///< of a block; buffers
  double bytes_in = 0;           ///< read by a tile, its border included
  double bytes_out = 0;          ///< written by a tile
  double border = 1;             ///< bytes_in over what no other tile reads
  double wavefronts = 0;         ///< of shared memory and of the L1 cache, of a tile
  double fetch = 0;              ///< instructions of a warp to fetch a tile
  double task = 0;               ///< instructions of a warp from fragments to stores
  std::int64_t tasks = 1;        ///< of a tile
  std::int64_t rounds = 1;       ///< tasks of the busiest warp
};

/// Blocks that a multiprocessor holds at once, at least 1.
std::int64_t resident_blocks(const TileModel&, const DeviceInfo&);
double cycles(const TileModel&, const DeviceInfo&);
/// Shapes by their estimated cycles; equal ones stay in order.
template <class Shape>
std::vector<Shape> fastest_first(std::vector<std::pair<double, Shape>> estimated) {
  std::stable_sort(estimated.begin(), estimated.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Shape> shapes;
  shapes.reserve(estimated.size());
  for (const auto& [estimate, shape] : estimated) shapes.push_back(shape);
  return shapes;
}

/// Wavefronts of shared memory in which a warp's lanes read `bytes` (2, 4, 8 or 16) each at `at`: words of one bank
/// follow one another; 8-byte reads go by halves of the warp, 16-byte reads by quarters.
std::int64_t shared_wavefronts(const std::array<std::int64_t, 32>& at, std::int64_t bytes);

/// Chunks of channels, and the tiles of the output of each, which the blocks of a chunk share among them.
struct StreamedWork {
  std::int64_t chunks = 1, column_tiles = 1, row_tiles = 1;
  std::int64_t tiles = 0;  ///< of a chunk
};
StreamedWork streamed_work(const ConvProblem&, std::int64_t chunks, std::int64_t wide, std::int64_t high);
/// Blocks of a chunk, so that all resident at once take equally many tiles; with one buffer a block a tile, as nothing
/// is gained by staying. nullopt where a block would have fewer tiles than buffers.
std::optional<int> streaming_blocks(const StreamedWork&, const TileModel&, const DeviceInfo&);
/// Both from the knobs "blocks" (at most a chunk's tiles are started) and "threads".
Geometry streamed_geometry(const StreamedWork&, const Config&, std::int64_t smem);
/// div[0] = chunks, div[1] = column tiles, div[2] = row tiles; aux[0] = tiles of a chunk, aux[1] = blocks of a chunk.
void streamed_params(const StreamedWork&, const Config&, const ConvProblem&, SlParams&);

}  // namespace sl
