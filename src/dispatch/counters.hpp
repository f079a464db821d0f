// What a dispatcher counts, and how the hot path counts without paying for it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sl {

struct DispatchCounts {
  std::uint64_t launches = 0, kept = 0, plan_hits = 0, plan_misses = 0, decision_hits = 0, tunings = 0, fallbacks = 0,
                not_prepared = 0;
};

/// A thread's own row of every HotCounters, never given to another thread; 0 where it has none (yet).
/// initial-exec, because the general model is a function call in a shared library; four bytes of a library that is
/// opened late fit the loader's reserve of static thread storage.
inline constinit thread_local unsigned hot_row [[gnu::tls_model("initial-exec")]] = 0;

/// Events of the hot path. A locked addition costs as much as a third of a prepared plan's call, and waits for every
/// store before it; so each of the first threads that come has a row of its own, which nobody else writes. Threads
/// beyond that share row 0, with locked additions. Reading sums the rows.
class HotCounters {
 public:
  enum Event : std::uint8_t { plan_launched, hit_launched, hit_kept, events };

  void add(Event event) noexcept {
    if (hot_row == 0) [[unlikely]]
      return add_in_new_thread(event);
    std::atomic<std::uint64_t>& count = rows_[hot_row].counts[event];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::uint64_t sum(Event event) const noexcept {
    std::uint64_t total = 0;
    for (const Row& row : rows_) total += row.counts[event].load(std::memory_order_relaxed);
    return total;
  }

  static constexpr std::size_t rows = 64;

 private:
  void add_in_new_thread(Event) noexcept;

  struct alignas(64) Row {
    std::array<std::atomic<std::uint64_t>, events> counts{};
  };
  std::array<Row, rows> rows_{};
};

/// The hot path counts in `hot`, the rest in the others.
struct DispatchCounters {
  HotCounters hot;
  std::atomic<std::uint64_t> launches{0}, kept{0}, plan_hits{0}, plan_misses{0}, decision_hits{0}, tunings{0},
      fallbacks{0}, not_prepared{0};

  DispatchCounts now() const noexcept;
};

}  // namespace sl
