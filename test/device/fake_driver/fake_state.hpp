// The fake driver's state: what is alive, what is to fail, and each thread's stack of contexts. For fake_cuda.cpp only.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/cuda/driver_api.hpp"
#include "test/device/fake_driver/fake_control.hpp"

using namespace sl::cuda;

struct sl::cuda::CUctx_st {
  int device;
};
struct sl::cuda::CUfunc_st {
  CUcontext context;
  std::string name = {};
};
struct sl::cuda::CUmod_st {
  CUfunc_st function;
};
struct sl::cuda::CUstream_st {
  int capture = capture_none;
  int mode = capture_global;
};
struct sl::cuda::CUevent_st {
  bool recorded = false;
};
struct sl::cuda::CUgraph_st {
  int unused = 0;
};
struct sl::cuda::CUgraphExec_st {
  int unused = 0;
};

namespace {

enum Symbol {
#define MEMBER(member, symbol, arguments) s_##member,
  SLUICE_DRIVER_SYMBOLS(MEMBER) SLUICE_DRIVER_OPTIONAL_SYMBOLS(MEMBER)
#undef MEMBER
      symbol_count
};
constexpr std::array<const char*, symbol_count> symbol_names{
#define NAME(member, symbol, arguments) symbol,
    SLUICE_DRIVER_SYMBOLS(NAME) SLUICE_DRIVER_OPTIONAL_SYMBOLS(NAME)
#undef NAME
};

struct Fault {
  std::atomic<int> calls{0}, times{0}, result{0};
};
std::array<Fault, symbol_count> faults;
std::atomic<bool> deinitialised{false}, contexts_destroyed{false};
std::atomic<int> sticky{0};  // what every call answers since a kernel faulted
std::atomic<int> global_captures{0};
std::mutex mutex;
fake::Launch last_launch{};
std::string load_log;
std::array<CUctx_st, fake::devices> primary{CUctx_st{0}, CUctx_st{1}};

/// What is alive of one kind; owned, so that a test may leave things to a dead driver.
template <class T>
class Pool {
 public:
  template <class... Arguments>
  T* make(Arguments&&... arguments) {
    const std::scoped_lock lock(mutex_);
    auto item = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T* const handle = item.get();
    items_.emplace(handle, std::move(item));
    return handle;
  }
  CUresult destroy(T* handle) {
    const std::scoped_lock lock(mutex_);
    return items_.erase(handle) == 1 ? 0 : 1;
  }
  void clear() {
    const std::scoped_lock lock(mutex_);
    items_.clear();
  }
  int count() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(items_.size());
  }

 private:
  mutable std::mutex mutex_;
  std::map<T*, std::unique_ptr<T>> items_;
};
Pool<CUmod_st> modules;
Pool<CUstream_st> streams;
Pool<CUevent_st> events;
Pool<CUgraph_st> graphs;
Pool<CUgraphExec_st> graph_execs;
std::atomic<int> retains{0}, captures{0};
std::map<CUdeviceptr, std::vector<char>> buffers;  // by address; guarded by `mutex`
std::size_t allocated = 0;

thread_local std::array<CUcontext, 64> stack;
thread_local int depth = 0;
thread_local int thread_mode = capture_global;

constexpr CUresult invalid_value = 1, deinitialized = 4, invalid_context = 201, invalid_handle = 400,
                   capture_unsupported = 900, capture_invalid = 901, capture_unmatched = 903;

constexpr struct {
  CUresult result;
  const char* name;
} error_names[] = {
    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
    {4, "CUDA_ERROR_DEINITIALIZED"},
    {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {401, "CUDA_ERROR_ILLEGAL_STATE"},
    {500, "CUDA_ERROR_NOT_FOUND"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
};
constexpr struct {
  int attribute, value;
} attribute_values[] = {
    {attribute_capability_major, 9},     {attribute_capability_minor, 0},   {attribute_sm_count, 132},
    {attribute_l2_bytes, 50 << 20},      {attribute_smem_optin, 227 << 10}, {attribute_smem_per_sm, 228 << 10},
    {attribute_registers_per_sm, 65536}, {attribute_threads_per_sm, 2048},
};

}  // namespace
