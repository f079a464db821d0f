// Sluice for C++17 and later: owning handles and small value types over sluice.h, header-only. The C header is the
// manual: this file adds lifetimes and defaults, no behaviour.
//
//   sluice::Context context;
//   if (auto s = sluice::Context::create(sluice::Options().device("cuda:0"), context); !s) return fail(s.message());
//   sluice::Conv2d conv;
//   conv.x(x, SLUICE_F16, {32, 144, 56, 56}).w(w, SLUICE_F16, {144, 1, 3, 3}).y(y, SLUICE_F16, {32, 144, 56, 56});
//   conv.layout(SLUICE_NHWC).groups(144).pad(1, 1, 1, 1);
//   const sluice::Status s = context.conv2d(conv, stream);
//   if (s.kept()) run_my_own(); else if (!s) return fail(s.message());
//
// Nothing here throws, except std::bad_alloc where a std::string is returned. Thread safety is sluice.h's: a Context
// may be used from any thread; a Conv2d or Options is a plain value.
#ifndef SLUICE_HPP
#define SLUICE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "sluice/sluice.h"

namespace sluice {

/// Outcome of a call. True in a condition only for SLUICE_OK: a kept call is no error, but nothing ran either.
class [[nodiscard]] Status {
 public:
  Status(sluice_status code = SLUICE_OK) noexcept : code_(code) {}  // NOLINT implicit: the C functions return codes
  sluice_status code() const noexcept { return code_; }
  bool ok() const noexcept { return code_ == SLUICE_OK; }
  bool kept() const noexcept { return code_ == SLUICE_KEPT; }  ///< run your own convolution
  bool failed() const noexcept { return !ok() && !kept(); }
  explicit operator bool() const noexcept { return ok(); }
  const char* name() const noexcept { return sluice_status_name(code_); }
  /// What sluice_last_error() says: ask on the thread that made the call, before its next call. "" where ok.
  const char* message() const noexcept { return ok() ? "" : sluice_last_error(); }

 private:
  sluice_status code_;
};

/// sluice_options with setters; owns its strings. What is not set keeps its default.
class Options {
 public:
  Options& device(std::string text) { return set(device_, std::move(text)); }  ///< "cuda", "cuda:1", "host"
  Options& cache_dir(std::string path) { return set(cache_dir_, std::move(path)); }
  Options& routing_table(std::string path) { return set(routing_table_, std::move(path)); }
  Options& heuristic(std::string path) { return set(heuristic_, std::move(path)); }
  Options& decision_table(std::string path) { return set(decision_table_, std::move(path)); }
  Options& record(std::string path) { return set(record_, std::move(path)); }
  Options& policy(sluice_policy policy) noexcept { return raw_.policy = policy, *this; }
  Options& pinned_accepts(sluice_match match) noexcept { return raw_.pinned_accepts = match, *this; }
  Options& force_take(bool force = true) noexcept { return raw_.force_take = force ? 1 : 0, *this; }
  Options& tune_budget_ms(double ms) noexcept { return raw_.tune_budget_ms = ms, *this; }
  Options& tune_scratch_bytes(std::uint64_t bytes) noexcept { return raw_.tune_scratch_bytes = bytes, *this; }
  Options& tune_threads(std::int32_t threads) noexcept { return raw_.tune_threads = threads, *this; }
  /// `user` must outlive the context.
  Options& log(sluice_log_callback callback, void* user, sluice_log_level least = SLUICE_WARNING) noexcept {
    raw_.log = callback, raw_.log_user = user, raw_.log_level = least;
    return *this;
  }

  /// Valid while this object lives unchanged.
  sluice_options raw() const noexcept {
    sluice_options result = raw_;
    result.device = pointer(device_);
    result.cache_dir = pointer(cache_dir_);
    result.routing_table = pointer(routing_table_);
    result.decision_table = pointer(decision_table_);
    result.record = pointer(record_);
    result.heuristic = pointer(heuristic_);
    return result;
  }

