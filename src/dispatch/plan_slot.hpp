// The plan table's inside: how a slot is read while it may be written. Included by plan_table.cpp and by the hot path,
// which a call to another file would cost more than the look-up.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "dispatch/plan_table.hpp"

namespace sl {

static_assert(std::is_trivially_copyable_v<PlanEntry> && sizeof(PlanEntry) % 8 == 0);
static_assert(offsetof(SlParams, n) == 5 * sizeof(void*), "the pointers come first, and nothing else before n");

/// The words of a PlanEntry that a slot keeps: all but the pointers in its parameters.
struct PlanWords {
  static constexpr std::size_t head = offsetof(PlanEntry, params) / 8;
  static constexpr std::size_t skipped = offsetof(SlParams, n) / 8;
  static constexpr std::size_t count = sizeof(PlanEntry) / 8 - skipped;
  static constexpr std::size_t of_entry(std::size_t i) noexcept { return i < head ? i : i + skipped; }
};

/// Independent products, so that nothing waits for anything but the last sum (a multilinear hash; Lemire and Kaser,
/// "Strongly universal string hashing is fast"). Good bits are the high ones. Equality of keys is checked in full, so
/// only speed and spread matter here.
inline std::uint64_t plan_hash(const PlanTable::Key& key) noexcept {
  constexpr std::array<std::uint64_t, PlanTable::key_words> odd = {
      0x9e3779b97f4a7c15ULL, 0xbf58476d1ce4e5b9ULL, 0x94d049bb133111ebULL, 0x9fb21c651e98df25ULL,
      0xff51afd7ed558ccdULL, 0xc4ceb9fe1a85ec53ULL, 0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL,
      0x8ebc6af09c88c6e3ULL, 0x589965cc75374cc3ULL};
  std::uint64_t sum = 0;
#pragma GCC unroll 16
  for (std::size_t i = 0; i < key.size(); ++i) sum += static_cast<std::uint64_t>(key[i]) * odd[i];
  sum = (sum ^ (sum >> 32)) * 0xd6e8feb86659fd93ULL;
  return sum ^ (sum >> 32);
}

/// An atomic word that needs no constructor: zeroed memory is an array of them.
struct PlanTable::Word {
  std::uint64_t value;

  std::uint64_t load(std::memory_order order) const noexcept {
    return std::atomic_ref(const_cast<std::uint64_t&>(value)).load(order);
  }
  void store(std::uint64_t desired, std::memory_order order) noexcept { std::atomic_ref(value).store(desired, order); }
};

// Fences would do with relaxed words, but the thread sanitizer cannot see fences. Acquire loads and release stores of
// the words say the same thing (Boehm, "Can seqlocks get along with programming language memory models?"), and on x86
// they cost nothing: a reader that sees any new word also sees the odd sequence number stored before it.
struct alignas(64) PlanTable::Slot {
  Word sequence;  // odd while a writer is inside
  std::array<Word, PlanTable::key_words> key;
  std::array<Word, PlanWords::count> entry;

  bool holds(const Key& wanted) const noexcept {
    std::uint64_t differ = 0;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      differ |= key[i].load(std::memory_order_acquire) ^ static_cast<std::uint64_t>(wanted[i]);
    }
    return differ == 0;
  }

  /// What a kept call has no use for stays as it is in `out`.
  void read(PlanEntry& out) const noexcept {
    auto* const to = reinterpret_cast<std::byte*>(&out);
    const auto copy = [&](std::size_t i) {
      const std::uint64_t word = entry[i].load(std::memory_order_acquire);
      std::memcpy(to + 8 * PlanWords::of_entry(i), &word, 8);
    };
#pragma GCC unroll 16
    for (std::size_t i = 0; i < PlanWords::head; ++i) copy(i);
    if (out.kind == PlanEntry::Kind::kept) return;
#pragma GCC unroll 8
    for (std::size_t i = PlanWords::head; i < PlanWords::count; ++i) copy(i);
  }

  void write(const Key& new_key, const PlanEntry& value) noexcept {
    const std::uint64_t before = sequence.load(std::memory_order_relaxed);
    sequence.store(before + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < new_key.size(); ++i) {
      key[i].store(static_cast<std::uint64_t>(new_key[i]), std::memory_order_release);
    }
    std::array<std::uint64_t, sizeof(PlanEntry) / 8> words;
    std::memcpy(words.data(), &value, sizeof(value));
    for (std::size_t i = 0; i < PlanWords::count; ++i) {
      entry[i].store(words[PlanWords::of_entry(i)], std::memory_order_release);
    }
    sequence.store(before + 2, std::memory_order_release);
  }
};

struct alignas(64) PlanTable::Tags {
  std::array<Word, ways> tag;  // 0 = never used; only a hint, the slot decides
};

/// PlanTable::find(), inline.
struct PlanReader {
  [[gnu::always_inline]] static bool find(const PlanTable& table, const PlanTable::Key& key, PlanEntry& out) noexcept {
    const std::uint64_t h = plan_hash(key);
    const std::uint64_t tag = h | 1;
    const std::size_t home = table.neighbourhood(h);
    for (std::size_t way = 0; way < PlanTable::ways; ++way) {
      if (table.tags_[home].tag[way].load(std::memory_order_relaxed) != tag) continue;
      const PlanTable::Slot& slot = table.slots_[home * PlanTable::ways + way];
      const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
      if ((before & 1) != 0 || !slot.holds(key)) continue;
      slot.read(out);
      if (slot.sequence.load(std::memory_order_relaxed) == before) return true;
    }
    return false;
  }
};

}  // namespace sl
