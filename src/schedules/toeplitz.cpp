#include "schedules/toeplitz.hpp"

#include <algorithm>
#include <numeric>

namespace sl::toeplitz {
namespace {

constexpr std::int64_t largest = 256;  // pixels of a plane: its chunks of 8 are registers

/// How late in a chunk of 8 elements a plane may begin.
std::int64_t late_of(std::int64_t plane) { return 8 - std::gcd<std::int64_t>(plane, 8); }

/// As PlaneMatrix in the kernel: the pixel under the first tap of output n, and whether a chunk may meet a tile's taps.
struct Matrix {
  const ConvProblem& p;
  std::int64_t x = p.h * p.w, y = p.p * p.q;
  std::int64_t reach = (p.r - 1) * dil(p.r, p.dil_h) * p.w + (p.s - 1) * dil(p.s, p.dil_w);
  bool same = p.stride_h == 1 && p.stride_w == 1 && p.p == p.h && p.q == p.w;

  static std::int64_t dil(std::int64_t taps, std::int64_t dilation) { return taps == 1 ? 1 : dilation; }
  std::int64_t origin(std::int64_t n) const {
    return (n / p.q * p.stride_h - p.pad_top) * p.w + n % p.q * p.stride_w - p.pad_left;
  }
  /// Distances from an output's first tap to the pixels that it is multiplied with.
  std::pair<std::int64_t, std::int64_t> distances() const {
    if (same) return {-14, reach + 14};
    std::int64_t low = 0, high = reach;
    for (std::int64_t j = 0; j < chunks_of(y); ++j) {
      const std::int64_t first = std::max<std::int64_t>(0, 8 * j - late_of(y)), last = std::min(8 * j + 7, y - 1);
      const std::int64_t next = std::min((first / p.q + 1) * p.q, last), before = std::max(last / p.q * p.q - 1, first);
      const std::int64_t lowest = std::min(origin(first), origin(next));
      const std::int64_t highest = std::max(origin(last), origin(before));
      // The first and last chunks that tile j uses, and what else is in them.
      low = std::min(low, lowest - 7 - late_of(x) - highest);
      high = std::max(high, highest + reach + late_of(x) + 7 - lowest);
    }
    return {low, high};
  }
};

}  // namespace

std::int64_t chunks_of(std::int64_t plane) { return ceil_div(plane + late_of(plane), 8); }

std::int64_t pitch_of(std::int64_t elements) {
  const std::int64_t quads = ceil_div(elements, 8) + 2;
  return 4 * (quads % 2 == 0 ? quads + 1 : quads);
}
std::int64_t low_of(const ConvProblem& p) { return -Matrix{p}.distances().first; }
/// Elements of a table: lengths of 14 modulo 16 bring most columns of a tile to banks of their own.
std::int64_t length_of(const ConvProblem& p) {
  const auto [low, high] = Matrix{p}.distances();
  return ceil_div(high - low + 2 - 14, 16) * 16 + 14;
}

std::int64_t registers_of(const ConvProblem& p, std::int64_t parts, std::int64_t groups) {
  const Matrix m{p};
  const std::int64_t tiles = chunks_of(m.y), share = ceil_div(tiles, parts);
  const std::int64_t rows = ceil_div(8 * share + late_of(m.y), p.q) + 1;
  const std::int64_t span = (rows * p.stride_h * p.w + m.reach) / 8 + 3;
  return (2 * std::min(chunks_of(m.x), span) + 8) * groups + (groups > 1 ? 75 : 50);
}

Refusal not_small_planes(const ConvProblem& p) {
  if (p.dtype == DType::f32) return "dtype = f32: the matrix unit takes f16 and bf16";
  if (p.layout == Layout::nhwc) return "layout = nhwc: planes are NCHW's";
  if (Refusal refusal = not_depthwise(p)) return refusal;
  if (p.multiplier() != 1) return refuse("k / groups", p.multiplier(), "this schedule takes 1 only");
  if (Refusal refusal = coordinates_too_large(p)) return refusal;
  if (p.h > largest || p.w > largest || p.h * p.w > largest) {
    return refuse("h * w", p.h * p.w, "planes of 256 pixels at most");
  }
  if (p.p > largest || p.q > largest || p.p * p.q > largest) {
    return refuse("p * q", p.p * p.q, "planes of 256 pixels at most");
  }
  if (p.stride_h > 1) return refuse("stride_h", p.stride_h, "dw_plane is faster beyond 1");
  if (p.stride_w > 1) return refuse("stride_w", p.stride_w, "dw_plane is faster beyond 1");
  if (p.taps() < 15) return refuse("r * s", p.taps(), "dw_plane is faster below 15 taps");
  if (p.taps() > 81) return refuse("r * s", p.taps(), "at most 81 taps");
  return std::nullopt;
}

Constants constants(const ConvProblem& p, std::int64_t channels, std::int64_t groups, std::int64_t parts) {
  Constants constants = common_constants(p);
  add_dilation(constants, p);
  add_group(constants, p);
  add_plane(constants, p);
  const std::pair<const char*, std::int64_t> own[] = {
      {"CHANNELS", channels},
      {"GROUPS", groups},
      {"PARTS", parts},
      {"X_PITCH", pitch_of(channels * p.h * p.w)},
      {"Y_PITCH", pitch_of(channels * p.p * p.q)},
      {"LOW", low_of(p)},
      {"LENGTH", length_of(p)},
  };
  for (const auto& [name, value] : own) constants.emplace_back(name, value);
  return constants;
}

}  // namespace sl::toeplitz
