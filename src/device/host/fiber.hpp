// A fiber: a stack of its own that runs until it waits. Owned by one BlockRunner; used by one OS thread at a time.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <memory>

namespace sl {

class Fiber {
 public:
  /// Runs on the fiber and never returns: when it has nothing to do it suspends.
  using Body = void (*)(Fiber&, void* argument);

  /// Null where no stack could be mapped. The stack is guarded below; what is not touched costs no memory.
  static std::unique_ptr<Fiber> create(Body, void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From the scheduler: runs the fiber until it suspends.
  void resume();
  /// On the fiber: goes back to whoever resumed it.
  void suspend();
  /// From the scheduler: forgets what the suspended fiber was doing; the next resume() starts its body anew. Nothing is
  /// unwound: kernel code owns nothing, and an exception must not travel through it.
  void restart();

 private:
  Fiber(void* mapping, Body body, void* argument);
  void make_context();
  void drop_context();

  void* mapping_;
  Body body_;
  void* argument_;
  boost::context::fiber context_, scheduler_;  // the side that is suspended holds a value
  void *kept_ = nullptr, *scheduler_kept_ = nullptr;
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_size_ = 0;
};

}  // namespace sl
