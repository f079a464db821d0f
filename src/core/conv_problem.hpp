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
/// A ConvProblem obtained from parse() or validated() satisfies every rule that validate() lists and is normalised.
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

  /// Equal keys: two spellings of one convolution (see normalised()) are equal.
  friend bool operator==(const ConvProblem& a, const ConvProblem& b) { return a.key() == b.key(); }

  std::int64_t channels_per_group() const { return c / groups; }
  std::int64_t multiplier() const { return k / groups; }  ///< output channels a group
  bool depthwise() const { return c == groups; }
  std::int64_t taps() const { return r * s; }
  std::int64_t effective_r() const { return (r - 1) * dil_h + 1; }  ///< rows from the first to the last tap
  std::int64_t effective_s() const { return (s - 1) * dil_w + 1; }
  std::int64_t pad_bottom() const { return (p - 1) * stride_h + effective_r() - h - pad_top; }
  std::int64_t pad_right() const { return (q - 1) * stride_w + effective_s() - w - pad_left; }
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

  /// One spelling of each convolution: an f32 bias beside f32 tensors is `same`, a dimension with one tap has dilation
  /// 1, -0 is 0. Done by parse(), validated(), key() and to_string().
  ConvProblem normalised() const;
  /// Every field, normalised, as 64-bit words in a fixed order: the hash and the plan table's key. Floats by bit
  /// pattern, alpha and beta in one word.
  static constexpr std::size_t key_words = 24;
  std::array<std::int64_t, key_words> key() const;
  Digest digest() const;
  /// The same problem with n replaced by its bucket (1, 2, 4, ... next power of two, at most 256): decision keys use
  /// it.
  ConvProblem batch_bucket() const;
};

/// The rules, in order; the message names the field, its value, and what would be right, and ends with the call.
///  1. Every enumerator is a known one.
///  2. 0 <= n < 2^40; every other size, stride and dilation from 1, and top and left pad from 0, each below 2^31.
///  3. groups divides c and k.
///  4. An axis' padded extent, (p - 1) * stride + effective kernel, is below 2^31, and so is h + pad_top.
///  5. -stride < pad_bottom; the same for right: no output that the near pad leaves room for is missing. Pads may
///     reach the effective kernel and beyond it: windows that lie wholly in the padding add up to 0.
///  6. min_bytes() and macs() are below 2^62 (computed without overflow).
///  7. align is 2, 4, 8 or 16 and at least size_of(dtype).
///  8. alpha and beta are 0 where the activation does not use them. leaky_relu: alpha is finite. clip: alpha <= beta,
///     either may be infinite (a bound of that side only).
Status validate(const ConvProblem&);

/// The normalised problem, or why it is not valid.
Result<ConvProblem> validated(const ConvProblem&);

/// Fills p and q from pads that need not be symmetric: floor((h + top + bottom - effective kernel) / stride) + 1.
/// Checks what that needs (ranges of the spatial fields, the kernel fits in the padded input), not the rest of
/// validate().
Result<ConvProblem> with_output_size(ConvProblem, std::int64_t pad_bottom, std::int64_t pad_right);

/// Defaults for what a text does not say.
struct ParseDefaults {
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
};

/// Parses a benchdnn convolution descriptor as benchdnn reads it (`g32mb1ic32ih112oc32oh112kh3ph1`): tokens in any
/// order, the last of a repeated one counts, `_` ignored, mb 2 where not said, dilation from 0; no width token but
/// (perhaps) sw1 or pw0 = width as height; no height token = conv1d; missing output computed from the pad (0 where not
/// said), missing pad from the output. Two readings differ, because benchdnn's would not run: the kernel must fit in
/// the padded input (benchdnn's division truncates), and a deduced pad is never negative (the slack goes to the
/// bottom). A `_n"name"` suffix is accepted and dropped. 3-D descriptors are refused. Then, separated by blanks,
/// `key=value` tokens: dt, tag, wtag, bias, act, alpha, beta, z (0 or 1), align, each at most once. An error names the
/// token, its position (characters from 1) and what would be right.
Result<ConvProblem> parse(std::string_view text, ParseDefaults = {});

}  // namespace sl

template <>
struct std::hash<sl::ConvProblem> {
  std::size_t operator()(const sl::ConvProblem& p) const noexcept;
};
