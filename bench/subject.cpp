#include "bench/subject.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "device/cuda/module.hpp"

namespace sl::bench {

/// Arguments of the C ABI for one problem, with the arrays that they point to.
struct Subject::CCall {
  std::array<std::int64_t, 4> x, w, y;
  sluice_conv2d_args args = SLUICE_CONV2D_ARGS_INIT;

  CCall(const ConvProblem& p, const Tensors& t)
      : x{p.n, p.c, p.h, p.w}, w{p.k, p.channels_per_group(), p.r, p.s}, y{p.n, p.k, p.p, p.q} {
    const auto tensor = [&](const void* data, const std::array<std::int64_t, 4>& dims) {
      return sluice_tensor{const_cast<void*>(data), static_cast<std::int32_t>(p.dtype), 4, dims.data(), nullptr};
    };
    args.x = tensor(t.x, x);
    args.w = tensor(t.w, w);
    args.y = tensor(t.y, y);
    args.layout = static_cast<std::int32_t>(p.layout);
    args.weight_layout = static_cast<std::int32_t>(p.weight_layout);
    args.groups = p.groups;
    const std::array<std::int64_t, 4> pad = {p.pad_top, p.pad_left, p.pad_bottom(), p.pad_right()};
    std::copy(pad.begin(), pad.end(), args.pad);
  }
};

Subject::Subject(tool::Session& session, const Log& log) : session_(session), log_(log) {}

Subject::~Subject() {
  if (c_plan_ != nullptr) sluice_plan_destroy(c_plan_);
  if (context_ != nullptr) sluice_context_destroy(context_);
  if (c_keeper_ != nullptr) sluice_context_destroy(c_keeper_);
  if (stream_ != nullptr) session_.device->destroy_stream(stream_);
}

Result<std::unique_ptr<Subject>> Subject::create(tool::Session& session, const Log& log) {
  std::unique_ptr<Subject> subject(new Subject(session, log));
  SL_TRY(subject->prepare());
  SL_TRY(subject->make_current());
  SL_TRY(subject->open_c_contexts());
  SL_TRY(subject->open_keepers());
  const bool fine = subject->bare() && subject->plan() && subject->lookup() && subject->kept() && subject->c_plan() &&
                    subject->c_lookup() && subject->c_kept();
  if (!fine) return Error{Code::internal, std::string(measured_call) + ": " + subject->failure()};
  SL_TRY(subject->drain());
  return subject;
}

Status Subject::prepare() {
  SL_ASSIGN(problem_, parse(measured_call));
  Device& device = *session_.device;
  SL_ASSIGN(stream_, device.create_stream());
  for (const auto elements : {problem_.x_elements(), problem_.w_elements(), problem_.y_elements()}) {
    SL_ASSIGN(auto buffer, device.allocate(static_cast<std::size_t>(elements) * size_of(problem_.dtype)));
    SL_TRY(device.fill(buffer->data(), 0, buffer->size(), stream_));
    buffers_.push_back(std::move(buffer));
  }
  SL_TRY(device.synchronize(stream_));
  tensors_.x = buffers_[0]->data();
  tensors_.w = buffers_[1]->data();
  tensors_.y = buffers_[2]->data();

  SL_ASSIGN(plan_, session_.dispatcher->prepare(problem_, stream_, Regular::yes));
  if (plan_->entry.kind != PlanEntry::Kind::plan) {
    return Error{Code::unsupported, std::string(measured_call) + " was not taken: " + plan_->decision.reason};
  }
  bound_ = plan_->entry.params;
  bound_.x = tensors_.x;
  bound_.weight = tensors_.w;
  bound_.bias = bound_.z = nullptr;
  bound_.y = tensors_.y;
  return {};
}

Status Subject::make_current() {
  const auto* kernel = dynamic_cast<const cuda::CudaKernel*>(plan_->entry.kernel);
  if (kernel == nullptr) return {};
  const auto& context = kernel->context();
  if (const auto result = context.api().ctx_push_current(context.handle()); result != cuda::cuda_success) {
    return cuda::call_failed(context.api(), "cuCtxPushCurrent", result);
  }
  api_ = &context.api();
  function_ = kernel->function();
  return {};
}

namespace {

constexpr const char* keep_all = R"({"schema": 1, "device": "any", "rules": []})";

Error c_error(const char* call, sluice_status status) {
  return {static_cast<Code>(status), std::string(call) + ": " + sluice_last_error()};
}

}  // namespace

Status Subject::open_c_contexts() {
  const bool host = session_.device->info().backend == "host";
  // A context's host device is its own and knows no other's streams; on a GPU they share the primary context.
  c_stream_ = host ? nullptr : stream_;
  const std::string device = host ? "host" : "cuda:" + std::to_string(session_.device->ordinal());
  const std::string cache = session_.stores.root.string();
  sluice_options options = SLUICE_OPTIONS_INIT;
  options.device = device.c_str();
  options.cache_dir = cache.empty() ? "off" : cache.c_str();
  options.force_take = 1;
  if (const auto status = sluice_context_create(&options, &context_); status != SLUICE_OK) {
    return c_error("sluice_context_create", status);
  }
  c_call_ = std::make_unique<CCall>(problem_, tensors_);
  if (const auto status = sluice_prepare(context_, &c_call_->args, c_stream_, &c_plan_); status != SLUICE_OK) {
    return c_error("sluice_prepare", status);
  }

  // The C ABI takes tables as files.
  const auto table = std::filesystem::temp_directory_path() / ("sluice-keep-" + std::to_string(::getpid()) + ".json");
  std::ofstream(table) << keep_all;
  const std::string table_path = table.string();
  options.force_take = 0;
  options.routing_table = table_path.c_str();
  const auto status = sluice_context_create(&options, &c_keeper_);
  std::error_code ignored;
  std::filesystem::remove(table, ignored);
  if (status != SLUICE_OK) return c_error("sluice_context_create", status);
  return {};
}

Status Subject::open_keepers() {
  SL_ASSIGN(auto table, RoutingTable::from_json(keep_all, "keep all"));
  auto options = session_.options;
  options.force_take = false;
  keeper_ = std::make_unique<Dispatcher>(session_.device, session_.binaries, session_.decisions,
                                         std::make_shared<RoutingTable>(std::move(table)), session_.pinned,
                                         session_.environment, options, log_);
  return {};
}

bool Subject::bare() noexcept {
  const auto& entry = plan_->entry;
  const auto& geometry = entry.geometry;
  if (api_ == nullptr) return session_.device->launch(*entry.kernel, geometry, bound_, stream_).ok();
  void* arguments[] = {&bound_};
  return api_->launch_kernel(function_, static_cast<unsigned>(geometry.grid), 1, 1,
                             static_cast<unsigned>(geometry.block), 1, 1, static_cast<unsigned>(geometry.dynamic_smem),
                             static_cast<cuda::CUstream>(stream_), arguments, nullptr) == cuda::cuda_success;
}

bool Subject::plan() noexcept { return session_.dispatcher->run(*plan_, tensors_, stream_).ok(); }

bool Subject::lookup() noexcept {
  return session_.dispatcher->conv2d(problem_, tensors_, stream_, Regular::yes, error_) == Code::ok;
}

bool Subject::kept() noexcept {
  return keeper_->conv2d(problem_, tensors_, stream_, Regular::yes, error_) == Code::kept;
}

bool Subject::c_plan() noexcept {
  return sluice_plan_run(c_plan_, tensors_.x, tensors_.w, nullptr, nullptr, tensors_.y, c_stream_) == SLUICE_OK;
}

bool Subject::c_lookup() noexcept { return sluice_conv2d(context_, &c_call_->args, c_stream_) == SLUICE_OK; }

bool Subject::c_kept() noexcept { return sluice_conv2d(c_keeper_, &c_call_->args, c_stream_) == SLUICE_KEPT; }

std::string Subject::failure() const { return "C++: \"" + error_.message + "\", C: \"" + sluice_last_error() + "\""; }

Status Subject::drain() { return session_.device->synchronize(stream_); }

}  // namespace sl::bench
