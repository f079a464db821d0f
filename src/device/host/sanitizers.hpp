// What AddressSanitizer must be told: fences, and switches between stacks. Nothing in other builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SLUICE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLUICE_ASAN 1
#endif
#endif

#ifdef SLUICE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace sl::asan {

#ifdef SLUICE_ASAN
constexpr bool enabled = true;
inline void poison(const void* begin, std::size_t bytes) { __asan_poison_memory_region(begin, bytes); }
inline void unpoison(const void* begin, std::size_t bytes) { __asan_unpoison_memory_region(begin, bytes); }
/// Before leaving a stack for the one at [bottom, bottom + size): `*keep` holds what finish_switch needs on return.
inline void start_switch(void** keep, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(keep, bottom, size);
}
/// First thing on the stack switched to; yields the stack it came from. `kept` is null on a stack's first run.
inline void finish_switch(void* kept, const void** from_bottom, std::size_t* from_size) {
  __sanitizer_finish_switch_fiber(kept, from_bottom, from_size);
}
#else
constexpr bool enabled = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
inline void start_switch(void**, const void*, std::size_t) {}
inline void finish_switch(void*, const void**, std::size_t*) {}
#endif

}  // namespace sl::asan