 private:
  Options& set(std::string& field, std::string value) { return field = std::move(value), *this; }
  static const char* pointer(const std::string& text) noexcept { return text.empty() ? nullptr : text.c_str(); }

  sluice_options raw_ = SLUICE_OPTIONS_INIT;
  std::string device_, cache_dir_, routing_table_, decision_table_, record_, heuristic_;
};

/// Up to four sizes or strides.
using Dims = std::array<std::int64_t, 4>;

/// sluice_conv2d_args with setters; owns the dims and strides that a sluice_tensor only points to. Data is the
/// caller's.
class Conv2d {
 public:
  using List = std::initializer_list<std::int64_t>;

  /// `dims` in logical order, (n, c, h, w) or (n, c, w); `strides` in elements, empty = packed in the stated layout.
  /// At most four of each are read; a wrong count is the call's INVALID.
  Conv2d& x(const void* data, sluice_dtype dtype, List dims, List strides = {}) noexcept {
    return set(X, data, dtype, dims, strides);
  }
  Conv2d& w(const void* data, sluice_dtype dtype, List dims, List strides = {}) noexcept {
    return set(W, data, dtype, dims, strides);
  }
  Conv2d& y(void* data, sluice_dtype dtype, List dims, List strides = {}) noexcept {
    return set(Y, data, dtype, dims, strides);
  }
  Conv2d& bias(const void* data, sluice_dtype dtype, std::int64_t k) noexcept { return set(B, data, dtype, {k}, {}); }
  /// Added before the activation; may be y itself.
  Conv2d& z(const void* data, sluice_dtype dtype, List dims, List strides = {}) noexcept {
    return set(Z, data, dtype, dims, strides);
  }

  Conv2d& layout(sluice_layout layout) noexcept { return args_.layout = layout, *this; }
  Conv2d& weight_layout(sluice_weight_layout layout) noexcept { return args_.weight_layout = layout, *this; }
  Conv2d& groups(std::int64_t groups) noexcept { return args_.groups = groups, *this; }
  Conv2d& stride(std::int64_t h, std::int64_t w) noexcept { return args_.stride[0] = h, args_.stride[1] = w, *this; }
  Conv2d& dilation(std::int64_t h, std::int64_t w) noexcept {
    return args_.dilation[0] = h, args_.dilation[1] = w, *this;
  }
  Conv2d& pad(std::int64_t top, std::int64_t left, std::int64_t bottom, std::int64_t right) noexcept {
    args_.pad[0] = top, args_.pad[1] = left, args_.pad[2] = bottom, args_.pad[3] = right;
    return *this;
  }
  Conv2d& activation(sluice_activation activation, float alpha = 0.0F, float beta = 0.0F) noexcept {
    args_.activation = activation, args_.alpha = alpha, args_.beta = beta;
    return *this;
  }
  /// Whether your own convolution can run this call; without it failing is an error (REQUIRED).
  Conv2d& regular(bool can) noexcept { return args_.regular = can ? 1 : 0, *this; }

  /// Valid while this object lives unchanged.
  sluice_conv2d_args raw() const noexcept {
    sluice_conv2d_args result = args_;
    result.x = tensor(X);
    result.w = tensor(W);
    result.y = tensor(Y);
    result.bias = tensor(B);
    result.z = tensor(Z);
    return result;
  }

 private:
  enum Slot : std::size_t { X, W, Y, B, Z };
  struct Tensor {
    void* data = nullptr;
    std::int32_t dtype = SLUICE_F32;
    std::int32_t ndim = 0;
    bool strided = false;
    Dims dims{}, strides{};
  };

  static void copy(List from, Dims& to) noexcept {
    std::size_t i = 0;
    for (const std::int64_t value : from) {
      if (i < to.size()) to[i++] = value;
    }
  }

  Conv2d& set(Slot slot, const void* data, sluice_dtype dtype, List dims, List strides) noexcept {
    Tensor& tensor = tensors_[slot];
    tensor = Tensor{};
    tensor.data = const_cast<void*>(data);  // inputs are only read; sluice_tensor serves both
    tensor.dtype = dtype;
    tensor.ndim = static_cast<std::int32_t>(dims.size());
    tensor.strided = strides.size() != 0;
    copy(dims, tensor.dims);
    copy(strides, tensor.strides);
    return *this;
  }

