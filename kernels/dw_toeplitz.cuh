// dw_toeplitz: depthwise NCHW on the matrix unit, a plane as one vector (common/toeplitz.cuh). Planes are read and
// written as they lie in memory, whatever the length of a row.
#pragma once

#include "common/toeplitz.cuh"

namespace sl {

/// Runs of up to RUN elements of each image: move(image, at) for
/// each vector of UNIT elements, a warp an image.
template <class Cfg, int RUN, int UNIT, class Move>
SL_DEVICE void for_vectors(int images, int length, const Move& move) {
  SL_UNROLL_BY(2)
  for (int image = thread_id() / 32; image < images; image += Cfg::THREADS / 32) {
    SL_UNROLL
    for (int turn = 0; turn < (RUN / UNIT + 31) / 32; ++turn) {
      const int at = (turn * 32 + thread_id() % 32) * UNIT;
      if (at < length) move(image, at);
    }
  }
}

/// Cfg: as common/toeplitz.cuh has it; COPY, FLUSH = elements of a copy in and out. div[0] = channel blocks, run
/// fastest; aux[0] = times that many images that a block works through.
template <class Cfg>
SL_DEVICE void dw_toeplitz(const SlParams& p) {
  using I = Index<Cfg>;
  using M = PlaneMatrix<Cfg>;
  using Tables = MatrixTables<Cfg>;
  constexpr int IMAGES = 16 * Cfg::GROUPS, CHANNELS = Cfg::CHANNELS, X = M::X, Y = M::Y;
  SL_DYNAMIC_SHARED(unsigned, xs);
  unsigned* const ys = xs + IMAGES * Cfg::X_PITCH;
  unsigned* const columns = ys + IMAGES * Cfg::Y_PITCH;
  unsigned* const tables = columns + Tables::COLUMNS;

  I rest = static_cast<I>(block_id());
  const I c0 = take(rest, p.div[0]) * CHANNELS, channels_left = static_cast<I>(p.c) - c0;
  const int channels = channels_left < CHANNELS ? static_cast<int>(channels_left) : CHANNELS;
  const auto fetch = [&](I n0) {
    const int images = p.n - n0 < IMAGES ? static_cast<int>(p.n - n0) : IMAGES;
    const auto* const x = static_cast<const Bits<Cfg>*>(p.x) + (n0 * static_cast<I>(p.c) + c0) * X;
    for_vectors<Cfg, CHANNELS * X, Cfg::COPY>(IMAGES, channels * X, [&](int image, int at) {
      const I from = (image < images ? image : 0) * (static_cast<I>(p.c) * X) + at;
      copy_async<2 * Cfg::COPY>(xs + image * Cfg::X_PITCH + at / 2, x + from, image < images);
    });
    copy_async_commit();
  };
  I n0 = rest * static_cast<I>(p.aux[0]) * IMAGES;
  const I end =
      n0 + static_cast<I>(p.aux[0]) * IMAGES < p.n ? n0 + static_cast<I>(p.aux[0]) * IMAGES : static_cast<I>(p.n);
  fetch(n0);
  {  // while the planes are on their way: the tables
    Bits<Cfg> held[Tables::TURNS];
    Tables::load(held, p, c0, channels);
    Tables::clear(tables, columns);
    barrier();
    Tables::fill(tables, held);
  }
  const int warp = thread_id() / 32, channel = warp % CHANNELS, part = warp / CHANNELS;
  for (; n0 < end; n0 += IMAGES) {
    copy_async_wait<0>();
    barrier();
    const int images = p.n - n0 < IMAGES ? static_cast<int>(p.n - n0) : IMAGES;
    if (channel < channels) multiply_planes<Cfg>(p, {c0, n0, images, xs, ys, tables, columns}, channel, part);
    barrier();
    if (n0 + IMAGES < end) fetch(n0 + IMAGES);
    auto* const y = static_cast<Bits<Cfg>*>(p.y) + (n0 * static_cast<I>(p.k) + c0) * Y;
    for_vectors<Cfg, CHANNELS * Y, Cfg::FLUSH>(images, channels * Y, [&](int image, int at) {
      store_raw<2 * Cfg::FLUSH>(
          y + image * (static_cast<I>(p.k) * Y) + at,
          load_raw<2 * Cfg::FLUSH, false>(reinterpret_cast<const Bits<Cfg>*>(ys + image * Cfg::Y_PITCH) + at));
    });
  }
}

}  // namespace sl
