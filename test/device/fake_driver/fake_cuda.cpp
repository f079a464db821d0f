// A libcuda.so.1 without a GPU: two devices, contexts a thread's stack of them, captures with their modes, memory that
// is the host's, and any call made to fail on demand. It enforces what the real driver does about contexts and
// captures, so that a test notices a call from the wrong context or one that breaks another thread's capture.
//
// For programs that nobody can steer from inside, two environment variables: FAKE_CUDA_COMPUTES=1, every kernel that is
// launched outside of a capture computes a depthwise 3x3 convolution, fp32, NCHW, stride 1; FAKE_CUDA_FAULT=NAME=HOW, a
// kernel whose name holds NAME faults: sticky (every later call answers ILLEGAL_ADDRESS), abort, or hang.
//
// FAKE_INIT_RESULT: what cuInit answers. FAKE_OMIT: leave cuGraphUpload out, as a driver that is too old.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/common/params.h"
#include "test/device/fake_driver/fake_state.hpp"

#ifndef FAKE_INIT_RESULT
#define FAKE_INIT_RESULT 0
#endif
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

CUresult enter(Symbol symbol) {
  Fault& fault = faults[symbol];
  ++fault.calls;
  if (deinitialised) return deinitialized;
  if (sticky != 0) return sticky;
  if (fault.times > 0) {
    --fault.times;
    return fault.result;
  }
  return cuda_success;
}

CUresult need_context() {
  if (depth == 0 || stack[static_cast<std::size_t>(depth) - 1] == nullptr) return invalid_context;
  return contexts_destroyed ? CUresult{cuda_context_is_destroyed} : cuda_success;
}

// A call that a capture in global mode forbids to every thread which is not in relaxed mode.
CUresult unsafe_call() {
  return global_captures > 0 && thread_mode != capture_relaxed ? capture_unsupported : cuda_success;
}

void convolve(const SlParams& p) {
  const auto* const x = static_cast<const float*>(p.x);
  const auto* const w = static_cast<const float*>(p.weight);
  auto* const y = static_cast<float*>(p.y);
  for (long long i = 0; i < p.n * p.k * p.p * p.q; ++i) {
    const long long q = i % p.q, row = i / p.q % p.p, plane = i / p.q / p.p, k = plane % p.k;
    float sum = 0;
    for (long long tap = 0; tap < 9; ++tap) {
      const long long h = row - p.pad_top + tap / 3, v = q - p.pad_left + tap % 3;
      if (h >= 0 && h < p.h && v >= 0 && v < p.w) sum += x[(plane * p.h + h) * p.w + v] * w[k * 9 + tap];
    }
    y[i] = sum;
  }
}

void fault(const std::string& kernel) {
  const char* const wanted = std::getenv("FAKE_CUDA_FAULT");
  if (wanted == nullptr) return;
  const std::string text = wanted, name = text.substr(0, text.find('=')), how = text.substr(text.find('=') + 1);
  if (kernel.find(name) == std::string::npos) return;
  if (how == "abort") std::abort();
  while (how == "hang") pause();
  sticky = cuda_illegal_address;
}

#define ENTER(symbol) \
  if (const CUresult result_ = enter(symbol); result_ != cuda_success) return result_
#define NEED_CONTEXT \
  if (const CUresult result_ = need_context(); result_ != cuda_success) return result_
#define UNSAFE \
  if (const CUresult result_ = unsafe_call(); result_ != cuda_success) return result_

// A stream call: legacy null streams cannot take part in a capture.
CUresult wait_for(CUstream stream) {
  if (stream != nullptr && stream->capture != capture_none) {
    stream->capture = capture_invalidated;
    return capture_unsupported;
  }
  return cuda_success;
}

}  // namespace

