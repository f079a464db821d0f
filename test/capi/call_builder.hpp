// A call of the C ABI whose tensors and dims live in one place, for tables of what may be wrong with it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "reference/reference.hpp"
#include "sluice/sluice.h"

namespace sl::test {

/// Owns everything that sluice_conv2d_args points to. Starts as a legal depthwise 3x3 f32 nchw call:
/// x (2, 4, 6, 5), w (4, 1, 3, 3), y (2, 4, 6, 5), pads 1. Not movable: args() points into it.
struct CallBuilder {
  CallBuilder();
  /// The call of a problem, with data from a seed and poisoned output.
  CallBuilder(const ConvProblem&, std::uint64_t seed);
  CallBuilder(const CallBuilder&) = delete;
  CallBuilder& operator=(const CallBuilder&) = delete;

  using Dims = std::array<std::int64_t, 4>;
  Dims x_dims, w_dims, y_dims, z_dims, bias_dims;
  Dims x_strides{}, w_strides{}, y_strides{}, z_strides{}, bias_strides{};
  std::vector<std::byte> x, w, y, z, bias;
  sluice_conv2d_args args = SLUICE_CONV2D_ARGS_INIT;

  void use_bias(sluice_dtype dtype);
  void use_z();
  /// Drops the third dimension of all: x (n, c, w).
  void conv1d();
};

/// Context on the host device without stores, destroyed at the end of the scope.
struct HostContext {
  explicit HostContext(sluice_policy policy = SLUICE_IMMEDIATE, const char* cache_dir = "off");
  ~HostContext() { sluice_context_destroy(handle); }
  HostContext(const HostContext&) = delete;
  HostContext& operator=(const HostContext&) = delete;
  operator sluice_context*() const { return handle; }
  sluice_counters counters() const;

  sluice_context* handle = nullptr;
};

/// The record of a call; "" where it failed.
std::string explained(sluice_context* context, const sluice_conv2d_args& args, bool dry = true);

}  // namespace sl::test
