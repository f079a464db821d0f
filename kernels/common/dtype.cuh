// Element types and vector access. Arithmetic is in float; memory holds f32, f16 or bf16 bits.
#pragma once

#include "common/platform.cuh"

namespace sl {

enum { kF32 = 0, kF16 = 1, kBF16 = 2 };  // the order of sl::DType

template <int DTYPE>
struct Element;
template <>
struct Element<kF32> {
  using Bits = unsigned;
  SL_DEVICE static float widen(unsigned bits) { return float_from_bits(bits); }
  SL_DEVICE static unsigned narrow(float value) { return float_bits(value); }
};
template <>
struct Element<kF16> {
  using Bits = unsigned short;
  SL_DEVICE static float widen(unsigned bits) { return half_bits_to_float(static_cast<unsigned short>(bits)); }
  SL_DEVICE static unsigned narrow(float value) { return float_to_half_bits(value); }
  SL_DEVICE static unsigned narrow2(float low, float high) { return floats_to_half2_bits(low, high); }
};
template <>
struct Element<kBF16> {
  using Bits = unsigned short;
  SL_DEVICE static float widen(unsigned bits) { return bfloat_bits_to_float(static_cast<unsigned short>(bits)); }
  SL_DEVICE static unsigned narrow(float value) { return float_to_bfloat_bits(value); }
  SL_DEVICE static unsigned narrow2(float low, float high) { return floats_to_bfloat2_bits(low, high); }
};

/// The memory element of a configuration: unsigned (f32 bits) or unsigned short.
template <class Cfg>
using Bits = typename Element<Cfg::DTYPE>::Bits;

struct alignas(8) Word2 {
  unsigned x, y;
};
struct alignas(16) Word4 {
  unsigned x, y, z, w;
};

/// What one load or store instruction moves: 2, 4, 8 or 16 bytes, as 32-bit words in registers.
template <int BYTES>
struct Raw {
  static constexpr int words = BYTES < 4 ? 1 : BYTES / 4;
  unsigned word[words];
};

template <int BYTES>
SL_DEVICE Raw<BYTES> zero_raw() {
  Raw<BYTES> raw;
  SL_UNROLL
  for (int i = 0; i < Raw<BYTES>::words; ++i) raw.word[i] = 0;
  return raw;
}

/// `from` must be aligned to BYTES. READONLY: no thread of the kernel writes there (x, weights, bias; never z, which
/// may be y).
template <int BYTES, bool READONLY>
SL_DEVICE Raw<BYTES> load_raw(const void* from) {
  Raw<BYTES> raw;
  if constexpr (BYTES == 2) {
    const auto* p = static_cast<const unsigned short*>(from);
    raw.word[0] = READONLY ? load_readonly(p) : *p;
  } else if constexpr (BYTES == 4) {
    const auto* p = static_cast<const unsigned*>(from);
    raw.word[0] = READONLY ? load_readonly(p) : *p;
  } else if constexpr (BYTES == 8) {
    const auto* p = static_cast<const Word2*>(from);
    const Word2 v = READONLY ? load_readonly(p) : *p;
    raw.word[0] = v.x, raw.word[1] = v.y;
  } else {
    const auto* p = static_cast<const Word4*>(from);
    const Word4 v = READONLY ? load_readonly(p) : *p;
    raw.word[0] = v.x, raw.word[1] = v.y, raw.word[2] = v.z, raw.word[3] = v.w;
  }
  return raw;
}

template <int BYTES>
SL_DEVICE void store_raw(void* to, const Raw<BYTES>& raw) {
  if constexpr (BYTES == 2) {
    *static_cast<unsigned short*>(to) = static_cast<unsigned short>(raw.word[0]);
  } else if constexpr (BYTES == 4) {
    *static_cast<unsigned*>(to) = raw.word[0];
  } else if constexpr (BYTES == 8) {
    *static_cast<Word2*>(to) = Word2{raw.word[0], raw.word[1]};
  } else {
    *static_cast<Word4*>(to) = Word4{raw.word[0], raw.word[1], raw.word[2], raw.word[3]};
  }
}

/// Element i of raw bytes as float; i must be a constant after unrolling.
template <class Cfg, int BYTES>
SL_DEVICE float element(const Raw<BYTES>& raw, int i) {
  if constexpr (sizeof(Bits<Cfg>) == 4) {
    return Element<Cfg::DTYPE>::widen(raw.word[i]);
  } else {
    return Element<Cfg::DTYPE>::widen((raw.word[i / 2] >> (16 * (i % 2))) & 0xffffU);
  }
}

template <class Cfg>
SL_DEVICE float load_one(const Bits<Cfg>* from) {
  return Element<Cfg::DTYPE>::widen(load_readonly(from));
}

/// Bytes of one access to N consecutive elements: the whole, or 16 at a time.
template <class Cfg, int N>
SL_DEVICE constexpr int access_bytes() {
  return N * static_cast<int>(sizeof(Bits<Cfg>)) > 16 ? 16 : N * static_cast<int>(sizeof(Bits<Cfg>));
}

/// N consecutive elements (N a power of two) as floats; `from` aligned to the smaller of 16 bytes and the whole.
template <class Cfg, int N, bool READONLY = true>
SL_DEVICE void load_floats(float (&to)[N], const Bits<Cfg>* from) {
  constexpr int bytes = access_bytes<Cfg, N>();
  constexpr int step = bytes / static_cast<int>(sizeof(Bits<Cfg>));
  SL_UNROLL
  for (int i = 0; i < N; i += step) {
    const Raw<bytes> raw = load_raw<bytes, READONLY>(from + i);
    SL_UNROLL
    for (int j = 0; j < step; ++j) to[i + j] = element<Cfg>(raw, j);
  }
}

template <class Cfg, int N>
SL_DEVICE void store_floats(Bits<Cfg>* to, const float (&from)[N]) {
  constexpr int bytes = access_bytes<Cfg, N>();
  constexpr int step = bytes / static_cast<int>(sizeof(Bits<Cfg>));
  SL_UNROLL
  for (int i = 0; i < N; i += step) {
    Raw<bytes> raw;
    SL_UNROLL
    for (int j = 0; j < Raw<bytes>::words; ++j) {
      if constexpr (sizeof(Bits<Cfg>) == 4 || step == 1) {
        raw.word[j] = Element<Cfg::DTYPE>::narrow(from[i + j]);
      } else {
        raw.word[j] = Element<Cfg::DTYPE>::narrow2(from[i + 2 * j], from[i + 2 * j + 1]);
      }
    }
    store_raw<bytes>(to + i, raw);
  }
}

}  // namespace sl
