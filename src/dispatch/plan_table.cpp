#include "dispatch/plan_table.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <type_traits>

#include "dispatch/plan_slot.hpp"

namespace sl {
namespace {

std::size_t table_size(std::size_t capacity) { return std::bit_ceil(std::max(capacity, PlanTable::ways)); }

}  // namespace

void PlanTable::Unmap::operator()(void* pages) const noexcept { ::munmap(pages, bytes); }

template <class T>
PlanTable::Pages<T> PlanTable::zeroed(std::size_t count) {
  static_assert(std::is_trivial_v<T>, "zeroed memory holds such objects without being told");
  const std::size_t bytes = count * sizeof(T);
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<T*>(pages), Unmap{bytes}};
}

PlanTable::PlanTable(std::size_t capacity)
    : mask_(table_size(capacity) - 1),
      tags_(zeroed<Tags>((mask_ + 1) / ways)),
      slots_(zeroed<Slot>(mask_ + 1)),
      stamps_(zeroed<std::uint64_t>(mask_ + 1)) {}
PlanTable::~PlanTable() = default;

bool PlanTable::find(const Key& key, PlanEntry& out) const noexcept { return PlanReader::find(*this, key, out); }

bool PlanTable::publish(const Key& key, const PlanEntry& value) {
  const std::uint64_t h = plan_hash(key);
  const std::size_t home = neighbourhood(h);
  const std::lock_guard lock(writer_);
  std::size_t victim = 0;
  bool found = false;
  for (std::size_t way = 0; way < ways && !found; ++way) {
    const std::size_t i = home * ways + way;
    if (stamps_[i] != 0 && slots_[i].holds(key)) {
      victim = way;
      found = true;
    } else if (stamps_[i] < stamps_[home * ways + victim]) {
      victim = way;
    }
  }
  Slot& slot = slots_[home * ways + victim];
  const bool replaced_plan =
      found && slot.entry[0].load(std::memory_order_relaxed) == static_cast<std::uint64_t>(PlanEntry::Kind::plan);
  static_assert(offsetof(PlanEntry, kind) == 0);
  slot.write(key, value);
  tags_[home].tag[victim].store(h | 1, std::memory_order_relaxed);
  stamps_[home * ways + victim] = ++clock_;
  return !replaced_plan;
}

std::size_t PlanTable::capacity() const { return mask_ + 1; }

std::size_t PlanTable::bytes() const {
  return sizeof(*this) + capacity() * (sizeof(Slot) + sizeof(std::uint64_t)) + capacity() / ways * sizeof(Tags);
}

}  // namespace sl
