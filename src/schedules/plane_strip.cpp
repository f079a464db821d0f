#include "schedules/plane_strip.hpp"

#include <algorithm>
#include <numeric>

namespace sl::plane_strip {

std::int64_t size(const ConvProblem& p) { return static_cast<std::int64_t>(size_of(p.dtype)); }

int weight_bytes(const ConvProblem& p, std::int64_t planes) {
  const std::int64_t bytes = std::gcd(planes, p.c) * p.taps() * size(p);
  return std::max(static_cast<int>(size(p)), dividing_power(bytes, std::min(16, static_cast<int>(p.align))));
}

bool in_place(const ConvProblem& p, const Config& config) {
  return config.get("strips") == 1 && config.get("tiles") == 1 && !p.residual && p.stride_h == 1 && p.h == p.p &&
         p.w == p.q && p.pad_top < p.r && (p.w % 2 == 0 || size(p) == 4);
}

std::int64_t registers_of(const ConvProblem& p, std::int64_t tiles) {
  const std::int64_t cols = ceil_div(p.q, tiles), span = tiles == 1 ? p.w : (cols - 1) * p.stride_w + p.s;
  return ceil_div(p.r, p.stride_h) * cols + p.taps() + span + 40;
}

std::vector<Try> tries_of(const ConvProblem& p) {
  const std::int64_t whole = p.p, row = p.q;
  const bool strides = p.stride_h > 1 || p.stride_w > 1, halves = p.dtype != DType::f32;
  if (p.w <= narrow && p.q <= narrow) {
    if (p.p * p.q > 64) {
      return {{8, 2, row}, {16, 7, row}, {16, 2, row}, {32, whole, row}, {16, 4, row}, {8, 4, row}, {8, whole, row}};
    }
    if (halves && !strides) {
      return {{32, whole, row}, {16, 2, row}, {64, whole, row}, {32, 2, row}, {16, 1, row}, {8, whole, row}};
    }
    return {{16, 2, row}, {32, 2, row}, {32, whole, row}, {16, 4, row}, {8, 2, row}, {8, whole, row}};
  }
  if (p.q <= 20 && strides) {
    return {{16, 2, 7}, {16, 3, 5}, {8, 3, 10}, {8, 2, 7}, {16, 5, 7}, {4, 4, 7}, {2, 4, 7}};
  }
  if (p.q <= 20) return {{8, 5, row}, {16, 5, row}, {16, 5, 10}, {16, 10, 5}, {8, 5, 7}, {4, 5, 7}, {2, 5, 7}};
  if (strides) return {{4, 7, 4}, {8, 14, 2}, {2, 4, 4}, {8, 10, 4}, {2, 7, 4}, {8, 7, 4}, {4, 14, 4}, {2, 14, 4}};
  if (halves) return {{8, 5, 15}, {16, 8, 15}, {8, 8, 5}, {8, 8, 8}, {4, 8, 8}, {2, 8, 8}, {4, 16, 8}};
  return {{8, 5, 8}, {8, 8, 8}, {8, 8, 5}, {8, 5, 15}, {4, 8, 8}, {2, 8, 8}, {4, 16, 8}};
}

Refusal not_small_planes(const ConvProblem& p) {
  if (p.layout != Layout::nchw) return refuse("layout", static_cast<std::int64_t>(p.layout), "NCHW (0) only");
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = dilated(p)) return refusal;
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.w > wide) return refuse("w", p.w, "rows of 128 columns at most");
  if (p.w > narrow && p.w % 2 == 0) return refuse("w", p.w, "rows of 16 columns at most, or of an odd number");
  if (p.q > wide) return refuse("q", p.q, "rows of 128 columns at most");
  if (p.taps() > 49) return refuse("r * s", p.taps(), "weights stay in registers, so at most 49 taps");
  if (p.r > 16) return refuse("r", p.r, "at most 16 kernel rows");
  return std::nullopt;
}

Constants constants(const ConvProblem& p, const Config& config) {
  const int planes = config.get("planes"), strips = config.get("strips"), tiles = config.get("tiles");
  Constants constants = common_constants(p);
  add_plane(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"PLANES", planes},
      {"STRIPS", strips},
      {"ROWS", ceil_div(p.p, strips)},
      {"TILES", tiles},
      {"IN_PLACE", in_place(p, config) ? 1 : 0},
      {"W_BYTES", weight_bytes(p, planes)},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return constants;
}

}  // namespace sl::plane_strip
