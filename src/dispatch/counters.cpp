#include "dispatch/counters.hpp"

namespace sl {

void HotCounters::add_in_new_thread(Event event) noexcept {
  static constinit std::atomic<unsigned> given{0};
  unsigned last = given.load(std::memory_order_relaxed);
  while (last + 1 < rows) {
    if (!given.compare_exchange_weak(last, last + 1, std::memory_order_relaxed)) continue;
    hot_row = last + 1;
    return add(event);
  }
  rows_[0].counts[event].fetch_add(1, std::memory_order_relaxed);
}

DispatchCounts DispatchCounters::now() const noexcept {
  const std::uint64_t hits_launched = hot.sum(HotCounters::hit_launched), hits_kept = hot.sum(HotCounters::hit_kept);
  DispatchCounts counts;
  counts.launches = launches + hot.sum(HotCounters::plan_launched) + hits_launched;
  counts.kept = kept + hits_kept;
  counts.plan_hits = plan_hits + hits_launched + hits_kept;
  counts.plan_misses = plan_misses;
  counts.decision_hits = decision_hits;
  counts.tunings = tunings;
  counts.fallbacks = fallbacks;
  counts.not_prepared = not_prepared;
  return counts;
}

}  // namespace sl
