// Compiled without ThreadSanitizer (room.cmake): functions here are on the stack when fibers switch.
#include "device/host/block_runner.hpp"

#include <algorithm>
#include <utility>

namespace sl {
namespace {

constexpr std::size_t lanes = 32;
constexpr unsigned undefined_value = 0xffffffffU;  // NaN: what a shuffle reads from a lane that has returned

constexpr const char* wait_names[SL_HOST_WAITS] = {"barrier()",       "warp_sync()",
                                                   "shuffle_down()",  "shuffle_xor()",
                                                   "ballot()",        "a matrix instruction or shuffle()",
                                                   "mbarrier_wait()", "bulk_wait()"};

}  // namespace

struct BlockRunner::Thread : SlHostThread {
  enum class State : std::uint8_t { unstarted, running, waiting, ready, returned, halted };
  BlockRunner* runner = nullptr;
  Fiber* fiber = nullptr;
  State state = State::unstarted;
  int kind = 0;  // of what it waits at
  unsigned value = 0, result = 0;
  int operand = 0;
  void (*act)(void* const*) = nullptr;  // of together()
  void* brought = nullptr;
  const void* mbarrier = nullptr;  // what it waits at
  int left = 0;                    // groups that bulk_wait() leaves on their way
};

struct BlockRunner::Warp {
  std::size_t live = 0;                                    // lanes that have not returned
  std::array<std::size_t, SL_HOST_COLLECTIVES> waiting{};  // by kind
};

const SlHostOps BlockRunner::ops = {
    &BlockRunner::collective,    &BlockRunner::together,        &BlockRunner::shared,        &BlockRunner::misaligned,
    &BlockRunner::mbarrier_init, &BlockRunner::mbarrier_expect, &BlockRunner::mbarrier_wait, &BlockRunner::bulk_copy,
    &BlockRunner::bulk_commit,   &BlockRunner::bulk_wait};

BlockRunner::BlockRunner() = default;
BlockRunner::~BlockRunner() = default;

// ---- calls from kernel code ----

unsigned BlockRunner::collective(SlHostThread* base, int kind, unsigned value, int operand) {
  Thread& thread = *static_cast<Thread*>(base);
  thread.kind = kind;
  thread.value = value;
  thread.operand = operand;
  thread.state = Thread::State::waiting;
  thread.runner->arrive(thread);
  thread.fiber->suspend();
  return thread.result;
}

void BlockRunner::together(SlHostThread* base, void (*act)(void* const*), void* mine) {
  Thread& thread = *static_cast<Thread*>(base);
  thread.act = act;
  thread.brought = mine;
  collective(base, SL_HOST_TOGETHER, 0, 0);
}

void* BlockRunner::shared(SlHostThread* base, const SlHostArray* site) {
  Thread& thread = *static_cast<Thread*>(base);
  BlockRunner& runner = *thread.runner;
  void* const data = runner.shared_.array(site);
  if (data == nullptr) {
    runner.fail(Code::out_of_memory,
                "no memory for a shared array of " +
                    std::to_string(site == nullptr ? runner.launch_->geometry.dynamic_smem : site->bytes) + " bytes");
    thread.state = Thread::State::halted;
    thread.fiber->suspend();  // for good: the block ends when nothing else can run
  }
  return data;
}

void BlockRunner::misaligned(SlHostThread* base, const void* address, int bytes) {
  const Thread& thread = *static_cast<Thread*>(base);
  thread.runner->fail(Code::device, "thread " + std::to_string(thread.thread_id) + " loads " + std::to_string(bytes) +
                                        " bytes from an address that ends in " +
                                        std::to_string(reinterpret_cast<std::uintptr_t>(address) % 16) +
                                        " (modulo 16); it must be a multiple of the size");
}

void BlockRunner::mbarrier_init(SlHostThread*, void* mbarrier, int arrivals) { Mbarrier::init(mbarrier, arrivals); }

void BlockRunner::mbarrier_expect(SlHostThread* base, void* mbarrier, int bytes) {
  const Thread& thread = *static_cast<Thread*>(base);
  bool ended = false;
  if (!Mbarrier::expect(mbarrier, bytes, ended)) {
    thread.runner->fail(Code::device, "thread " + std::to_string(thread.thread_id) +
                                          " arrives at an mbarrier whose phase has all its arrivals already");
  }
  if (ended) thread.runner->wake_at(mbarrier);
}

void BlockRunner::mbarrier_wait(SlHostThread* base, const void* mbarrier, int parity) {
  Thread& thread = *static_cast<Thread*>(base);
  while (!Mbarrier::passed(mbarrier, parity)) {
    thread.kind = SL_HOST_MBARRIER;
    thread.mbarrier = mbarrier;
    thread.state = Thread::State::waiting;
    thread.fiber->suspend();
  }
}

void BlockRunner::bulk_copy(SlHostThread* base, void* to, const void* from, int bytes, void* mbarrier) {
  const Thread& thread = *static_cast<Thread*>(base);
  thread.runner->copies_.add(static_cast<std::size_t>(thread.thread_id), to, from, bytes, mbarrier);
}

void BlockRunner::bulk_commit(SlHostThread* base) {
  const Thread& thread = *static_cast<Thread*>(base);
  thread.runner->copies_.commit(static_cast<std::size_t>(thread.thread_id));
}

void BlockRunner::bulk_wait(SlHostThread* base, int left) {
  Thread& thread = *static_cast<Thread*>(base);
  if (thread.runner->copies_.groups_done(static_cast<std::size_t>(thread.thread_id), left)) return;
  thread.kind = SL_HOST_BULK_GROUPS;
  thread.left = left;
  thread.state = Thread::State::waiting;
  thread.fiber->suspend();
}

// ---- on fibers ----

void BlockRunner::fiber_body(Fiber& fiber, void* argument) {
  BlockRunner& runner = *static_cast<BlockRunner*>(argument);
  for (;;) {
    runner.run_unstarted(fiber);
    runner.idle_.push_back(&fiber);
    fiber.suspend();
  }
}

void BlockRunner::run_unstarted(Fiber& fiber) {
  // In order, all threads start before one wakes; shuffled, whoever may run is drawn anew by step().
  while (started_ < count_ && (launch_->seed == 0 || next_ready_ == ready_.size())) {
    Thread& thread = threads_[order_[started_++]];
    thread.fiber = &fiber;
    thread.state = Thread::State::running;
    launch_->entry(launch_->params, &thread);
    finish(thread);
  }
}

void BlockRunner::finish(Thread& thread) {
  thread.state = Thread::State::returned;
  ++finished_;
  const std::size_t w = static_cast<std::size_t>(thread.thread_id) / lanes;
  Warp& warp = warps_[w];
  --warp.live;
  // Those who have returned count as arrived.
  for (int kind = SL_HOST_BARRIER + 1; kind < SL_HOST_COLLECTIVES; ++kind)
    if (warp.live != 0 && warp.waiting[static_cast<std::size_t>(kind)] == warp.live)
      release_warp(warp, w * lanes, kind);
  if (at_barrier_ != 0 && at_barrier_ == count_ - finished_) release_barrier();
}

void BlockRunner::arrive(Thread& thread) {
  if (thread.kind == SL_HOST_BARRIER) {
    if (++at_barrier_ == count_ - finished_) release_barrier();
    return;
  }
  const std::size_t w = static_cast<std::size_t>(thread.thread_id) / lanes;
  Warp& warp = warps_[w];
  if (++warp.waiting[static_cast<std::size_t>(thread.kind)] == warp.live) release_warp(warp, w * lanes, thread.kind);
}

void BlockRunner::release_barrier() {
  at_barrier_ = 0;
  for (std::size_t i = 0; i < count_; ++i)
    if (threads_[i].state == Thread::State::waiting && threads_[i].kind == SL_HOST_BARRIER) wake(threads_[i]);
}

void BlockRunner::release_warp(Warp& warp, std::size_t first_lane, int kind) {
  warp.waiting[static_cast<std::size_t>(kind)] = 0;
  const std::span<Thread> warp_threads = std::span(threads_).subspan(first_lane, std::min(lanes, count_ - first_lane));
  const auto takes_part = [kind](const Thread& t) { return t.state == Thread::State::waiting && t.kind == kind; };

  if (kind == SL_HOST_TOGETHER) {
    act_together(warp_threads);
    return;
  }
  unsigned votes = 0;
  if (kind == SL_HOST_BALLOT)
    for (std::size_t lane = 0; lane < warp_threads.size(); ++lane)
      if (takes_part(warp_threads[lane]) && warp_threads[lane].value != 0) votes |= 1U << lane;

  for (std::size_t lane = 0; lane < warp_threads.size(); ++lane) {
    Thread& thread = warp_threads[lane];
    if (!takes_part(thread)) continue;
    std::size_t source = lane;
    if (kind == SL_HOST_SHUFFLE_DOWN) source = lane + static_cast<unsigned>(thread.operand);
    if (kind == SL_HOST_SHUFFLE_XOR) source = lane ^ static_cast<unsigned>(thread.operand);
    if (source >= lanes) source = lane;  // past the warp: one's own value, as on the GPU
    const bool defined = source < warp_threads.size() && takes_part(warp_threads[source]);
    thread.result = kind == SL_HOST_BALLOT ? votes : defined ? warp_threads[source].value : undefined_value;
  }
  for (Thread& thread : warp_threads)
    if (takes_part(thread)) wake(thread);
}

void BlockRunner::act_together(std::span<Thread> warp) {
  std::array<void*, lanes> brought{};
  std::size_t taking_part = 0;
  for (Thread& thread : warp) {
    const bool here = thread.state == Thread::State::waiting && thread.kind == SL_HOST_TOGETHER;
    if (here && thread.act == warp.front().act) brought[taking_part++] = thread.brought;
  }
  if (taking_part == lanes) {
    warp.front().act(brought.data());
    for (Thread& thread : warp) wake(thread);
    return;
  }
  fail(Code::device, "threads " + std::to_string(warp.front().thread_id) + "-" + std::to_string(warp.back().thread_id) +
                         ": " + std::to_string(taking_part) +
                         " of 32 lanes reach the same matrix instruction or shuffle(), which takes all of them");
  for (Thread& thread : warp) {  // for good: what they brought was not answered
    if (thread.state == Thread::State::waiting && thread.kind == SL_HOST_TOGETHER) thread.state = Thread::State::halted;
  }
}

void BlockRunner::wake(Thread& thread) {
  thread.state = Thread::State::ready;
  ready_.push_back(&thread);
}

void BlockRunner::wake_at(const void* mbarrier) {
  for (std::size_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    if (thread.state == Thread::State::waiting && thread.kind == SL_HOST_MBARRIER && thread.mbarrier == mbarrier)
      wake(thread);
  }
}

void BlockRunner::finish_copy() {
  // In order where thread order is: as late as can be, when nobody else can run.
  const void* const ended = copies_.finish(launch_->seed == 0 ? 0 : random(copies_.count()));
  if (ended != nullptr) wake_at(ended);
  for (std::size_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    if (thread.state == Thread::State::waiting && thread.kind == SL_HOST_BULK_GROUPS &&
        copies_.groups_done(i, thread.left))
      wake(thread);
  }
}

void BlockRunner::fail(Code code, std::string what) {
  if (!status_.ok()) return;  // the first failure is the cause
  status_ =
      Error{code, "kernel " + *launch_->kernel_name + ", block " + std::to_string(block_) + ": " + std::move(what)};
}

// ---- the scheduler ----

Status BlockRunner::run(const HostLaunch& launch, std::int64_t block) {
  launch_ = &launch;
  start_block(block);
  while (finished_ < count_ && step()) {
  }
  if (finished_ < count_) {
    fail(Code::device, "threads wait for each other forever: " + waiting_threads() +
                           "; every thread of a block that has not returned must reach the same barrier(), every "
                           "such lane of a warp the same shuffle, ballot() or warp_sync(), and an mbarrier all its "
                           "arrivals and bytes");
    abandon_waiting();
  } else if (copies_.count() != 0) {
    fail(Code::device, "the block ends with " + std::to_string(copies_.count()) + " bulk copies on their way");
  }
  copies_.drop();
  if (Status end = shared_.end_block(launch.smem_optin); !end) fail(end.error().code, end.error().message);
  return std::exchange(status_, Status{});
}

void BlockRunner::start_block(std::int64_t block) {
  if (launch_->kernel_id != last_kernel_) shared_.reset();
  last_kernel_ = launch_->kernel_id;
  shared_.begin_block(launch_->geometry.dynamic_smem);
  block_ = block;
  count_ = static_cast<std::size_t>(launch_->geometry.block);
  started_ = finished_ = at_barrier_ = next_ready_ = 0;
  ready_.clear();
  random_state_ = launch_->seed ^ (static_cast<std::uint64_t>(block) * 0x9e3779b97f4a7c15ULL);

  copies_.begin_block(count_);
  if (threads_.size() < count_) threads_.resize(count_);
  warps_.assign((count_ + lanes - 1) / lanes, Warp{});
  order_.resize(count_);
  for (std::size_t i = 0; i < count_; ++i) {
    Thread& thread = threads_[i];
    thread.ops = &ops;
    thread.block_id = block;
    thread.grid_dim = launch_->geometry.grid;
    thread.thread_id = static_cast<int>(i);
    thread.block_dim = launch_->geometry.block;
    thread.runner = this;
    thread.state = Thread::State::unstarted;
    ++warps_[i / lanes].live;
    order_[i] = static_cast<std::uint32_t>(i);
  }
  if (launch_->seed != 0)
    for (std::size_t i = count_; i > 1; --i) std::swap(order_[i - 1], order_[random(i)]);
}

bool BlockRunner::step() {
  const std::size_t waking = ready_.size() - next_ready_;
  const std::size_t unstarted = count_ - started_;
  if (copies_.count() != 0 &&
      (waking + unstarted == 0 ||
       (launch_->seed != 0 && random(waking + unstarted + copies_.count()) >= waking + unstarted))) {
    finish_copy();
    return true;
  }
  if (waking + unstarted == 0) return false;
  const bool prefer_start = launch_->seed == 0 || random(waking + unstarted) >= waking;
  if (unstarted != 0 && (waking == 0 || prefer_start)) {
    if (Fiber* fiber = idle_fiber()) {
      fiber->resume();
      return true;
    }
    if (waking == 0) {
      fail(Code::out_of_memory, "no memory for the stack of fiber " + std::to_string(fibers_.size() + 1));
      return false;
    }
  }
  if (launch_->seed != 0) std::swap(ready_[next_ready_], ready_[next_ready_ + random(waking)]);
  Thread& thread = *ready_[next_ready_++];
  if (next_ready_ == ready_.size()) {
    ready_.clear();
    next_ready_ = 0;
  }
  thread.state = Thread::State::running;
  thread.fiber->resume();
  return true;
}

Fiber* BlockRunner::idle_fiber() {
  if (idle_.empty()) {
    std::unique_ptr<Fiber> fiber = Fiber::create(&BlockRunner::fiber_body, this);
    if (fiber == nullptr) return nullptr;
    fibers_.push_back(std::move(fiber));
    return fibers_.back().get();
  }
  Fiber* const fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

std::uint64_t BlockRunner::random(std::uint64_t bound) {  // SplitMix64; the bias of the modulo does not matter here
  std::uint64_t z = random_state_ += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return (z ^ (z >> 31)) % bound;
}

std::string BlockRunner::waiting_threads() const {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < count_; begin = end) {
    const Thread& first = threads_[begin];
    const auto alike = [&](const Thread& t) {
      return t.state == first.state && (t.state != Thread::State::waiting || t.kind == first.kind);
    };
    for (end = begin + 1; end < count_ && alike(threads_[end]);) ++end;
    text += (text.empty() ? "" : ", ") + std::string(end - begin == 1 ? "thread " : "threads ") +
            std::to_string(begin) + (end - begin == 1 ? "" : "-" + std::to_string(end - 1));
    if (first.state == Thread::State::returned) {
      text += " returned";
    } else if (first.state == Thread::State::waiting) {
      text += " at " + std::string(wait_names[first.kind]);
    } else {
      text += " stopped";
    }
  }
  return text;
}

void BlockRunner::abandon_waiting() {
  for (std::size_t i = 0; i < count_; ++i) {
    const Thread& thread = threads_[i];
    if (thread.state == Thread::State::unstarted || thread.state == Thread::State::returned) continue;
    thread.fiber->restart();
    idle_.push_back(thread.fiber);
  }
}

}  // namespace sl
