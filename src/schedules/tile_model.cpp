#include "schedules/tile_model.hpp"

#include <algorithm>
#include <cmath>

#include "schedules/common.hpp"

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

std::int64_t shared_wavefronts(const std::array<std::int64_t, 32>& at, std::int64_t bytes) {
  const auto words = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes / 4)), together = 32 / words;
  std::int64_t all = 0;
  for (std::size_t first = 0; first < 32; first += together) {
    std::array<std::int64_t, 32> seen{};  // the words read so far
    std::array<int, 32> bank{};           // how many of them in each
    std::size_t count = 0;
    int most = 1;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::int64_t word = at[first + i / words] / 4 + static_cast<std::int64_t>(i % words);
      if (std::find(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count), word) !=
          seen.begin() + static_cast<std::ptrdiff_t>(count)) {
        continue;
      }
      seen[count++] = word;
      most = std::max(most, ++bank[static_cast<std::size_t>(word % 32)]);
    }
    all += most;
  }
  return all;
}

namespace {

std::int64_t blocks_of(const StreamedWork& work, const Config& config) {
  return std::min<std::int64_t>(config.get("blocks"), work.tiles);
}

}  // namespace

StreamedWork streamed_work(const ConvProblem& p, std::int64_t chunks, std::int64_t wide, std::int64_t high) {
  StreamedWork work;
  work.chunks = chunks;
  work.column_tiles = ceil_div(p.q, wide);
  work.row_tiles = ceil_div(p.p, high);
  work.tiles = p.n * work.column_tiles * work.row_tiles;
  return work;
}

std::optional<int> streaming_blocks(const StreamedWork& work, const TileModel& model, const DeviceInfo& device) {
  const std::int64_t slots = resident_blocks(model, device) * std::max(1, device.sm_count) / work.chunks;
  const std::int64_t turns = std::max<std::int64_t>(1, ceil_div(work.tiles, std::max<std::int64_t>(1, slots)));
  if (model.stages > turns) return std::nullopt;
  const std::int64_t most = (max_grid - 1) / work.chunks,
                     blocks = model.stages > 1 ? ceil_div(work.tiles, turns) : work.tiles;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(most, blocks)));
}

Geometry streamed_geometry(const StreamedWork& work, const Config& config, std::int64_t smem) {
  return {.grid = work.chunks * blocks_of(work, config),
          .block = config.get("threads"),
          .dynamic_smem = static_cast<int>(smem)};
}

void streamed_params(const StreamedWork& work, const Config& config, const ConvProblem& p, SlParams& out) {
  out = common_params(p);
  const std::int64_t blocks = blocks_of(work, config);
  out.work = work.chunks * blocks * config.get("threads");
  out.aux[0] = work.tiles;
  out.aux[1] = std::max<std::int64_t>(1, blocks);
  out.div[0] = fast_div(work.chunks);
  out.div[1] = fast_div(work.column_tiles);
  out.div[2] = fast_div(work.row_tiles);
}

}  // namespace sl
