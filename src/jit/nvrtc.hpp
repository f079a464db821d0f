// Compiler through NVRTC: options, and what ptxas says about a kernel.
#pragma once

#include <optional>
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

/// Bytes that the kernel `entry` spills, from a program log made with --ptxas-options=-v; nothing where the log does
/// not say: NVRTC 13.0 loses what ptxas says now and then where many threads of many processes compile (seen with 96 on
/// 16 cores), and for PTX nothing was assembled.
std::optional<int> spilled(std::string_view log, std::string_view entry);

/// Compiles one translation unit that holds the kernel `entry`. The headers of kernels/ are passed in memory. The error
/// (Code::compile) carries log, options, arch, version and path.
Result<Binary> nvrtc_compile(const NvrtcLibrary&, const std::string& source, const std::string& entry,
                             const std::string& arch);

}  // namespace sl
