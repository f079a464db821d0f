#include "dispatch/counted.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SL_TEST_COUNTS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SL_TEST_COUNTS 0
#endif
#endif
#ifndef SL_TEST_COUNTS
#define SL_TEST_COUNTS 1
#endif

namespace {
thread_local std::uint64_t allocations = 0, locks = 0;
}  // namespace

namespace sl::test {
Counted counted() noexcept { return {allocations, locks}; }
bool counts() noexcept { return SL_TEST_COUNTS != 0; }
}  // namespace sl::test

#if SL_TEST_COUNTS

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Function = int (*)(pthread_mutex_t*);
  static std::uintptr_t next = 0;  // not a guarded static: its guard may lock
  std::uintptr_t known = __atomic_load_n(&next, __ATOMIC_RELAXED);
  if (known == 0) {
    known = reinterpret_cast<std::uintptr_t>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    __atomic_store_n(&next, known, __ATOMIC_RELAXED);
  }
  ++locks;
  return reinterpret_cast<Function>(known)(mutex);
}

#endif
