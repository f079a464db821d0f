// Allocations and locks, counted: operator new and pthread_mutex_lock are replaced in this test binary.
#pragma once

#include <cstdint>

namespace sl::test {

struct Counted {
  std::uint64_t allocations = 0, locks = 0;
};
/// Since the thread began; other threads do not count.
Counted counted() noexcept;
/// False where a sanitizer owns these functions: then nothing is counted.
bool counts() noexcept;

}  // namespace sl::test
