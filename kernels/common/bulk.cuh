// Bulk copies and the mbarriers that count them: one thread moves a run of bytes between global and shared memory, and
// the copy engine delivers runs in about the order they were asked for. Needs compute capability 9.0 (cp.async.bulk
// without a tensor map); schedules that include this say so (min_capability = 90).
//
//   mbarrier_init(at, arrivals)    makes the 8 bytes at a Shared, 8-byte aligned, an mbarrier. By one thread; then
//                                  mbarrier_publish() by that thread and a barrier() before anybody uses it
//   mbarrier_expect(at, bytes)     one arrival; the phase also waits for so many more bytes (0 is none)
//   mbarrier_wait(at, parity)      until the phase with that parity (0, 1, 0, ... from the first on) has ended, that is
//                                  until all arrivals and bytes have come: the bytes are visible to whoever waited. May
//                                  lag one phase behind, not two
//   bulk_load(to, from, bytes, at) from global memory to a Shared; bytes count on the mbarrier. All of to, from and
//                                  bytes are multiples of 16
//   bulk_store(to, from, bytes)    from a Shared to global memory, the same multiples
//   bulk_publish()                 after a thread's own writes to shared memory, before the barrier() after which some
//                                  thread stores them
//   bulk_commit()                  closes this thread's group of stores
//   bulk_wait<LEFT>()              until all but LEFT of this thread's groups have been read, so that others may write
//                                  there after a barrier(); also before the block ends. A kernel's end completes the
//                                  writes
//
// On the host device a copy happens at a random moment between asking and waiting (as late as can be where threads run
// in order), so reading before or overwriting too early shows; phases that never end are the launch's error.
#pragma once

#include "common/platform.cuh"

#ifdef SLUICE_HOST

namespace sl {

inline void mbarrier_init(Shared at, int arrivals) {
  detail::check_alignment(at.at, 8);
  detail::current->ops->mbarrier_init(detail::current, at.at, arrivals);
}
inline void mbarrier_publish() {}
inline void mbarrier_expect(Shared at, int bytes) {
  detail::current->ops->mbarrier_expect(detail::current, at.at, bytes);
}
inline void mbarrier_wait(Shared at, int parity) {
  SlHostThread* const self = detail::current;
  self->ops->mbarrier_wait(self, at.at, parity);
  detail::current = self;
}
inline void bulk_load(Shared to, const void* from, int bytes, Shared at) {
  detail::check_alignment(to.at, 16);
  detail::check_alignment(from, 16);
  detail::check_alignment(static_cast<const char*>(from) + bytes, 16);
  detail::current->ops->bulk_copy(detail::current, to.at, from, bytes, at.at);
}
inline void bulk_store(void* to, Shared from, int bytes) {
  detail::check_alignment(to, 16);
  detail::check_alignment(from.at, 16);
  detail::check_alignment(static_cast<const char*>(to) + bytes, 16);
  detail::current->ops->bulk_copy(detail::current, to, from.at, bytes, nullptr);
}
inline void bulk_publish() {}
inline void bulk_commit() { detail::current->ops->bulk_commit(detail::current); }
template <int LEFT>
inline void bulk_wait() {
  SlHostThread* const self = detail::current;
  self->ops->bulk_wait(self, LEFT);
  detail::current = self;
}

}  // namespace sl

#else

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "bulk copies need compute capability 9.0: the schedule's min_capability must be 90"
#endif

namespace sl {

// Quotations are of the PTX ISA; the names in brackets are its headings.

// "Performing mbarrier.init on a memory location containing a valid mbarrier object is undefined" [mbarrier.init]: once
// a block. Objects are opaque, 8 bytes, aligned to 8 [Size and alignment of mbarrier object].
SL_DEVICE void mbarrier_init(Shared at, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at.at), "r"(arrivals) : "memory");
}
// fence.mbarrier_init orders the initialisation alone, and exists at cluster scope only; the copy engine's complete-tx
// comes through the async proxy, for which what was written through the generic one needs fence.proxy.async [membar /
// fence]. Threads of the block see it by the barrier() that follows.
SL_DEVICE void mbarrier_publish() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// "performs an expect-tx operation ... prior to the arrive-on operation" [mbarrier.arrive]: a phase cannot end between
// the two. Release: what this thread wrote is visible to who waits.
SL_DEVICE void mbarrier_expect(Shared at, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(at.at), "r"(bytes)
               : "memory");
}
namespace detail {
SL_DEVICE bool mbarrier_passed(unsigned at, int parity) {
  unsigned passed;
  asm volatile(
      "{\n\t.reg .pred p;\n\t"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, p;\n\t}"
      : "=r"(passed)
      : "r"(at), "r"(parity)
      : "memory");
  return passed != 0;
}
}  // namespace detail
// try_wait suspends the thread up to a time limit of the system's, then says no [mbarrier.test_wait,
// mbarrier.try_wait]; "wait operations with phaseParity" answer for the present and the immediately preceding phase
// only. A phase that does not end in four million tries is a mistake of the kernel: an error of the launch, not a
// device that hangs.
SL_DEVICE void mbarrier_wait(Shared at, int parity) {
  for (int tries = 0; !detail::mbarrier_passed(at.at, parity); ++tries) {
    if (tries == 1 << 22) __trap();
  }
}
// The .shared::cluster form, since PTX 8.0 has no other: an address of shared::cta lies in that window and names this
// block's own memory [State Spaces, shared]. "The mbarrier object must be in the same CTA's shared memory as the
// destination"; size, source and destination are multiples of 16 [cp.async.bulk]. Its completion "is followed by an
// implicit generic-async proxy fence" [Async Proxy], so who waited may read with ordinary loads. Nothing orders
// ordinary *reads* of the place before it but the barrier() between those readers and this thread.
SL_DEVICE void bulk_load(Shared to, const void* from, int bytes, Shared at) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to.at),
               "l"(from), "r"(bytes), "r"(at.at)
               : "memory");
}
SL_DEVICE void bulk_store(void* to, Shared from, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from.at), "r"(bytes)
               : "memory");
}
// "Accessing the same memory location across multiple proxies needs a cross-proxy fence" [Async Proxy]: by each thread
// that wrote, before the barrier().
SL_DEVICE void bulk_publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
SL_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// .read: "the waiting has to be done until ... the reading from their source locations" has completed
// [cp.async.bulk.wait_group]. Groups are a thread's own.
template <int LEFT>
SL_DEVICE void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

}  // namespace sl

#endif
