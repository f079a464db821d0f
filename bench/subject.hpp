// One small call, launched in every way there is: what the dispatch path's host time is measured on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/driver_api.hpp"
#include "sluice/sluice.h"
#include "tuner/session.hpp"

namespace sl::bench {

/// A tiny call, so that the queue drains faster than it fills; and one that is kept because no schedule can run it.
inline constexpr const char* taken_call = "g8mb1ic8ih8oc8oh8kh3ph1 dt=f16 tag=nhwc";
inline constexpr const char* kept_call = "mb1ic64ih8oc64oh8kh3ph1 dt=f16 tag=nhwc";

/// Plans, tensors and a C context for the two calls, everything decided. On cuda the device's primary context stays
/// current on the thread that made the subject. Use it from that thread only.
class Subject {
 public:
  static Result<std::unique_ptr<Subject>> create(tool::Session&);
  ~Subject();

  // Each enqueues one call, as cheaply as its way allows; false where it failed.
  bool bare() noexcept;      ///< cuLaunchKernel with ready arguments (host: the device's launch)
  bool plan() noexcept;      ///< Dispatcher::run
  bool lookup() noexcept;    ///< Dispatcher::conv2d, plan table hit
  bool kept() noexcept;      ///< Dispatcher::conv2d, kept answer
  bool c_plan() noexcept;    ///< sluice_plan_run
  bool c_lookup() noexcept;  ///< sluice_conv2d
  bool c_kept() noexcept;    ///< sluice_conv2d, kept

  Status drain();  ///< waits for what was enqueued
  const Plan& prepared() const { return *plan_; }

 private:
  struct CCall;
  explicit Subject(tool::Session&);
  Status prepare();
  Status make_current();
  Status open_c_context();

  tool::Session& session_;
  Stream stream_ = nullptr;
  ConvProblem taken_, kept_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  Tensors tensors_;
  std::shared_ptr<const Plan> plan_;
  SlParams bound_{};
  const cuda::DriverApi* api_ = nullptr;  ///< null on host
  cuda::CUfunction function_ = nullptr;
  sluice_context* context_ = nullptr;
  sluice_plan* c_plan_ = nullptr;
  std::unique_ptr<CCall> c_taken_, c_kept_;
  Error error_;
};

}  // namespace sl::bench
