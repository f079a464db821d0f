// The two backends, made from what the environment says. Neither needs its toolkit present to be created.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/environment.hpp"
#include "core/log.hpp"
#include "core/result.hpp"
#include "device/device.hpp"
#include "jit/compiler.hpp"

namespace sl {

/// NVRTC, found in the documented places: SLUICE_NVRTC, CUDA_HOME/CUDA_PATH, beside the running libcudart/libnvrtc if
/// mapped, pip's nvidia/ folders on the interpreter's path, /usr/local/cuda, the loader cache. Opened on the first
/// compile.
std::unique_ptr<Compiler> make_nvrtc_compiler(const Environment&, const Log&);
/// The system C++ compiler: SLUICE_HOST_CXX, else c++, g++, clang++ on PATH.
std::unique_ptr<Compiler> make_host_compiler(const Environment&, const Log&);

/// GPU `ordinal` through libcuda.so.1 opened at run time. Errors: no driver (dlerror's text), the stub library (CUDA
/// error 34), no such device.
Result<std::shared_ptr<Device>> open_cuda_device(int ordinal, const Environment&, const Log&);
Result<int> cuda_device_count(const Environment&);

struct HostDeviceOptions {
  int capability = 90;     ///< emulated
  int threads = 0;         ///< blocks run on this many threads; 0 = all cores, at most 16
  std::uint64_t seed = 0;  ///< 0: threads of a block start in order; else shuffled under this seed
  LogSink log = {};        ///< told (level error) of a freed buffer that was written outside its bounds
};
std::shared_ptr<Device> open_host_device(HostDeviceOptions = {});

}  // namespace sl
