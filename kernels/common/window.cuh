// One input row of a sliding window, loaded as raw bytes (so that the next row can be on its way while this one is
// used) and then widened. COLS outputs along the row need SPAN input columns.
#pragma once

#include "common/conv.cuh"

namespace sl {

template <class Cfg>
struct RowWindow {
  static constexpr int SPAN = (Cfg::COLS - 1) * Cfg::STRIDE_W + Cfg::S;

  /// Whether some output reads window column i (not where the stride leaps over it).
  SL_DEVICE static constexpr bool used(int i) { return Cfg::STRIDE_W <= Cfg::S || i % Cfg::STRIDE_W < Cfg::S; }
};

/// NHWC: a window column is VEC channels of one pixel.
template <class Cfg, int LAYOUT = Cfg::LAYOUT>
struct WindowRow {
  static constexpr int BYTES = Cfg::VEC * static_cast<int>(sizeof(Bits<Cfg>));
  static constexpr int CHANNELS = Cfg::VEC;
  using Window = RowWindow<Cfg>;
  Raw<BYTES> raw[Window::SPAN];

  /// `first` = input column of window column 0; what lies outside the input is 0.
  SL_DEVICE void load(const SlParams& p, const Bits<Cfg>* x, int h, int first) {
    const bool row_inside = inside(h, static_cast<int>(p.h));
    SL_UNROLL
    for (int i = 0; i < Window::SPAN; ++i) {
      raw[i] = zero_raw<BYTES>();
      if (Window::used(i) && row_inside && inside(first + i, static_cast<int>(p.w))) {
        raw[i] = load_raw<BYTES, true>(x + pixel_offset<Cfg>(p, h, first + i));
      }
    }
  }

  SL_DEVICE float value(int i, int channel) const { return element<Cfg>(raw[i], channel); }
};

/// NCHW: vectors of VEC columns, aligned because VEC divides the row length and LEAD = -pad_left mod VEC is compiled
/// in: each vector lies wholly inside the row or wholly outside.
template <class Cfg>
struct WindowRow<Cfg, kNchw> {
  static constexpr int BYTES = Cfg::VEC * static_cast<int>(sizeof(Bits<Cfg>));
  static constexpr int CHANNELS = 1;
  using Window = RowWindow<Cfg>;
  static constexpr int VECTORS = (Cfg::LEAD + Window::SPAN + Cfg::VEC - 1) / Cfg::VEC;
  Raw<BYTES> raw[VECTORS];

  SL_DEVICE void load(const SlParams& p, const Bits<Cfg>* x, int h, int first) {
    const bool row_inside = inside(h, static_cast<int>(p.h));
    const int start = first - Cfg::LEAD;
    SL_UNROLL
    for (int i = 0; i < VECTORS; ++i) {
      raw[i] = zero_raw<BYTES>();
      if (row_inside && inside(start + i * Cfg::VEC, static_cast<int>(p.w))) {
        raw[i] = load_raw<BYTES, true>(x + pixel_offset<Cfg>(p, h, start + i * Cfg::VEC));
      }
    }
  }

  SL_DEVICE float value(int i, int) const {
    return element<Cfg>(raw[(Cfg::LEAD + i) / Cfg::VEC], (Cfg::LEAD + i) % Cfg::VEC);
  }
};

}  // namespace sl
