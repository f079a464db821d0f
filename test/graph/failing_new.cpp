#include "failing_new.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool armed = false, persists = false, came = false;
thread_local std::int64_t left = 0;

bool fails() {
  if (!armed) return false;
  if (came) return persists;
  came = left-- == 0;
  return came;
}

void* allocate(std::size_t size) {
  void* memory = fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace sl::test {

FailingNew::FailingNew(std::int64_t nth, bool for_good) {
  left = nth;
  persists = for_good;
  came = false;
  armed = true;
}
FailingNew::~FailingNew() { armed = false; }
bool FailingNew::failed() const { return came; }

}  // namespace sl::test
