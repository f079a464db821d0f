#include "reference/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace sl {
namespace {

// Starting a thread costs some 20 us, about what this many multiply-adds cost in double.
constexpr std::int64_t work_per_thread = 1 << 18;
constexpr std::int64_t most_threads = 256;

}  // namespace

void parallel_blocks(std::int64_t count, std::int64_t cost,
                     const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (count <= 0) return;
  const std::int64_t per_thread = std::max<std::int64_t>(1, work_per_thread / std::max<std::int64_t>(1, cost));
  const std::int64_t cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t threads = std::clamp<std::int64_t>(count / per_thread, 1, std::min(cores, most_threads));
  if (threads == 1) {
    body(0, count);
    return;
  }
  // Several blocks a thread: cores are rarely equally free.
  const std::int64_t block = std::max<std::int64_t>(1, count / (threads * 8));
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    while (true) {
      const std::int64_t begin = next.fetch_add(block, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(begin + block, count));
    }
  };
  std::vector<std::jthread> others;
  others.reserve(static_cast<std::size_t>(threads - 1));
  for (std::int64_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;
    }
  }
  work();
}

}  // namespace sl
