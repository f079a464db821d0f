#include "device/host/async_copies.hpp"

#include <algorithm>
#include <cstring>

namespace sl {

static_assert(sizeof(Mbarrier) == 8);

Mbarrier Mbarrier::load(const void* at) {
  Mbarrier barrier;
  std::memcpy(&barrier, at, sizeof(Mbarrier));
  return barrier;
}

void Mbarrier::store(void* at) const { std::memcpy(at, this, sizeof(Mbarrier)); }

void Mbarrier::init(void* at, int arrivals) {
  Mbarrier barrier;
  barrier.arrivals_ = barrier.pending_ = static_cast<std::uint16_t>(arrivals);
  barrier.store(at);
}

bool Mbarrier::end_phase() {
  if (pending_ != 0 || bytes_and_parity_ >> 1 != 0) return false;
  pending_ = arrivals_;
  bytes_and_parity_ ^= 1;
  return true;
}

bool Mbarrier::expect(void* at, int bytes, bool& ended) {
  Mbarrier barrier = load(at);
  if (barrier.pending_ == 0) return false;
  --barrier.pending_;
  barrier.bytes_and_parity_ += 2 * bytes;
  ended = barrier.end_phase();
  barrier.store(at);
  return true;
}

bool Mbarrier::complete(void* at, int bytes) {
  Mbarrier barrier = load(at);
  barrier.bytes_and_parity_ -= 2 * bytes;
  const bool ended = barrier.end_phase();
  barrier.store(at);
  return ended;
}

bool Mbarrier::passed(const void* at, int parity) { return (load(at).bytes_and_parity_ & 1) != parity; }

void AsyncCopies::begin_block(std::size_t threads) {
  copies_.clear();
  closed_.assign(threads, 0);
}

void AsyncCopies::add(std::size_t thread, void* to, const void* from, int bytes, void* mbarrier) {
  copies_.push_back({to, from, static_cast<std::size_t>(bytes), thread, closed_[thread], mbarrier});
}

bool AsyncCopies::groups_done(std::size_t thread, int left) const {
  const std::uint32_t closed = closed_[thread], kept = std::min(closed, static_cast<std::uint32_t>(left));
  return std::none_of(copies_.begin(), copies_.end(), [&](const Copy& copy) {
    return copy.mbarrier == nullptr && copy.thread == thread && copy.group < closed - kept;
  });
}

const void* AsyncCopies::finish(std::size_t which) {
  const Copy copy = copies_[which];
  copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(which));
  std::memcpy(copy.to, copy.from, copy.bytes);
  const bool ended = copy.mbarrier != nullptr && Mbarrier::complete(copy.mbarrier, static_cast<int>(copy.bytes));
  return ended ? copy.mbarrier : nullptr;
}

}  // namespace sl