  sluice_tensor tensor(Slot slot) const noexcept {
    const Tensor& tensor = tensors_[slot];
    if (tensor.ndim == 0 && tensor.data == nullptr) return SLUICE_TENSOR_NONE;
    return {tensor.data, tensor.dtype, tensor.ndim, tensor.dims.data(),
            tensor.strided ? tensor.strides.data() : nullptr};
  }

  sluice_conv2d_args args_ = SLUICE_CONV2D_ARGS_INIT;
  std::array<Tensor, 5> tensors_{};
};

/// A prepared call: running it looks nothing up. Must not be run after its context is gone. Move-only.
class Plan {
 public:
  Plan() noexcept = default;
  Plan(Plan&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Plan& operator=(Plan&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Plan() { sluice_plan_destroy(handle_); }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  Status run(const void* x, const void* w, const void* bias, const void* z, void* y, void* stream) const noexcept {
    return sluice_plan_run(handle_, x, w, bias, z, y, stream);
  }
  sluice_plan* get() const noexcept { return handle_; }

 private:
  friend class Context;
  explicit Plan(sluice_plan* handle) noexcept : handle_(handle) {}
  sluice_plan* handle_ = nullptr;
};

/// A device with its caches. Move-only; empty until create() succeeds (every call of an empty one is INVALID).
class Context {
 public:
  Context() noexcept = default;
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Context() { sluice_context_destroy(handle_); }

  static Status create(const Options& options, Context& context) noexcept {
    const sluice_options raw = options.raw();
    sluice_context* handle = nullptr;
    const Status status = sluice_context_create(&raw, &handle);
    if (status) context = Context(handle);
    return status;
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  sluice_context* get() const noexcept { return handle_; }

  /// Look up and run, asynchronously on `stream`.
  Status conv2d(const Conv2d& call, void* stream) noexcept {
    const sluice_conv2d_args raw = call.raw();
    return sluice_conv2d(handle_, &raw, stream);
  }
  /// Decide, compile and tune without running; `plan` changes for OK only.
  Status prepare(const Conv2d& call, void* stream, Plan& plan) noexcept {
    const sluice_conv2d_args raw = call.raw();
    sluice_plan* handle = nullptr;
    const Status status = sluice_prepare(handle_, &raw, stream, &handle);
    if (status) plan = Plan(handle);
    return status;
  }
  /// The decision record as JSON. `dry`: neither compiles nor tunes.
  Status explain(const Conv2d& call, bool dry, std::string& json) {
    const sluice_conv2d_args raw = call.raw();
    char* text = nullptr;
    const Status status = sluice_explain(handle_, &raw, dry ? 1 : 0, &text);
    return take(status, text, json);
  }
  /// The same for a benchdnn descriptor.
  Status explain(const std::string& problem, bool dry, std::string& json) {
    char* text = nullptr;
    const Status status = sluice_explain_text(handle_, problem.c_str(), dry ? 1 : 0, &text);
    return take(status, text, json);
  }
  Status counters(sluice_counters& counters) const noexcept {
    counters = SLUICE_COUNTERS_INIT;
    return sluice_get_counters(handle_, &counters);
  }
  Status wait_idle() noexcept { return sluice_wait_idle(handle_); }
  bool supports(std::int32_t min_capability) const noexcept {
    return sluice_device_supports(handle_, min_capability) != 0;
  }

 private:
  explicit Context(sluice_context* handle) noexcept : handle_(handle) {}

  static Status take(Status status, char* text, std::string& json) {
    struct Free {
      char* text;
      ~Free() { sluice_string_free(text); }
    } const owner{text};
    if (status) json = text;
    return status;
  }

  sluice_context* handle_ = nullptr;
};

}  // namespace sluice

#include "sluice/graph.hpp"  // needs Status

#endif
