// The hot path's look-up: a bounded table of plans and "kept" answers. Readers take no lock, allocate nothing and never
// wait.
//
// Set-associative over a fixed array of slots: a key hashes to a neighbourhood of 8 slots whose tags share one cache
// line. A slot is a sequence counter and the entry's words, all of them atomics (a seqlock that the thread sanitizer
// can follow); a reader that meets a writer takes the slow path. A full neighbourhood replaces its oldest entry, so
// memory never grows.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "device/device.hpp"
#include "dispatch/tensors.hpp"

namespace sl {

/// What a look-up yields, by value. `kernel` lives as long as its context (modules are never unloaded before).
struct PlanEntry {
  enum class Kind : std::uint64_t { empty = 0, kept = 1, plan = 2 };  ///< empty: what was there holds no more
  Kind kind = Kind::empty;
  const Kernel* kernel = nullptr;
  Geometry geometry;
  Extents bytes;      ///< of the call's tensors: what a caller's pointers are checked with
  SlParams params{};  ///< all but the five pointers, which no table keeps
};

/// Thread-safe: any number of readers, writers serialised inside. The key is the problem's fields, packed, with
/// whatever else the answer depends on (Dispatcher's plan_key() has `Regular` in it: a REQUIRED call must not meet the
/// "kept" of an OPTIONAL one).
class PlanTable {
 public:
  static constexpr std::size_t ways = 8;            ///< slots of a neighbourhood
  explicit PlanTable(std::size_t capacity = 4096);  ///< rounded up to a power of two, at least `ways`
  ~PlanTable();
  static constexpr std::size_t key_words = 10;
  using Key = std::array<std::int64_t, key_words>;

  /// False on a miss, and then `out` is unspecified. A miss is allowed to be wrong (a writer was in the slot), a hit
  /// never is. The pointers in out.params are left as they are.
  bool find(const Key&, PlanEntry& out) const noexcept;
  /// Publishes or replaces; serialised among writers. False if an equal key with a plan was there and was replaced.
  bool publish(const Key&, const PlanEntry&);
  std::size_t capacity() const;
  std::size_t bytes() const;  ///< constant from construction on

 private:
  struct Word;
  struct Slot;
  struct Tags;
  struct Unmap {
    std::size_t bytes;
    void operator()(void* pages) const noexcept;
  };
  /// Zeroed pages of the kernel's, which cost nothing until they are touched. Clearing megabytes of a table that stays
  /// nearly empty would be a sixth of the first call where both stores are warm.
  template <class T>
  using Pages = std::unique_ptr<T[], Unmap>;
  template <class T>
  static Pages<T> zeroed(std::size_t count);
  std::size_t neighbourhood(std::uint64_t hash) const noexcept { return (hash & mask_) / ways; }

  // plan_slot.hpp has find()'s inside, for the hot path's own use.
  friend struct PlanReader;
  std::size_t mask_;
  Pages<Tags> tags_;
  Pages<Slot> slots_;
  Pages<std::uint64_t> stamps_;  // when each slot was published; the writer's only
  std::uint64_t clock_ = 0;
  std::mutex writer_;
};

}  // namespace sl
