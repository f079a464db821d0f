// What a kernel compiled for the host device and the runtime that runs it (src/device/host) agree on. Plain C++, no
// includes: both sides take it in.
#ifndef SLUICE_KERNELS_PLATFORM_HOST_H
#define SLUICE_KERNELS_PLATFORM_HOST_H

// Raised whenever anything below changes; a shared object exports its own as `sluice_host_abi`.
#define SLUICE_HOST_ABI 3

struct SlHostThread;

// What a thread waits at. The warp-wide ones follow the barrier.
enum SlHostCollective {
  SL_HOST_BARRIER = 0,
  SL_HOST_WARP_SYNC = 1,
  SL_HOST_SHUFFLE_DOWN = 2,
  SL_HOST_SHUFFLE_XOR = 3,
  SL_HOST_BALLOT = 4,
  SL_HOST_TOGETHER = 5,
  SL_HOST_COLLECTIVES = 6,
  // Those of a thread by itself (common/bulk.cuh).
  SL_HOST_MBARRIER = 6,
  SL_HOST_BULK_GROUPS = 7,
  SL_HOST_WAITS = 8
};

// One shared array's site; its address identifies it.
struct SlHostArray {
  const char* name;
  long long bytes;
};

// Calls from kernel code into the runtime.
struct SlHostOps {
  // Blocks until the others have arrived; returns the shuffled bits or the ballot. `operand` is delta or mask.
  unsigned (*collective)(SlHostThread*, int kind, unsigned value, int operand);
  // Blocks until all 32 lanes have arrived; then `act` runs once, with what every lane brought (`mine`), and leaves
  // its results there. A lane that has returned is an error of the launch. act must not wait for anything.
  void (*together)(SlHostThread*, void (*act)(void* const* lanes), void* mine);
  // The block's copy of a shared array; null = the dynamic shared memory.
  void* (*shared)(SlHostThread*, const SlHostArray*);
  // A load whose address is not a multiple of its size: a fault on the GPU, an error of the launch here.
  void (*misaligned)(SlHostThread*, const void* address, int bytes);
  // common/bulk.cuh. An mbarrier is 8 bytes of shared memory that only these read and write.
  void (*mbarrier_init)(SlHostThread*, void* mbarrier, int arrivals);
  void (*mbarrier_expect)(SlHostThread*, void* mbarrier, int bytes);
  void (*mbarrier_wait)(SlHostThread*, const void* mbarrier, int parity);
  // Notes down a copy that happens at some time from now on. It counts on `mbarrier` or, where that is null, in the
  // thread's open group, which bulk_commit closes; bulk_wait blocks until all but `left` closed groups have ended.
  void (*bulk_copy)(SlHostThread*, void* to, const void* from, int bytes, void* mbarrier);
  void (*bulk_commit)(SlHostThread*);
  void (*bulk_wait)(SlHostThread*, int left);
};

// One thread of a block, as kernel code sees it; owned by the runtime.
struct SlHostThread {
  const SlHostOps* ops;
  long long block_id, grid_dim;
  int thread_id, block_dim;
};

struct SlParams;

// `<entry>_info` beside every kernel function `<entry>`.
struct SlHostKernelInfo {
  int max_threads;  // __launch_bounds__
};

extern "C" {
// Runs one thread from start to end on the calling fiber.
typedef void (*SlHostEntry)(const SlParams*, SlHostThread*);
}

#endif
