// The primary context of one GPU, and the scope that makes it current for a call.
#pragma once

#include <memory>

#include "device/cuda/driver_api.hpp"

namespace sl::cuda {

/// Holds one reference to a device's primary context: the only kind that Sluice uses, so that it shares streams and
/// memory with the runtime API. Kernels, buffers and recordings keep it alive, so they may outlive their Device.
/// Destruction is safe at exit, after a fork and after the context died.
class PrimaryContext {
 public:
  static Result<std::shared_ptr<const PrimaryContext>> retain(const DriverApi&, CUdevice, int ordinal);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const DriverApi& api() const { return api_; }
  CUcontext handle() const { return handle_; }
  CUdevice device() const { return device_; }
  int ordinal() const { return ordinal_; }
  /// True in a child that was forked after this was made: CUDA does not survive fork, so nothing may be called there.
  bool forked() const;

 private:
  PrimaryContext(const DriverApi& api, CUdevice device, int ordinal, CUcontext handle);

  const DriverApi& api_;
  const CUdevice device_;
  const int ordinal_;
  const CUcontext handle_;
  const unsigned fork_generation_;
};
using ContextPtr = std::shared_ptr<const PrimaryContext>;

/// Makes the context current while it lives, and nothing where it already is.
class ContextScope {
 public:
  explicit ContextScope(const PrimaryContext& context) noexcept : api_(context.api()) {
    CUcontext current = nullptr;
    result_ = api_.ctx_get_current(&current);
    if (result_ != cuda_success || current == context.handle()) return;
    result_ = api_.ctx_push_current(context.handle());
    pushed_ = result_ == cuda_success;
  }
  ~ContextScope() {
    CUcontext popped = nullptr;
    if (pushed_) api_.ctx_pop_current(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  CUresult result() const noexcept { return result_; }
  bool pushed() const noexcept { return pushed_; }  ///< another was current, or none

 private:
  const DriverApi& api_;
  CUresult result_ = cuda_success;
  bool pushed_ = false;
};

/// A ContextScope for calls that allocate, load or synchronise: the thread is in relaxed capture mode too, so that a
/// capture in global mode on another thread is not invalidated by them.
class CallScope {
 public:
  explicit CallScope(const PrimaryContext&) noexcept;
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  /// False where no call may be made: the process was forked, or the driver is gone.
  bool ok() const noexcept { return !forked_ && scope_result() == cuda_success; }
  Status status(std::string_view what) const;

 private:
  CUresult scope_result() const noexcept { return scope_ ? scope_->result() : cuda_success; }

  const PrimaryContext& context_;
  const bool forked_;
  std::optional<ContextScope> scope_;
  int mode_ = capture_relaxed;  ///< the mode to go back to
  bool exchanged_ = false;
};

}  // namespace sl::cuda
