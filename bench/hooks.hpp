// Counts what the hot path may not do. Linking hooks.cpp into a program puts these counters in front of the C library's
// functions; a thread counts only between start() and stop().
#pragma once

#include <cstdint>

namespace sl::bench {

/// Events of one thread. `own`: asked for by this program's own code (Sluice is linked statically into it); the rest is
/// the driver's and the C library's.
struct HookCounts {
  std::uint64_t allocations = 0, locks = 0, files = 0, variables = 0;
  std::uint64_t own_allocations = 0, own_locks = 0, own_files = 0, own_variables = 0;
};

void start_counting();
HookCounts stop_counting();

}  // namespace sl::bench