EXPORT CUresult cuInit(unsigned) {
  ENTER(s_init);
  return FAKE_INIT_RESULT;
}
EXPORT CUresult cuGetErrorName(CUresult result, const char** name) {
  *name = nullptr;
  for (const auto& known : error_names)
    if (known.result == result) *name = known.name;
  return *name != nullptr ? cuda_success : invalid_value;
}
EXPORT CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "fake text";
  return 0;
}
EXPORT CUresult cuDriverGetVersion(int* version) {
  ENTER(s_driver_get_version);
  *version = 13000;
  return 0;
}
EXPORT CUresult cuDeviceGetCount(int* count) {
  ENTER(s_device_get_count);
  *count = fake::devices;
  return 0;
}
EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  ENTER(s_device_get);
  *device = ordinal;
  return 0;
}
EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  ENTER(s_device_get_name);
  std::strncpy(name, device == 0 ? "NVIDIA Fake 100" : "NVIDIA Fake 100 MIG 1g.10gb", static_cast<std::size_t>(length));
  return 0;
}
EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  ENTER(s_device_get_attribute);
  for (const auto& known : attribute_values)
    if (known.attribute == attribute) {
      *value = known.value;
      return 0;
    }
  return invalid_value;
}
EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  ENTER(s_device_total_mem);
  *bytes = fake::memory_bytes;
  return 0;
}
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  ENTER(s_primary_ctx_retain);
  *context = &primary[static_cast<std::size_t>(device)];
  ++retains;
  return 0;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  ENTER(s_primary_ctx_release);
  --retains;
  return 0;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  ENTER(s_ctx_get_current);
  *context = depth == 0 ? nullptr : stack[static_cast<std::size_t>(depth) - 1];
  return 0;
}
EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  ENTER(s_ctx_push_current);
  if (contexts_destroyed) return cuda_context_is_destroyed;
  stack[static_cast<std::size_t>(depth++)] = context;
  return 0;
}
EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  ENTER(s_ctx_pop_current);
  if (depth == 0) return invalid_context;
  *context = stack[static_cast<std::size_t>(--depth)];
  return 0;
}
EXPORT CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  ENTER(s_thread_exchange_capture_mode);
  std::swap(thread_mode, *mode);
  return 0;
}
EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned count, int* options, void** values) {
  CUresult result = enter(s_module_load_data_ex);
  if (result == cuda_success) result = need_context();
  if (result == cuda_success) result = unsafe_call();
  const std::scoped_lock lock(mutex);
  if (result != cuda_success) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == jit_error_log_buffer) std::strcpy(static_cast<char*>(values[i]), load_log.c_str());
    return result;
  }
  *module = modules.make(CUfunc_st{stack[static_cast<std::size_t>(depth) - 1]});
  return 0;
}
EXPORT CUresult cuModuleUnload(CUmodule module) {
  ENTER(s_module_unload);
  NEED_CONTEXT;
  UNSAFE;
  return modules.destroy(module);
}
EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  ENTER(s_module_get_function);
  NEED_CONTEXT;
  module->function.name = name;
  *function = &module->function;
  return 0;
}
EXPORT CUresult cuFuncLoad(CUfunction) {
  ENTER(s_func_load);
  UNSAFE;
  return need_context();
}
EXPORT CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction) {
  ENTER(s_func_get_attribute);
  *value = attribute == function_static_smem ? 1024 : 32;
  return need_context();
}
EXPORT CUresult cuFuncSetAttribute(CUfunction, int, int) {
  ENTER(s_func_set_attribute);
  return need_context();
}
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned smem, CUstream stream, void** params, void**) {
  ENTER(s_launch_kernel);
  NEED_CONTEXT;
  if (gy != 1 || gz != 1 || by != 1 || bz != 1) return invalid_value;
  const CUcontext current = stack[static_cast<std::size_t>(depth) - 1];
  if (function->context != current) return invalid_handle;
  const std::scoped_lock lock(mutex);
  const SlParams& work = *static_cast<const SlParams*>(params[0]);
  last_launch = {gx, bx, smem, stream, current, work.work, last_launch.count + 1};
  if (stream != nullptr && stream->capture != capture_none) return 0;
  if (std::getenv("FAKE_CUDA_COMPUTES") != nullptr) convolve(work);
  fault(function->name);
  return 0;
}
EXPORT CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  ENTER(s_mem_get_info);
  NEED_CONTEXT;
  const std::scoped_lock lock(mutex);
  *total = fake::memory_bytes;
  *free_bytes = fake::memory_bytes - allocated;
  return 0;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* data, std::size_t bytes) {
  ENTER(s_mem_alloc);
  NEED_CONTEXT;
  UNSAFE;
  const std::scoped_lock lock(mutex);
  if (bytes > fake::memory_bytes - allocated) return cuda_out_of_memory;
  std::vector<char> memory(bytes);
  *data = reinterpret_cast<CUdeviceptr>(memory.data());
  buffers.emplace(*data, std::move(memory));
  allocated += bytes;
  return 0;
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr data) {
  ENTER(s_mem_free);
  NEED_CONTEXT;
  UNSAFE;
  const std::scoped_lock lock(mutex);
  const auto found = buffers.find(data);
  if (found == buffers.end()) return invalid_value;
  allocated -= found->second.size();
  buffers.erase(found);
  return 0;
}
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
  ENTER(s_memcpy_htod_async);
  NEED_CONTEXT;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
  ENTER(s_memcpy_dtoh_async);
  NEED_CONTEXT;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  ENTER(s_memcpy_dtod_async);
  NEED_CONTEXT;
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return 0;
}
EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, std::size_t bytes, CUstream) {
  ENTER(s_memset_d8_async);
  NEED_CONTEXT;
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  return 0;
}
EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  ENTER(s_stream_create);
  NEED_CONTEXT;
  *stream = streams.make();
  return 0;
}
EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  ENTER(s_stream_destroy);
  NEED_CONTEXT;
  return streams.destroy(stream);
}
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  ENTER(s_stream_synchronize);
  NEED_CONTEXT;
  return wait_for(stream);
}
EXPORT CUresult cuStreamIsCapturing(CUstream stream, int* status) {
  ENTER(s_stream_is_capturing);
  NEED_CONTEXT;
  if (stream == nullptr && captures > 0) return cuda_stream_capture_implicit;
  *status = stream == nullptr ? capture_none : stream->capture;
  return 0;
}
EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  ENTER(s_stream_begin_capture);
  NEED_CONTEXT;
  if (stream == nullptr) return capture_unsupported;
  if (stream->capture != capture_none) return 401;
  stream->capture = capture_active;
  stream->mode = mode;
  if (mode == capture_global) ++global_captures;
  ++captures;
  return 0;
}
EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const CUresult fault = enter(s_stream_end_capture);  // a failing end ends the capture too
  NEED_CONTEXT;
  if (stream == nullptr || stream->capture == capture_none) return capture_unmatched;
  const bool valid = stream->capture == capture_active;
  stream->capture = capture_none;
  if (stream->mode == capture_global) --global_captures;
  --captures;
  *graph = nullptr;
  if (fault != cuda_success) return fault;
  if (!valid) return capture_invalid;
  *graph = graphs.make();
  return 0;
}
EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  ENTER(s_event_create);
  NEED_CONTEXT;
  *event = events.make();
  return 0;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  ENTER(s_event_destroy);
  NEED_CONTEXT;
  return events.destroy(event);
}
EXPORT CUresult cuEventRecord(CUevent event, CUstream) {
  ENTER(s_event_record);
  NEED_CONTEXT;
  event->recorded = true;
  return 0;
}
EXPORT CUresult cuEventSynchronize(CUevent event) {
  ENTER(s_event_synchronize);
  NEED_CONTEXT;
  UNSAFE;
  return event->recorded ? cuda_success : CUresult{invalid_value};
}
EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  ENTER(s_event_elapsed_time);
  NEED_CONTEXT;
  *milliseconds = 0.25F;
  return 0;
}
EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  ENTER(s_graph_destroy);
  return graphs.destroy(graph);
}
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph, unsigned long long) {
  ENTER(s_graph_instantiate);
  NEED_CONTEXT;
  *exec = graph_execs.make();
  return 0;
}
#ifndef FAKE_OMIT
EXPORT CUresult cuGraphUpload(CUgraphExec, CUstream) {
  ENTER(s_graph_upload);
  return need_context();
}
#endif
EXPORT CUresult cuGraphLaunch(CUgraphExec, CUstream) {
  ENTER(s_graph_launch);
  return need_context();
}
EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  ENTER(s_graph_exec_destroy);
  return graph_execs.destroy(exec);
}

