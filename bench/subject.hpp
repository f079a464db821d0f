// One small call, launched in every way there is: what the dispatch path's host time is measured on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/driver_api.hpp"
#include "sluice/sluice.h"
#include "tuner/session.hpp"

namespace sl::bench {

/// A tiny call, so that the queue drains faster than it fills. The kept calls are the same under a table that keeps
/// all.
inline constexpr const char* measured_call = "g8mb1ic8ih8oc8oh8kh3ph1 dt=f16 tag=nhwc";

/// Plans, tensors and C contexts for the call, everything decided. On cuda the device's primary context stays
/// current on the thread that made the subject. Use it from that thread only.
class Subject {
 public:
  static Result<std::unique_ptr<Subject>> create(tool::Session&, const Log&);
  ~Subject();

  // Each enqueues one call, as cheaply as its way allows; false where it failed.
  bool bare() noexcept;      ///< cuLaunchKernel with ready arguments (host: the device's launch)
  bool plan() noexcept;      ///< Dispatcher::run
  bool lookup() noexcept;    ///< Dispatcher::conv2d, plan table hit
  bool kept() noexcept;      ///< Dispatcher::conv2d, kept answer
  bool c_plan() noexcept;    ///< sluice_plan_run
  bool c_lookup() noexcept;  ///< sluice_conv2d
  bool c_kept() noexcept;    ///< sluice_conv2d, kept

  Status drain();               ///< waits for what was enqueued
  std::string failure() const;  ///< what the last failed call said
  const Plan& prepared() const { return *plan_; }

 private:
  struct CCall;
  Subject(tool::Session&, const Log&);
  Status prepare();
  Status make_current();
  Status open_c_contexts();
  Status open_keepers();

  tool::Session& session_;
  const Log& log_;
  Stream stream_ = nullptr, c_stream_ = nullptr;
  ConvProblem problem_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  Tensors tensors_;
  std::shared_ptr<const Plan> plan_;
  SlParams bound_{};
  const cuda::DriverApi* api_ = nullptr;  ///< null on host
  cuda::CUfunction function_ = nullptr;
  std::unique_ptr<Dispatcher> keeper_;  ///< keeps every call
  sluice_context *context_ = nullptr, *c_keeper_ = nullptr;
  sluice_plan* c_plan_ = nullptr;
  std::unique_ptr<CCall> c_call_;
  Error error_;
};

}  // namespace sl::bench
