#include "device/cuda/context.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>

namespace sl::cuda {
namespace {

// How many forks lie between this process and the first one that used CUDA. Counted by a fork handler, because getpid()
// is a system call. Trivially destructible, both of them.
std::atomic<unsigned> fork_generation{0};
std::once_flag fork_handler;

unsigned current_generation() {
  std::call_once(fork_handler, [] {
    pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
  });
  return fork_generation.load(std::memory_order_relaxed);
}

}  // namespace

PrimaryContext::PrimaryContext(const DriverApi& api, CUdevice device, int ordinal, CUcontext handle)
    : api_(api), device_(device), ordinal_(ordinal), handle_(handle), fork_generation_(current_generation()) {}

Result<ContextPtr> PrimaryContext::retain(const DriverApi& api, CUdevice device, int ordinal) {
  CUcontext handle = nullptr;
  if (const CUresult result = api.primary_ctx_retain(&handle, device); result != cuda_success)
    return call_failed(api, "cuDevicePrimaryCtxRetain(cuda:" + std::to_string(ordinal) + ")", result);
  return ContextPtr(new PrimaryContext(api, device, ordinal, handle));
}

PrimaryContext::~PrimaryContext() {
  // At exit the driver may be gone already and answers DEINITIALIZED: nothing is left to do then.
  if (!forked()) api_.primary_ctx_release(device_);
}

bool PrimaryContext::forked() const { return fork_generation.load(std::memory_order_relaxed) != fork_generation_; }

CallScope::CallScope(const PrimaryContext& context) noexcept : context_(context), forked_(context.forked()) {
  if (forked_) return;
  scope_.emplace(context);
  exchanged_ = scope_->result() == cuda_success && context.api().thread_exchange_capture_mode(&mode_) == cuda_success;
}

CallScope::~CallScope() {
  if (exchanged_) context_.api().thread_exchange_capture_mode(&mode_);
}

Status CallScope::status(std::string_view what) const {
  if (forked_)
    return Error{Code::device, std::string(what) + " on cuda:" + std::to_string(context_.ordinal()) +
                                   ": this process was forked after CUDA was initialised, and CUDA does not survive a "
                                   "fork; make the context in the child (Python: the spawn start method)"};
  if (scope_result() != cuda_success)
    return call_failed(
        context_.api(),
        std::string(what) + ": making the primary context of cuda:" + std::to_string(context_.ordinal()) + " current",
        scope_result());
  return {};
}

}  // namespace sl::cuda