EXPORT void fake_fault(const char* symbol, int result, int times) {
  for (std::size_t i = 0; i < symbol_count; ++i)
    if (std::strcmp(symbol_names[i], symbol) == 0) {
      faults[i].result = result;
      faults[i].times = times;
      return;
    }
  std::abort();  // a typo in a test
}
EXPORT int fake_calls(const char* symbol) {
  for (std::size_t i = 0; i < symbol_count; ++i)
    if (std::strcmp(symbol_names[i], symbol) == 0) return faults[i].calls;
  std::abort();
}
EXPORT void fake_reset() {
  const std::scoped_lock lock(mutex);
  for (Fault& fault : faults) fault.calls = fault.times = fault.result = 0;
  deinitialised = contexts_destroyed = false;
  sticky = 0;
  buffers.clear();
  allocated = 0;
  modules.clear();
  streams.clear();
  events.clear();
  graphs.clear();
  graph_execs.clear();
  retains = captures = global_captures = 0;
  load_log.clear();
  last_launch = {};
}
EXPORT void fake_deinitialise() { deinitialised = true; }
EXPORT void fake_destroy_contexts() { contexts_destroyed = true; }
EXPORT int fake_context_depth() { return depth; }
EXPORT void* fake_primary(int device) { return &primary[static_cast<std::size_t>(device)]; }
EXPORT int fake_capture_mode() { return thread_mode; }
EXPORT void fake_live(fake::Live* now) {
  const std::scoped_lock lock(mutex);
  *now = {retains,
          static_cast<int>(buffers.size()),
          modules.count(),
          streams.count(),
          events.count(),
          graphs.count(),
          graph_execs.count(),
          captures};
}
EXPORT void fake_last_launch(fake::Launch* launch) {
  const std::scoped_lock lock(mutex);
  *launch = last_launch;
}
EXPORT void fake_log(const char* text) { load_log = text; }
