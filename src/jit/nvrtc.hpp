// Compiler through NVRTC: options, and what ptxas says about a kernel.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/environment.hpp"
#include "device/device.hpp"
#include "jit/compiler.hpp"
#include "jit/nvrtc_library.hpp"

namespace sl {

/// The options of every program beside --gpu-architecture: canonical, a part of the binary key.
std::span<const char* const> nvrtc_options();

/// Fills registers, spill_bytes and static_smem of `binary` from a program log made with --ptxas-options=-v. Leaves 0
/// where the log does not say (PTX: nothing was assembled).
void read_ptxas_log(std::string_view log, Binary& binary);

/// Compiles one translation unit that holds the kernel `entry`. The headers of kernels/ are passed in memory. The error
/// (Code::compile) carries log, options, arch, version and path.
Result<Binary> nvrtc_compile(const NvrtcLibrary&, const std::string& source, const std::string& entry,
                             const std::string& arch);

}  // namespace sl
