// A launch of what a plan holds, inline: between two calls the driver has had the processor's caches for itself, so
// every function and every object on the way costs.
#pragma once

#include <cstddef>
#include <cstring>

#include "dispatch/dispatcher.hpp"

namespace sl {

// Two words at a time, because the compiler makes a string instruction of one memcpy, which takes longer to start than
// this to end.
inline void copy_constants(SlParams& to, const SlParams& from) noexcept {
  constexpr std::size_t first = offsetof(SlParams, n), bytes = sizeof(SlParams) - first;
  auto* const out = reinterpret_cast<std::byte*>(&to) + first;
  const auto* const in = reinterpret_cast<const std::byte*>(&from) + first;
#pragma GCC unroll 16
  for (std::size_t i = 0; i < bytes / 16; ++i) std::memcpy(out + 16 * i, in + 16 * i, 16);
  std::memcpy(out + bytes / 16 * 16, in + bytes / 16 * 16, bytes % 16);
}

inline void set_pointers(SlParams& params, const Tensors& tensors) noexcept {
  params.x = tensors.x;
  params.weight = tensors.w;
  params.bias = tensors.bias;
  params.z = tensors.z;
  params.y = tensors.y;
}

/// True where the kernel is enqueued. Requires a kernel, and that `device` loaded it.
[[gnu::always_inline]] inline bool enqueue(Device& device, const PlanEntry& entry, const SlParams& params,
                                           Stream stream) noexcept {
  const Kernel& kernel = *entry.kernel;
  if (const Kernel::Quick quick = kernel.quick(); quick != nullptr) [[likely]]
    return quick(kernel, entry.geometry, params, stream);
  return device.try_launch(kernel, entry.geometry, params, stream);
}

/// True where the kernel of a plan is enqueued. False says nothing; then Dispatcher::run() does it, or says why not.
[[gnu::always_inline]] inline bool run_quickly(const HotPath& hot, const PlanEntry& entry, const Tensors& tensors,
                                               Stream stream) noexcept {
  if (entry.kernel == nullptr) [[unlikely]]
    return false;
  SlParams params;
  copy_constants(params, entry.params);
  set_pointers(params, tensors);
  if (!enqueue(hot.device, entry, params, stream)) [[unlikely]]
    return false;
  hot.counters.add(HotCounters::plan_launched);
  return true;
}

}  // namespace sl
