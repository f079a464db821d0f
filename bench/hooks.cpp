#include "bench/hooks.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

// The linker's names for where this program's code begins and ends.
extern "C" const char __executable_start;
extern "C" const char etext;

// glibc's own entries, for programs that put themselves in front of malloc.
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);

namespace sl::bench {
namespace {

// constinit and trivially destructible: hooks run before and after everything else in a thread.
constinit thread_local HookCounts counts;
constinit thread_local bool counting = false;

bool is_own(const void* caller) {
  return caller >= static_cast<const void*>(&__executable_start) && caller < static_cast<const void*>(&etext);
}

void count(std::uint64_t HookCounts::*all, std::uint64_t HookCounts::*own, const void* caller) {
  if (!counting) return;
  ++(counts.*all);
  if (is_own(caller)) ++(counts.*own);
}

template <class F>
F next(const char* symbol) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, symbol));
}

}  // namespace

void start_counting() {
  counts = {};
  counting = true;
}

HookCounts stop_counting() {
  counting = false;
  return counts;
}

}  // namespace sl::bench

using sl::bench::count;
using sl::bench::HookCounts;
using sl::bench::next;

#define COUNT(what) count(&HookCounts::what, &HookCounts::own_##what, __builtin_return_address(0))
#define HOOK extern "C" __attribute__((visibility("default"), noinline))

HOOK void* malloc(std::size_t bytes) {
  COUNT(allocations);
  return __libc_malloc(bytes);
}
HOOK void* calloc(std::size_t items, std::size_t bytes) {
  COUNT(allocations);
  return __libc_calloc(items, bytes);
}
HOOK void* realloc(void* old, std::size_t bytes) {
  COUNT(allocations);
  return __libc_realloc(old, bytes);
}
HOOK void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  COUNT(allocations);
  return __libc_memalign(alignment, bytes);
}
HOOK void* memalign(std::size_t alignment, std::size_t bytes) {
  COUNT(allocations);
  return __libc_memalign(alignment, bytes);
}
HOOK int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  COUNT(allocations);
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}

#define LOCK_HOOK(name, type)                             \
  HOOK int name(type* lock) noexcept {                    \
    COUNT(locks);                                         \
    static const auto real = next<int (*)(type*)>(#name); \
    return real(lock);                                    \
  }
LOCK_HOOK(pthread_mutex_lock, pthread_mutex_t)
LOCK_HOOK(pthread_mutex_trylock, pthread_mutex_t)
LOCK_HOOK(pthread_rwlock_rdlock, pthread_rwlock_t)
LOCK_HOOK(pthread_rwlock_wrlock, pthread_rwlock_t)
LOCK_HOOK(pthread_spin_lock, pthread_spinlock_t)

HOOK int open(const char* path, int flags, ...) {
  COUNT(files);
  std::va_list rest;
  va_start(rest, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  return real(path, flags, mode);
}
HOOK std::FILE* fopen(const char* path, const char* mode) {
  COUNT(files);
  static const auto real = next<std::FILE* (*)(const char*, const char*)>("fopen");
  return real(path, mode);
}
HOOK char* getenv(const char* name) noexcept {
  COUNT(variables);
  static const auto real = next<char* (*)(const char*)>("getenv");
  return real(name);
}
