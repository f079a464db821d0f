// What common/bulk.cuh emulates on the host device: mbarriers and bulk copies that happen later than they were asked
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sl {

/// The 8 bytes of an mbarrier in shared memory. A phase ends when all arrivals and all bytes have come; whichever order
/// they come in, bytes may run ahead of the arrival that announces them.
class Mbarrier {
 public:
  static void init(void* at, int arrivals);
  /// An arrival that announces `bytes`; false where the phase had all its arrivals already. `ended` says whether it
  /// ended.
  static bool expect(void* at, int bytes, bool& ended);
  /// Returns whether the phase ended.
  static bool complete(void* at, int bytes);
  /// Whether the phase of this parity has ended, the one before the present phase.
  static bool passed(const void* at, int parity);

 private:
  static Mbarrier load(const void* at);
  bool end_phase();
  void store(void* at) const;

  std::uint16_t arrivals_ = 0, pending_ = 0;
  std::int32_t bytes_and_parity_ = 0;  ///< twice the bytes still to come, plus the parity of the phase
};

/// The copies of one block that are on their way.
class AsyncCopies {
 public:
  void begin_block(std::size_t threads);
  void add(std::size_t thread, void* to, const void* from, int bytes, void* mbarrier);
  void commit(std::size_t thread) { ++closed_[thread]; }
  /// Whether at most `left` of the thread's closed groups still have copies on their way.
  bool groups_done(std::size_t thread, int left) const;
  std::size_t count() const { return copies_.size(); }
  /// Makes one of them happen. Returns its mbarrier where that ended a phase, else null.
  const void* finish(std::size_t which);
  void drop() { copies_.clear(); }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes, thread;
    std::uint32_t group;
    void* mbarrier;
  };
  std::vector<Copy> copies_;
  std::vector<std::uint32_t> closed_;  // groups of each thread
};

}  // namespace sl
