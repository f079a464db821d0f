// The short way from a caller's struct to the plan table's key. It says no wherever read_call() would have anything to
// say; then read_call() says it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dispatch/plan_key.hpp"
#include "dispatch/tensors.hpp"
#include "sluice/sluice.h"

namespace sl::capi {

struct PlainCall {
  PlanTable::Key key;
  Tensors tensors;
};

// What is wrong gathers in words that must end up 0, so that nothing is branched on but their sum. They are values,
// never members or references, or each would go through memory. All arithmetic is unsigned: a garbage field may wrap
// around, but overflows nothing.
//
// What has to be right is what the key does not say (that the tensors agree with each other, are packed and there), and
// that every field fits its place in the key. A field that fits and is not legal, a size of 0 or a dtype of 3, needs no
// check: the table has no such key, and so it is read_call() that meets it.
namespace plain {

using Word = std::uint64_t;
using Dims = std::array<Word, 4>;

inline Word word(std::int64_t value) { return static_cast<Word>(value); }
inline Word bits(std::int32_t value) { return static_cast<std::uint32_t>(value); }
inline Word when(bool wrong) { return static_cast<Word>(wrong); }

inline Word type_and_rank(const sluice_tensor& tensor) {
  static_assert(offsetof(sluice_tensor, ndim) == offsetof(sluice_tensor, dtype) + 4);
  Word both;
  std::memcpy(&both, &tensor.dtype, sizeof both);
  return both;
}

/// n c h w, with rows of 1 where there are none.
template <bool conv1d>
Dims spread(const std::int64_t* v, Word rows) {
  if constexpr (conv1d) return {word(v[0]), word(v[1]), rows, word(v[2])};
  return {word(v[0]), word(v[1]), word(v[2]), word(v[3])};
}

/// The far pad that the output size implies, taken from the stated one: less than the stride where they agree.
inline Word slack(Word in, Word taps, Word out, Word stride, Word dilation, Word near, Word far) {
  return far + in + near - 1 - (out - 1) * stride - (taps - 1) * dilation;
}

/// 0 where the strides are those of a packed tensor.
template <bool conv1d>
Word strided(const sluice_tensor& tensor, bool channels_last) {
  if (tensor.strides == nullptr) return 0;
  const Dims d = spread<conv1d>(tensor.dims, 1), s = spread<conv1d>(tensor.strides, 0);
  const Word c = channels_last ? 1 : d[2] * d[3], w = channels_last ? d[1] : 1, h = d[3] * w;
  const auto off = [](Word dim, Word stride, Word expected) { return dim != 1 ? stride ^ expected : 0; };
  return off(d[0], s[0], d[1] * d[2] * d[3]) | off(d[1], s[1], c) | off(d[2], s[2], h) | off(d[3], s[3], w);
}

inline Word element_mask(std::int32_t dtype) { return dtype == SLUICE_F32 ? 3 : 1; }

inline bool present(const sluice_tensor& tensor) { return (bits(tensor.ndim) | number(tensor.data)) != 0; }

inline Word bias_faults(const sluice_conv2d_args& a) {
  const sluice_tensor& bias = a.bias;
  if (bias.ndim != 1 || bias.dims == nullptr || bias.data == nullptr) return 1;
  const bool step = bias.strides != nullptr && bias.strides[0] != 1 && bias.dims[0] != 1;
  return when(bias.dtype != a.x.dtype && bias.dtype != SLUICE_F32) | when(bias.dims[0] != a.w.dims[0]) | when(step) |
         (number(bias.data) & element_mask(bias.dtype));
}

template <bool conv1d>
Word residual_faults(const sluice_conv2d_args& a) {
  const sluice_tensor& z = a.z;
  if (type_and_rank(z) != type_and_rank(a.x) || z.dims == nullptr || z.data == nullptr) return 1;
  const Dims d = spread<conv1d>(z.dims, 1), y = spread<conv1d>(a.y.dims, 1);
  return (d[0] ^ y[0]) | (d[1] ^ y[1]) | (d[2] ^ y[2]) | (d[3] ^ y[3]) | strided<conv1d>(z, a.layout == SLUICE_NHWC);
}

template <bool conv1d>
[[gnu::hot]] bool read(const sluice_conv2d_args& a, PlainCall& out) {
  const Word kind = type_and_rank(a.x);
  // No address has its highest bit, so one that has after subtracting 1 was NULL.
  const Word missing = (number(a.x.data) - 1) | (number(a.w.data) - 1) | (number(a.y.data) - 1) |
                       (number(a.x.dims) - 1) | (number(a.w.dims) - 1) | (number(a.y.dims) - 1);
  Word wrong = (kind ^ type_and_rank(a.w)) | (kind ^ type_and_rank(a.y)) | missing >> 63 |
               (bits(a.x.dtype) | bits(a.layout) | bits(a.weight_layout) | bits(a.activation)) >> 4 |
               bits(a.regular) >> 1;
  if (wrong != 0) return false;

  const Dims x = spread<conv1d>(a.x.dims, 1), w = spread<conv1d>(a.w.dims, 1), y = spread<conv1d>(a.y.dims, 1);
  KeySizes<Word> v{x[0], x[1], x[2], x[3], w[0], word(a.groups), w[2], w[3], y[2], y[3], 1, 0, 0, 0, 1, 0, 0.0F, 0.0F};
  constexpr Word pad_floor = Word{1} << 31;  // a far pad is from -2^31
  v.stride_w = word(a.stride[1]), v.dil_w = word(a.dilation[1]), v.pad_left = word(a.pad[1]);
  Word large = v.c | v.h | v.w | v.k | v.groups | v.r | v.s | v.p | v.q | w[1] | v.stride_w | v.dil_w | v.pad_left |
               (word(a.pad[3]) + pad_floor);
  if constexpr (!conv1d) {
    v.stride_h = word(a.stride[0]), v.dil_h = word(a.dilation[0]), v.pad_top = word(a.pad[0]);
    large |= v.stride_h | v.dil_h | v.pad_top | (word(a.pad[2]) + pad_floor);
    wrong |= when(slack(v.h, v.r, v.p, v.stride_h, v.dil_h, v.pad_top, word(a.pad[2])) >= v.stride_h);
  }
  wrong |= when(slack(v.w, v.s, v.q, v.stride_w, v.dil_w, v.pad_left, word(a.pad[3])) >= v.stride_w);
  wrong |= (w[1] * v.groups ^ v.c) | (y[0] ^ v.n) | (y[1] ^ v.k) | large >> 32;
  if ((number(a.x.strides) | number(a.w.strides) | number(a.y.strides)) != 0) {
    const bool last = a.layout == SLUICE_NHWC, weight_last = a.weight_layout == SLUICE_OHWI;
    wrong |= strided<conv1d>(a.x, last) | strided<conv1d>(a.w, weight_last) | strided<conv1d>(a.y, last);
  }
  Bias bias = Bias::none;
  if (present(a.bias)) {
    wrong |= bias_faults(a);
    bias = a.bias.dtype == a.x.dtype ? Bias::same : Bias::f32;
  }
  const bool residual = present(a.z);
  if (residual) wrong |= residual_faults<conv1d>(a);
  const auto activation = static_cast<Activation>(a.activation);
  if (activation == Activation::clip) v.alpha = a.alpha, v.beta = a.beta;
  if (activation == Activation::leaky_relu) v.alpha = a.alpha;

  out.tensors = {a.x.data, a.w.data, a.bias.data, a.z.data, a.y.data};
  const Word addresses = number(a.x.data) | number(a.w.data) | number(a.z.data) | number(a.y.data);
  if ((wrong | (addresses & element_mask(a.x.dtype))) != 0) return false;
  out.key = pack_key(
      v, {static_cast<DType>(a.x.dtype), static_cast<Layout>(a.layout), static_cast<WeightLayout>(a.weight_layout),
          bias, activation, residual, a.regular == 1 ? Regular::yes : Regular::no, alignment_class(out.tensors)});
  return true;
}

}  // namespace plain

/// False: not plain, read it in full. Whether y overlaps another tensor is not looked at.
inline bool read_plain(const sluice_conv2d_args& args, PlainCall& out) {
  if (args.size != sizeof(sluice_conv2d_args)) return false;
  if (args.x.ndim == 4) [[likely]]
    return plain::read<false>(args, out);
  return args.x.ndim == 3 && plain::read<true>(args, out);
}

}  // namespace sl::capi
