#include "device/host/fiber.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "device/host/sanitizers.hpp"

namespace sl {
namespace {

// Kernels keep their registers here, unoptimised builds and AddressSanitizer a multiple of them.
constexpr std::size_t stack_bytes = asan::enabled ? 512 * 1024 : 256 * 1024;
constexpr std::size_t guard_bytes = 64 * 1024;  // a multiple of every page size in use

void* stack_bottom(void* mapping) { return static_cast<std::byte*>(mapping) + guard_bytes; }

/// Hands Boost a stack that the Fiber owns.
struct BorrowedStack {
  void* mapping;
  boost::context::stack_context allocate() const {
    boost::context::stack_context context;
    context.size = stack_bytes;
    context.sp = static_cast<std::byte*>(stack_bottom(mapping)) + stack_bytes;
    return context;
  }
  void deallocate(boost::context::stack_context&) const {}
};

}  // namespace

std::unique_ptr<Fiber> Fiber::create(Body body, void* argument) {
  void* const mapping = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  if (mprotect(mapping, guard_bytes, PROT_NONE) != 0) {
    munmap(mapping, guard_bytes + stack_bytes);
    return nullptr;
  }
  return std::unique_ptr<Fiber>(new Fiber(mapping, body, argument));
}

Fiber::Fiber(void* mapping, Body body, void* argument) : mapping_(mapping), body_(body), argument_(argument) {
  make_context();
}

Fiber::~Fiber() {
  drop_context();
  munmap(mapping_, guard_bytes + stack_bytes);
}

void Fiber::make_context() {
  kept_ = nullptr;
  context_ = boost::context::fiber(std::allocator_arg, BorrowedStack{mapping_}, [this](boost::context::fiber&& from) {
    scheduler_ = std::move(from);
    asan::finish_switch(nullptr, &scheduler_bottom_, &scheduler_size_);
    body_(*this, argument_);
    return std::move(scheduler_);  // not reached: a body does not return
  });
}

void Fiber::drop_context() {
  // The destructor of a suspended boost fiber unwinds its stack by an exception; moving it where nothing is destroyed
  // forgets it instead.
  alignas(boost::context::fiber) std::byte grave[sizeof(boost::context::fiber)];
  new (grave) boost::context::fiber(std::move(context_));
  asan::unpoison(stack_bottom(mapping_), stack_bytes);
}

void Fiber::resume() {
  asan::start_switch(&scheduler_kept_, stack_bottom(mapping_), stack_bytes);
  context_ = std::move(context_).resume();
  asan::finish_switch(scheduler_kept_, nullptr, nullptr);
}

void Fiber::suspend() {
  asan::start_switch(&kept_, scheduler_bottom_, scheduler_size_);
  scheduler_ = std::move(scheduler_).resume();
  asan::finish_switch(kept_, &scheduler_bottom_, &scheduler_size_);
}

void Fiber::restart() {
  drop_context();
  make_context();
}

}  // namespace sl
