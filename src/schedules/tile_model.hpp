// How long a kernel of persistent blocks takes that stream tiles through shared memory: what orders the configurations
// of the grp_mma schedules. Cycles of a multiprocessor, in the measure of an H200; only comparisons matter.
#pragma once

#include <cstdint>

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

}  // namespace sl
