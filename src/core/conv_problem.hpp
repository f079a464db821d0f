// ConvProblem: one convolution call as a value. Comparable, hashable, printable, parseable.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/digest.hpp"
#include "core/result.hpp"
#include "core/types.hpp"

namespace sl {

/// y[n,k,p,q] = phi(sum over c', r, s of x[n, g*c/groups + c', p*stride_h - pad_top + r*dil_h, ...] * w[k,c',r,s]
///                  + bias[k] + z[n,k,p,q]),  g = k / (K / groups).
/// Sizes are in elements. Bottom and right padding follow from p and q (see pad_bottom) and may be negative, so two
/// spellings of one convolution compare equal. conv1d is h = r = p = 1. c / groups = 1 is depthwise.
/// A ConvProblem obtained from parse() or validated() satisfies every rule that validate() lists.
struct ConvProblem {
  std::int64_t n = 1, c = 1, h = 1, w = 1;  ///< input: batch, channels, rows, columns
  std::int64_t k = 1, groups = 1;           ///< output channels, groups; groups divides c and k
  std::int64_t r = 1, s = 1;                ///< kernel rows, columns
  std::int64_t p = 1, q = 1;                ///< output rows, columns
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_top = 0, pad_left = 0;
  std::int64_t dil_h = 1, dil_w = 1;  ///< 1 = dense (benchdnn's text form counts from 0)
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  WeightLayout weight_layout = WeightLayout::oihw;
  Bias bias = Bias::none;
  Activation activation = Activation::none;
  float alpha = 0.0F, beta = 0.0F;  ///< clip bounds, or leaky slope in alpha; 0 where unused
  bool residual = false;            ///< a tensor z of y's shape, dtype and layout is added
  std::int32_t align = 16;  ///< alignment class: the largest of 16, 8, 4, 2 (bytes) that divides x, w, y, z addresses

  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;

  std::int64_t channels_per_group() const { return c / groups; }
  std::int64_t multiplier() const { return k / groups; }  ///< output channels a group
  bool depthwise() const { return c == groups; }
  std::int64_t taps() const { return r * s; }
  std::int64_t pad_bottom() const { return (p - 1) * stride_h + (r - 1) * dil_h + 1 - h - pad_top; }
  std::int64_t pad_right() const { return (q - 1) * stride_w + (s - 1) * dil_w + 1 - w - pad_left; }
  bool empty() const { return n == 0; }  ///< legal; nothing to compute
  std::int64_t x_elements() const { return n * c * h * w; }
  std::int64_t w_elements() const { return k * channels_per_group() * r * s; }
  std::int64_t y_elements() const { return n * k * p * q; }
  /// Bytes a perfect kernel moves: x, w, bias, z read once, y written once.
  std::int64_t min_bytes() const;
  std::int64_t macs() const;         ///< multiply-adds, padding taps counted
  bool needs_64bit_offsets() const;  ///< an element offset of x or y (with a halo's slack) exceeds int32

  /// The canonical text: benchdnn descriptor, then `dt=`, `tag=` and every non-default attribute as `key=value`,
  /// separated by one space. parse(to_string(p)) == p.
  std::string to_string() const;
  /// Only the benchdnn descriptor part.
  std::string descriptor() const;

  /// Every field as 64-bit words in a fixed order: the hash and the plan table's key. Floats by bit pattern.
  static constexpr std::size_t key_words = 24;
  std::array<std::int64_t, key_words> key() const;
  Digest digest() const;
  /// The same problem with n replaced by its bucket (1, 2, 4, ... next power of two, at most 256): decision keys use
  /// it.
  ConvProblem batch_bucket() const;
};

/// The rules, in order: sizes non-negative and below 2^31 each (n below 2^40); products below 2^62 computed without
/// overflow; c, k, groups, r, s, strides, dilations positive; groups divides c and k; p and q at least 1 and consistent
/// with stride, pads and dilation (effective kernel fits in the padded input; pads smaller than the effective kernel on
/// both sides); align one of 2, 4, 8, 16 and at least size_of(dtype); activation parameters finite and in order. The
/// message names the field, its value, and what would be right.
Status validate(const ConvProblem&);

/// Fills p and q from symmetric-or-not pads by the usual formula floor((h + top + bottom - eff) / stride) + 1.
Result<ConvProblem> with_output_size(ConvProblem, std::int64_t pad_bottom, std::int64_t pad_right);

/// Defaults for what a text does not say.
struct ParseDefaults {
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
};

/// Parses a benchdnn convolution descriptor as benchdnn reads it (`g32mb1ic32ih112oc32oh112kh3ph1`; missing width =
/// height, missing output computed, missing pad computed from the output, dilation from 0), optionally followed by
/// `key=value` tokens (dt, tag, wtag, bias, act, alpha, beta, z, align). benchdnn's `_n"name"` suffix is accepted and
/// dropped.
Result<ConvProblem> parse(std::string_view text, ParseDefaults = {});

}  // namespace sl

template <>
struct std::hash<sl::ConvProblem> {
  std::size_t operator()(const sl::ConvProblem& p) const noexcept;
};
