// libnvrtc, opened at run time: the functions that Sluice uses and what they say about themselves.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace sl {

using NvrtcProgram = struct NvrtcProgramTag*;

// X(member, symbol, arguments)
#define SLUICE_NVRTC_SYMBOLS(X)                                                             \
  X(version, "nvrtcVersion", (int*, int*))                                                  \
  X(num_archs, "nvrtcGetNumSupportedArchs", (int*))                                         \
  X(archs, "nvrtcGetSupportedArchs", (int*))                                                \
  X(create, "nvrtcCreateProgram",                                                           \
    (NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(destroy, "nvrtcDestroyProgram", (NvrtcProgram*))                                        \
  X(compile, "nvrtcCompileProgram", (NvrtcProgram, int, const char* const*))                \
  X(log_size, "nvrtcGetProgramLogSize", (NvrtcProgram, std::size_t*))                       \
  X(log, "nvrtcGetProgramLog", (NvrtcProgram, char*))                                       \
  X(cubin_size, "nvrtcGetCUBINSize", (NvrtcProgram, std::size_t*))                          \
  X(cubin, "nvrtcGetCUBIN", (NvrtcProgram, char*))                                          \
  X(ptx_size, "nvrtcGetPTXSize", (NvrtcProgram, std::size_t*))                              \
  X(ptx, "nvrtcGetPTX", (NvrtcProgram, char*))

/// Immutable once opened; thread-safe, as NVRTC is. Never closed.
struct NvrtcLibrary {
#define SLUICE_MEMBER(member, symbol, arguments) int(*member) arguments = nullptr;
  SLUICE_NVRTC_SYMBOLS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
  const char* (*error_string)(int) = nullptr;
  std::string path, builtins;  ///< builtins empty: left to NVRTC's own search
  int major = 0, minor = 0;
  std::vector<int> supported;  ///< capabilities, ascending: 75, 80, 86, ...

  std::string version_text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// Opens the library at `path`, its builtins by absolute path first (they lie beside it, and libnvrtc has no RUNPATH to
/// find them with). Errors (Code::environment) name the file: not loadable, not NVRTC, too old.
Result<NvrtcLibrary> open_nvrtc(const std::string& path);

/// The --gpu-architecture for a capability: "sm_90" where NVRTC knows it; for a newer device (or one between) the
/// newest "compute_NN" that it knows and the device can run, so that the driver finishes the job. Code::unsupported
/// where the device is older than everything that this NVRTC compiles for.
Result<std::string> nvrtc_target(const NvrtcLibrary&, int capability);

}  // namespace sl
