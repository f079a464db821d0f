// The CUDA driver, opened at run time: the handful of its types and functions that Sluice uses. Written out here so
// that the core builds where there is no CUDA toolkit; the driver's ABI for these names is frozen.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.hpp"

namespace sl::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

/// Results that Sluice treats specially; every other one is passed on by name and text.
enum : CUresult {
  cuda_success = 0,
  cuda_out_of_memory = 2,
  cuda_not_initialized = 3,
  cuda_stub_library = 34,
  cuda_no_device = 100,
  cuda_invalid_image = 200,
  cuda_no_binary_for_gpu = 209,
  cuda_unsupported_ptx_version = 222,
  cuda_illegal_address = 700,
  cuda_context_is_destroyed = 709,
  cuda_launch_failed = 719,
  cuda_stream_capture_implicit = 906,
};

enum DeviceAttribute : int {
  attribute_clock_khz = 13,
  attribute_sm_count = 16,
  attribute_l2_bytes = 38,
  attribute_threads_per_sm = 39,
  attribute_capability_major = 75,
  attribute_capability_minor = 76,
  attribute_smem_per_sm = 81,
  attribute_registers_per_sm = 82,
  attribute_smem_optin = 97,
};

enum FunctionAttribute : int {
  function_static_smem = 1,
  function_local_bytes = 3,
  function_registers = 4,
  function_max_dynamic_smem = 8,
};

enum JitOption : int { jit_error_log_buffer = 5, jit_error_log_buffer_size = 6 };
enum CaptureMode : int { capture_global = 0, capture_thread_local = 1, capture_relaxed = 2 };
enum CaptureStatus : int { capture_none = 0, capture_active = 1, capture_invalidated = 2 };
enum : unsigned { stream_non_blocking = 1, event_default = 0 };

// X(member, symbol, arguments): versioned symbols where the plain name is an older ABI.
#define SLUICE_DRIVER_SYMBOLS(X)                                                                                  \
  X(get_error_name, "cuGetErrorName", (CUresult, const char**))                                                   \
  X(get_error_string, "cuGetErrorString", (CUresult, const char**))                                               \
  X(init, "cuInit", (unsigned))                                                                                   \
  X(driver_get_version, "cuDriverGetVersion", (int*))                                                             \
  X(device_get_count, "cuDeviceGetCount", (int*))                                                                 \
  X(device_get, "cuDeviceGet", (CUdevice*, int))                                                                  \
  X(device_get_name, "cuDeviceGetName", (char*, int, CUdevice))                                                   \
  X(device_get_attribute, "cuDeviceGetAttribute", (int*, int, CUdevice))                                          \
  X(device_total_mem, "cuDeviceTotalMem_v2", (std::size_t*, CUdevice))                                            \
  X(primary_ctx_retain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                                       \
  X(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                              \
  X(ctx_get_current, "cuCtxGetCurrent", (CUcontext*))                                                             \
  X(ctx_push_current, "cuCtxPushCurrent_v2", (CUcontext))                                                         \
  X(ctx_pop_current, "cuCtxPopCurrent_v2", (CUcontext*))                                                          \
  X(thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", (int*))                                    \
  X(module_load_data_ex, "cuModuleLoadDataEx", (CUmodule*, const void*, unsigned, int*, void**))                  \
  X(module_unload, "cuModuleUnload", (CUmodule))                                                                  \
  X(module_get_function, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*))                             \
  X(func_get_attribute, "cuFuncGetAttribute", (int*, int, CUfunction))                                            \
  X(func_set_attribute, "cuFuncSetAttribute", (CUfunction, int, int))                                             \
  X(launch_kernel, "cuLaunchKernel",                                                                              \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)) \
  X(mem_get_info, "cuMemGetInfo_v2", (std::size_t*, std::size_t*))                                                \
  X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr*, std::size_t))                                                      \
  X(mem_free, "cuMemFree_v2", (CUdeviceptr))                                                                      \
  X(memcpy_htod_async, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, std::size_t, CUstream))                 \
  X(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, std::size_t, CUstream))                       \
  X(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))                 \
  X(memset_d8_async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, std::size_t, CUstream))                      \
  X(stream_create, "cuStreamCreate", (CUstream*, unsigned))                                                       \
  X(stream_destroy, "cuStreamDestroy_v2", (CUstream))                                                             \
  X(stream_synchronize, "cuStreamSynchronize", (CUstream))                                                        \
  X(stream_is_capturing, "cuStreamIsCapturing", (CUstream, int*))                                                 \
  X(stream_begin_capture, "cuStreamBeginCapture_v2", (CUstream, int))                                             \
  X(stream_end_capture, "cuStreamEndCapture", (CUstream, CUgraph*))                                               \
  X(event_create, "cuEventCreate", (CUevent*, unsigned))                                                          \
  X(event_destroy, "cuEventDestroy_v2", (CUevent))                                                                \
  X(event_record, "cuEventRecord", (CUevent, CUstream))                                                           \
  X(event_synchronize, "cuEventSynchronize", (CUevent))                                                           \
  X(event_elapsed_time, "cuEventElapsedTime", (float*, CUevent, CUevent))                                         \
  X(graph_destroy, "cuGraphDestroy", (CUgraph))                                                                   \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec*, CUgraph, unsigned long long))                \
  X(graph_upload, "cuGraphUpload", (CUgraphExec, CUstream))                                                       \
  X(graph_launch, "cuGraphLaunch", (CUgraphExec, CUstream))                                                       \
  X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec))

// Used where the driver has them: cuFuncLoad since CUDA 12.4.
#define SLUICE_DRIVER_OPTIONAL_SYMBOLS(X)  \
  X(func_load, "cuFuncLoad", (CUfunction)) \
  X(device_get_pci_bus_id, "cuDeviceGetPCIBusId", (char*, int, CUdevice))

/// The driver's functions. Immutable once loaded; lives for ever, so a function pointer never dangles.
struct DriverApi {
#define SLUICE_MEMBER(member, symbol, arguments) CUresult(*member) arguments = nullptr;
  SLUICE_DRIVER_SYMBOLS(SLUICE_MEMBER)
  SLUICE_DRIVER_OPTIONAL_SYMBOLS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
  std::string path;  ///< of the library, as mapped
};

/// Opens libcuda (`library` empty = "libcuda.so.1"), resolves the table and calls cuInit: once a library, whoever asks.
/// Never closed: the driver keeps threads and exit handlers of its own. Thread-safe. A failure is not remembered.
/// Errors (Code::environment): no driver, the toolkit's stub, a driver without a needed symbol, cuInit's refusal.
Result<const DriverApi*> load_driver(const std::string& library);

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string describe(const DriverApi&, CUresult);

/// The Error of a failed driver call: `what` says which call, with what. Code::out_of_memory or Code::device.
Error call_failed(const DriverApi&, std::string_view what, CUresult);

}  // namespace sl::cuda
