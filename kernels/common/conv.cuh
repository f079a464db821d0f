// Where things are: offsets in x, y and w, and the decode of a work number into a place in the output.
#pragma once

#include "common/dtype.cuh"
#include "common/epilogue.cuh"
#include "common/index.cuh"

namespace sl {

enum { kNchw = 0, kNhwc = 1 };  // the order of sl::Layout
enum { kOihw = 0, kOhwi = 1 };  // the order of sl::WeightLayout

/// Offset of pixel (h, w) inside one image (NHWC) or plane (NCHW).
template <class Cfg>
SL_DEVICE Index<Cfg> pixel_offset(const SlParams& p, int h, int w) {
  const Index<Cfg> pixel = static_cast<Index<Cfg>>(h) * static_cast<Index<Cfg>>(p.w) + w;
  if constexpr (Cfg::LAYOUT == kNhwc) return pixel * static_cast<Index<Cfg>>(p.c);
  return pixel;
}

/// Start of x[n, c, 0, 0]; pixel_offset adds to it.
template <class Cfg>
SL_DEVICE const Bits<Cfg>* x_at(const SlParams& p, Index<Cfg> n, Index<Cfg> c) {
  using I = Index<Cfg>;
  const auto* x = static_cast<const Bits<Cfg>*>(p.x);
  if constexpr (Cfg::LAYOUT == kNhwc) {
    return x + (n * static_cast<I>(p.h) * static_cast<I>(p.w) * static_cast<I>(p.c) + c);
  } else {
    return x + (n * static_cast<I>(p.c) + c) * static_cast<I>(p.h) * static_cast<I>(p.w);
  }
}

template <class Cfg>
SL_DEVICE Index<Cfg> y_offset(const SlParams& p, Index<Cfg> n, Index<Cfg> k, Index<Cfg> row, Index<Cfg> column) {
  using I = Index<Cfg>;
  if constexpr (Cfg::LAYOUT == kNhwc) {
    return ((n * static_cast<I>(p.p) + row) * static_cast<I>(p.q) + column) * static_cast<I>(p.k) + k;
  } else {
    return ((n * static_cast<I>(p.k) + k) * static_cast<I>(p.p) + row) * static_cast<I>(p.q) + column;
  }
}

/// Offset of w[k, c, r, s], c within the group.
template <class Cfg>
SL_DEVICE long long w_offset(long long k, int c, int r, int s) {
  if constexpr (Cfg::WLAYOUT == kOhwi) {
    return ((k * Cfg::R + r) * Cfg::S + s) * Cfg::CPG + c;
  } else {
    return ((k * Cfg::CPG + c) * Cfg::R + r) * Cfg::S + s;
  }
}

/// One work item of the thread-per-tile schedules: a block of channels x a tile of columns x a strip of rows of image
/// n. Neighbouring items are neighbours in memory: channels run fastest in NHWC, columns in NCHW.
template <class I>
struct Place {
  I n, channel_block, tile, strip;
};

/// div[0] = channel blocks, div[1] = column tiles, div[2] = row strips.
template <class Cfg>
SL_DEVICE Place<Index<Cfg>> locate(long long item, const SlParams& p) {
  Place<Index<Cfg>> place;
  Index<Cfg> rest = static_cast<Index<Cfg>>(item);
  if constexpr (Cfg::LAYOUT == kNhwc) {
    place.channel_block = take(rest, p.div[0]);
    place.tile = take(rest, p.div[1]);
    place.strip = take(rest, p.div[2]);
  } else {
    place.tile = take(rest, p.div[1]);
    place.strip = take(rest, p.div[2]);
    place.channel_block = take(rest, p.div[0]);
  }
  place.n = rest;
  return place;
}

}  // namespace sl
