// Runs the threads of one block as fibers, in an order shuffled under a seed, and finds blocks that can never end.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "device/device.hpp"
#include "device/host/async_copies.hpp"
#include "device/host/fiber.hpp"
#include "device/host/shared_memory.hpp"
#include "kernels/common/platform_host.h"

namespace sl {

/// What all blocks of one launch share.
struct HostLaunch {
  SlHostEntry entry = nullptr;
  const std::string* kernel_name = nullptr;
  std::uint64_t kernel_id = 0;  ///< distinct for every loaded kernel of the process
  const SlParams* params = nullptr;
  Geometry geometry;
  std::uint64_t seed = 0;  ///< 0: threads start in order and wake in order
  int smem_optin = 0;
};

/// Keeps fibers and shared arrays from block to block. A thread that never waits needs no fiber of its own: threads run
/// one after the other on one fiber until one waits. Used by one OS thread at a time.
class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Runs one block to its end. Errors name the kernel and the block: a broken redzone (Code::wrong_result), threads
  /// that wait for each other forever, a misaligned load, no memory for stacks. What the block computed is the same
  /// every time, whichever OS thread runs it. A kernel that loops without end is not noticed.
  Status run(const HostLaunch&, std::int64_t block);

 private:
  struct Thread;
  struct Warp;
  static unsigned collective(SlHostThread*, int kind, unsigned value, int operand);
  static void together(SlHostThread*, void (*act)(void* const* lanes), void* mine);
  static void* shared(SlHostThread*, const SlHostArray*);
  static void misaligned(SlHostThread*, const void* address, int bytes);
  static void mbarrier_init(SlHostThread*, void* mbarrier, int arrivals);
  static void mbarrier_expect(SlHostThread*, void* mbarrier, int bytes);
  static void mbarrier_wait(SlHostThread*, const void* mbarrier, int parity);
  static void bulk_copy(SlHostThread*, void* to, const void* from, int bytes, void* mbarrier);
  static void bulk_commit(SlHostThread*);
  static void bulk_wait(SlHostThread*, int left);
  static void fiber_body(Fiber&, void* runner);
  static const SlHostOps ops;

  void start_block(std::int64_t block);
  bool step();  ///< lets one fiber run or one copy happen; false where neither can
  Fiber* idle_fiber();
  void run_unstarted(Fiber&);
  void finish(Thread&);
  void arrive(Thread&);
  void release_barrier();
  void release_warp(Warp&, std::size_t first_lane, int kind);
  void act_together(std::span<Thread> warp);
  void wake(Thread&);
  void wake_at(const void* mbarrier);
  void finish_copy();
  std::uint64_t random(std::uint64_t bound);
  void fail(Code, std::string what);
  std::string waiting_threads() const;
  void abandon_waiting();

  const HostLaunch* launch_ = nullptr;
  std::int64_t block_ = 0;
  std::uint64_t last_kernel_ = 0, random_state_ = 0;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::uint32_t> order_;  // in which threads start
  std::vector<Thread*> ready_;        // woken, to run again
  std::size_t next_ready_ = 0;        // of ready_, where it is taken in order
  std::size_t count_ = 0, started_ = 0, finished_ = 0, at_barrier_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  SharedMemory shared_;
  AsyncCopies copies_;
  Status status_;
};

}  // namespace sl
