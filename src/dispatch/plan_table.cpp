#include "dispatch/plan_table.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

namespace sl {
namespace {

static_assert(std::is_trivially_copyable_v<PlanEntry> && sizeof(PlanEntry) % 8 == 0);
constexpr std::size_t entry_words = sizeof(PlanEntry) / 8;

/// Two independent multiply chains, because one over all words would cost more than the rest of the look-up. Equality
/// of keys is checked in full, so only speed and spread matter here.
std::uint64_t hash(const PlanTable::Key& key) noexcept {
  static_assert(PlanTable::key_words % 2 == 0);
  std::uint64_t a = 0x9e3779b97f4a7c15ULL, b = 0xbf58476d1ce4e5b9ULL;
  for (std::size_t i = 0; i < key.size(); i += 2) {
    a = std::rotl((a ^ static_cast<std::uint64_t>(key[i])) * 0x9fb21c651e98df25ULL, 29);
    b = std::rotl((b ^ static_cast<std::uint64_t>(key[i + 1])) * 0x9fb21c651e98df25ULL, 29);
  }
  const std::uint64_t h = (std::rotl(a, 17) ^ b) * 0xff51afd7ed558ccdULL;
  return h ^ (h >> 32);
}

/// body(0, 1, ..., N - 1): a loop over words without its bookkeeping, which is half of a look-up otherwise.
template <std::size_t N, class Body>
auto unrolled(const Body& body) noexcept {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return body(std::integral_constant<std::size_t, i>{}...);
  }(std::make_index_sequence<N>{});
}

std::size_t table_size(std::size_t capacity) { return std::bit_ceil(std::max(capacity, PlanTable::ways)); }

}  // namespace

// Fences would do with relaxed words, but the thread sanitizer cannot see fences. Acquire loads and release stores of
// the words say the same thing (Boehm, "Can seqlocks get along with programming language memory models?"), and on x86
// they cost nothing: a reader that sees any new word also sees the odd sequence number stored before it.
struct alignas(64) PlanTable::Slot {
  std::atomic<std::uint64_t> sequence{0};  // odd while a writer is inside
  std::array<std::atomic<std::uint64_t>, PlanTable::key_words> key{};
  std::array<std::atomic<std::uint64_t>, entry_words> entry{};

  bool holds(const Key& wanted) const noexcept {
    return unrolled<PlanTable::key_words>([&](auto... i) {
      return ((key[i].load(std::memory_order_acquire) ^ static_cast<std::uint64_t>(wanted[i])) | ...) == 0;
    });
  }

  void read(PlanEntry& out) const noexcept {
    const auto words = unrolled<entry_words>(
        [&](auto... i) { return std::array<std::uint64_t, entry_words>{entry[i].load(std::memory_order_acquire)...}; });
    std::memcpy(static_cast<void*>(&out), words.data(), sizeof(out));
  }

  void write(const Key& new_key, const PlanEntry& value) noexcept {
    const std::uint64_t before = sequence.load(std::memory_order_relaxed);
    sequence.store(before + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < new_key.size(); ++i) {
      key[i].store(static_cast<std::uint64_t>(new_key[i]), std::memory_order_release);
    }
    std::array<std::uint64_t, entry_words> words;
    std::memcpy(words.data(), &value, sizeof(value));
    for (std::size_t i = 0; i < entry_words; ++i) entry[i].store(words[i], std::memory_order_release);
    sequence.store(before + 2, std::memory_order_release);
  }
};

struct PlanTable::Impl {
  explicit Impl(std::size_t count)
      : mask(count - 1),
        tags(std::make_unique<Tags[]>(count / ways)),
        slots(std::make_unique<Slot[]>(count)),
        stamps(std::make_unique<std::uint64_t[]>(count)) {}

  struct alignas(64) Tags {
    std::array<std::atomic<std::uint64_t>, ways> tag{};  // 0 = never used; only a hint, the slot decides
  };

  std::size_t mask;
  std::unique_ptr<Tags[]> tags;
  std::unique_ptr<Slot[]> slots;
  std::mutex writer;
  std::unique_ptr<std::uint64_t[]> stamps;  // when each slot was published; the writer's only
  std::uint64_t clock = 0;

  std::size_t neighbourhood(std::uint64_t h) const noexcept { return (h & mask) / ways; }
};

PlanTable::PlanTable(std::size_t capacity) : impl_(std::make_unique<Impl>(table_size(capacity))) {}
PlanTable::~PlanTable() = default;

bool PlanTable::find(const Key& key, PlanEntry& out) const noexcept {
  const std::uint64_t h = hash(key);
  const std::uint64_t tag = h | 1;
  const std::size_t home = impl_->neighbourhood(h);
  for (std::size_t way = 0; way < ways; ++way) {
    if (impl_->tags[home].tag[way].load(std::memory_order_relaxed) != tag) continue;
    const Slot& slot = impl_->slots[home * ways + way];
    const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
    if ((before & 1) != 0 || !slot.holds(key)) continue;
    slot.read(out);
    if (slot.sequence.load(std::memory_order_relaxed) == before) return true;
  }
  return false;
}

bool PlanTable::publish(const Key& key, const PlanEntry& value) {
  const std::uint64_t h = hash(key);
  const std::size_t home = impl_->neighbourhood(h);
  const std::lock_guard lock(impl_->writer);
  std::size_t victim = 0;
  bool found = false;
  for (std::size_t way = 0; way < ways && !found; ++way) {
    const std::size_t i = home * ways + way;
    if (impl_->stamps[i] != 0 && impl_->slots[i].holds(key)) {
      victim = way;
      found = true;
    } else if (impl_->stamps[i] < impl_->stamps[home * ways + victim]) {
      victim = way;
    }
  }
  Slot& slot = impl_->slots[home * ways + victim];
  const bool replaced_plan =
      found && slot.entry[0].load(std::memory_order_relaxed) == static_cast<std::uint64_t>(PlanEntry::Kind::plan);
  static_assert(offsetof(PlanEntry, kind) == 0);
  slot.write(key, value);
  impl_->tags[home].tag[victim].store(h | 1, std::memory_order_relaxed);
  impl_->stamps[home * ways + victim] = ++impl_->clock;
  return !replaced_plan;
}

std::size_t PlanTable::capacity() const { return impl_->mask + 1; }

std::size_t PlanTable::bytes() const {
  return sizeof(Impl) + capacity() * (sizeof(Slot) + sizeof(std::uint64_t)) + capacity() / ways * sizeof(Impl::Tags);
}

}  // namespace sl
