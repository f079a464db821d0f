// A loop over blocks of indices on all cores, or on the caller's thread where the work is small. Internal to reference.
#pragma once

#include <cstdint>
#include <functional>

namespace sl {

/// Calls body(begin, end) on disjoint blocks that cover [0, count); `cost` is the work of one index in multiply-adds.
/// Blocks run on any thread in any order. A thread that cannot be started means fewer threads. body must not throw.
void parallel_blocks(std::int64_t count, std::int64_t cost,
                     const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace sl
