// What a cubin says of its kernel.
#pragma once

#include <string_view>

namespace sl {

/// Of one kernel: registers a thread, bytes of static shared memory a block, bytes of a thread's stack in local memory
/// (spilled registers and arrays that are indexed); 0 where the cubin does not say.
struct CubinResources {
  int registers = 0, static_smem = 0, stack = 0;
};

/// Reads `cubin` (64-bit ELF, little endian), whose kernel is `entry`. What is no such file, or is cut short, says
/// nothing. The records of .nv.info are as `cuobjdump -elf` prints them: EIATTR_REGCOUNT, EIATTR_FRAME_SIZE.
CubinResources cubin_resources(std::string_view cubin, std::string_view entry);

}  // namespace sl
