#include "schedules/tile_model.hpp"

#include <algorithm>
#include <cmath>

namespace sl {
namespace {

constexpr double latency = 1200;         // from a copy's start to its arrival under load
constexpr double memory_rate = 19;       // bytes a cycle of one multiprocessor's share of device memory
constexpr double cache_rate = 36;        // the same of the L2 cache
constexpr double local_rate = 0.85;      // wavefronts a cycle
constexpr double issue_rate = 4 * 0.75;  // instructions a cycle, as far as they ever overlap
constexpr double start = 2500;           // launch, weights, first tile

constexpr std::int64_t most_blocks = 32;  // of a multiprocessor
constexpr int default_smem = 48 * 1024;   // of a device whose description says nothing

}  // namespace

std::int64_t resident_blocks(const TileModel& m, const DeviceInfo& device) {
  const std::int64_t smem = device.smem_per_sm > 0 ? device.smem_per_sm : 2 * default_smem;
  const std::int64_t registers = m.threads * (std::min<std::int64_t>(m.registers, 248) + 8) / 8 * 8;
  return std::max<std::int64_t>(1, std::min({smem / (m.smem + 1024), device.registers_per_sm / registers,
                                             std::int64_t{device.max_threads_per_sm / m.threads}, most_blocks}));
}

double cycles(const TileModel& m, const DeviceInfo& device) {
  const auto residents = static_cast<double>(resident_blocks(m, device));
  const double slots = residents * std::max(1, device.sm_count);
  const double turns = std::ceil(static_cast<double>(m.tiles) / slots);
  // Where there is less than a turn, blocks spread: fewer share a multiprocessor.
  const double sharing = std::min(residents, std::ceil(static_cast<double>(m.tiles) / std::max(1, device.sm_count)));
  const double memory =
      std::max((m.bytes_in / m.border + m.bytes_out) / memory_rate, (m.bytes_in + m.bytes_out) / cache_rate);
  const double issue = ((m.fetch + 100) * m.threads / 32 + m.task * static_cast<double>(m.tasks)) / issue_rate;
  const double local = m.wavefronts / local_rate;
  const double work = 150 + static_cast<double>(m.rounds) * (200 + 2 * m.task);  // of a tile, by itself
  const double own = m.stages > 1 ? std::max(work, latency / (m.stages - 1)) : work + latency;
  return start + work + turns * std::max(sharing * std::max({memory, issue, local}), own);
}

}  // namespace sl
