// The shared memory of one block: a heap block with redzones for every array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "device/host/redzone.hpp"
#include "kernels/common/platform_host.h"

namespace sl {

/// Reused from block to block of one kernel, so that a launch allocates once. Used by one OS thread at a time.
class SharedMemory {
 public:
  /// Forgets all arrays: the next blocks are another kernel's.
  void reset();
  void begin_block(int dynamic_bytes);
  /// The block's array, as NaN bytes on first touch; `site` null = the dynamic shared memory. Null where memory ran
  /// out.
  void* array(const SlHostArray* site);
  /// Redzones intact and sizes within what a GPU would take? The Error's message is about the array alone.
  Status end_block(int smem_optin);

 private:
  struct Array {
    const SlHostArray* site = nullptr;
    RedzonedBlock block;
    bool touched = false;  // by this block
  };
  std::vector<Array> arrays_;
  int dynamic_bytes_ = 0;
};

}  // namespace sl
