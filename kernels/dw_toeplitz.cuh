// dw_toeplitz: depthwise NCHW on the matrix unit, a plane as one vector. Planes are read and written as they lie in
// memory, whatever the length of a row.
//
// The outputs of a plane are its input times one matrix (Toeplitz but for the ends of rows), the same for every image:
// 16 images are the rows of A, the input's pixels its columns.
//
// Cfg: DTYPE BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* MULT (1) CPG WLAYOUT LAYOUT; H W P Q PAD_TOP PAD_LEFT;
// CHANNELS x 16 GROUPS images a block, PARTS warps a channel; X_PITCH, Y_PITCH = 32-bit words from image to image. The
// column of the matrix that belongs to column q of the output is read from a table of LENGTH elements, LOW of them
// before the first tap.
#pragma once

#include "common/exact.cuh"

namespace sl {

/// Vectors of a block lie side by side, so one begins up to X_LATE (Y_LATE) elements late in its first chunk of 8.
/// CHUNKS and TILES: chunks of a plane's input and output.
template <class Cfg>
struct PlaneMatrix {
  static constexpr int X = Cfg::H * Cfg::W, Y = Cfg::P * Cfg::Q, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W;
  static constexpr int late(int size) { return size % 8 == 0 ? 0 : size % 4 == 0 ? 4 : size % 2 == 0 ? 6 : 7; }
  static constexpr int X_LATE = late(X), Y_LATE = late(Y);
  static constexpr int CHUNKS = (X + X_LATE + 7) / 8, TILES = (Y + Y_LATE + 7) / 8;
  static constexpr bool SAME = SH == 1 && SW == 1 && Cfg::P == Cfg::H && Cfg::Q == Cfg::W;
  static constexpr int REACH = (Cfg::R - 1) * Cfg::DIL_H * Cfg::W + (Cfg::S - 1) * Cfg::DIL_W;

  /// The pixel under the first tap of output n.
  SL_DEVICE static constexpr int origin(int n) {
    return (n / Cfg::Q * SH - Cfg::PAD_TOP) * Cfg::W + n % Cfg::Q * SW - Cfg::PAD_LEFT;
  }
  /// Whether some tap of tile j's outputs may be in chunk i, however late both begin.
  SL_DEVICE static constexpr bool used(int i, int j) {
    if (i >= CHUNKS || j >= TILES) return false;
    if (SAME) return 8 * (i - j) + 7 >= origin(0) && 8 * (i - j) - 7 <= origin(0) + REACH;
    const int first = 8 * j - Y_LATE > 0 ? 8 * j - Y_LATE : 0, last = 8 * j + 7 < Y ? 8 * j + 7 : Y - 1;
    return 8 * i + 7 >= lowest(first, last) && 8 * i - X_LATE <= highest(first, last) + REACH;
  }
  /// The chunks that tile j may use, from an even one on; a negative one or one beyond CHUNKS is none. Trying every
  /// chunk for every tile instead is what takes longest to compile.
  static constexpr int WINDOW = SAME ? (REACH + 14) / 8 + 4 : CHUNKS + 1;
  SL_DEVICE static constexpr int window(int j) {
    constexpr int BEFORE = 7 - origin(0), ROUND = (BEFORE + 15) / 16 * 16;  // keeps what is divided positive
    return SAME ? (8 * j + ROUND - BEFORE) / 16 * 2 - ROUND / 8 : 0;
  }
  /// Least and greatest origin of outputs first to last: a row of outputs may reach beyond where the next one begins.
  SL_DEVICE static constexpr int lowest(int first, int last) {
    const int next = (first / Cfg::Q + 1) * Cfg::Q;
    return next <= last && origin(next) < origin(first) ? origin(next) : origin(first);
  }
  SL_DEVICE static constexpr int highest(int first, int last) {
    const int before = last / Cfg::Q * Cfg::Q - 1;
    return before >= first && origin(before) > origin(last) ? origin(before) : origin(last);
  }
};

/// The tables of a block's channels: Q of each, each twice, the second copy one element ahead. Taps that would fall off
/// a row's ends are left out, so zeros are at the same places whatever the weights.
template <class Cfg>
struct MatrixTables {
  using M = PlaneMatrix<Cfg>;
  static constexpr int CHANNELS = Cfg::CHANNELS, TAPS = Cfg::R * Cfg::S, Q = Cfg::Q;
  static constexpr int TABLE = 2 * Cfg::LENGTH, VECTORS = (CHANNELS * Q * TABLE + 7) / 8;
  static constexpr int COLUMNS = 8 * M::TILES + 8;  // the first is output -8
  static constexpr int WEIGHTS = CHANNELS * TAPS, FILL = Cfg::THREADS / WEIGHTS;
  static constexpr int SPREAD = FILL < 1 ? 1 : FILL < Q ? FILL : Q;  // threads a weight
  static constexpr int TURNS = (WEIGHTS * SPREAD + Cfg::THREADS - 1) / Cfg::THREADS;

  /// This thread's weights of `channels` channels from c0 on.
  SL_DEVICE static void load(Bits<Cfg> (&held)[TURNS], const SlParams& p, Index<Cfg> c0, int channels) {
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      const int i = (thread_id() + turn * Cfg::THREADS) % WEIGHTS;
      held[turn] = 0;
      if (i < channels * TAPS) held[turn] = load_readonly(static_cast<const Bits<Cfg>*>(p.weight) + c0 * TAPS + i);
    }
  }
  /// Zeros, and where in its table each output's column begins.
  SL_DEVICE static void clear(unsigned* tables, unsigned* columns) {
    for (int i = thread_id(); i < VECTORS; i += Cfg::THREADS) clear_shared(Shared(tables + 4 * i));
    for (int i = thread_id(); i < COLUMNS; i += Cfg::THREADS) {
      const int n = i < 8 ? 0 : i - 8 < M::Y ? i - 8 : M::Y - 1;
      columns[i] = static_cast<unsigned>(n % Q * TABLE + Cfg::LOW - M::origin(n));
    }
  }
  /// Puts the weights into tables that were cleared.
  SL_DEVICE static void fill(unsigned* tables, const Bits<Cfg> (&held)[TURNS]) {
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      const int item = thread_id() + turn * Cfg::THREADS, weight = item % WEIGHTS;
      const int tap = weight % TAPS, r = tap / Cfg::S, s = tap % Cfg::S;
      auto* const table = reinterpret_cast<Bits<Cfg>*>(tables) + weight / TAPS * (Q * TABLE) +
                          (Cfg::LOW + r * (Cfg::DIL_H * Cfg::W) + s * Cfg::DIL_W);
      if (item >= WEIGHTS * SPREAD) continue;
      SL_UNROLL
      for (int i = 0; i < (Q + SPREAD - 1) / SPREAD; ++i) {
        const int q = item / WEIGHTS + i * SPREAD;
        if (q < Q && inside(q * Cfg::STRIDE_W - Cfg::PAD_LEFT + s * Cfg::DIL_W, Cfg::W)) {
          table[q * TABLE] = held[turn];
          table[q * TABLE + Cfg::LENGTH - 1] = held[turn];
        }
      }
    }
  }
};

/// What a block multiplies at once: `images` of its images, from n0 on, of the channels from c0 on.
template <class Cfg>
struct MatrixTurn {
  Index<Cfg> c0, n0;
  int images;
  unsigned *xs, *ys, *tables, *columns;
};

/// A warp's part of the outputs of one channel, into shared memory.
template <class Cfg>
SL_DEVICE void multiply_planes(const SlParams& p, const MatrixTurn<Cfg>& turn, int channel, int part) {
  using I = Index<Cfg>;
  using M = PlaneMatrix<Cfg>;
  constexpr int GROUPS = Cfg::GROUPS, Q = Cfg::Q, X = M::X, Y = M::Y;
  constexpr int LENGTH = Cfg::LENGTH, TABLE = 2 * LENGTH;
  constexpr int SHARE = (M::TILES + Cfg::PARTS - 1) / Cfg::PARTS;
  const int lane = thread_id() % 32, g = lane / 4, t = lane % 4;
  const int k = static_cast<int>(turn.c0) + channel;
  const float bias = bias_of<Cfg>(p, k);
  const int x_late = channel * X % 8, y_late = channel * Y % 8;
  const Shared table(turn.tables + channel * (Q * TABLE / 2)), column(turn.columns + (8 + g - y_late));
  const SharedRow rows(turn.xs + (lane % 16) * Cfg::X_PITCH + (channel * X - x_late) / 2 + lane / 16 * 4);
  unsigned* const out = turn.ys + g * Cfg::Y_PITCH + (channel * Y - y_late) / 2 + t;

  const auto value = [&](float sum, int image, int n) {
    if constexpr (Cfg::BIAS != kBiasNone) sum += bias;
    if constexpr (Cfg::RESIDUAL != 0) {
      const I at = ((turn.n0 + image) * static_cast<I>(p.k) + k) * Y + n;
      if (image < turn.images && inside(n, Y)) {
        sum += Element<Cfg::DTYPE>::widen(static_cast<const Bits<Cfg>*>(p.z)[at]);
      }
    }
    return activate<Cfg::ACT>(sum, p.alpha, p.beta);
  };
  float leak = 0.0F;  // NaN where a sum is not finite
  SL_UNROLL
  for (int mine = 0; mine < Cfg::PARTS; ++mine) {
    if (part != mine) continue;
    unsigned a[GROUPS][M::CHUNKS + 1][2];
    SL_UNROLL
    for (int i = 0; i < M::CHUNKS; i += 2) {
      bool needed = false;
      SL_UNROLL
      for (int j = mine * SHARE; j < (mine + 1) * SHARE; ++j) needed = needed || M::used(i, j) || M::used(i + 1, j);
      if (!needed) continue;
      unsigned both[GROUPS][4];
      SL_UNROLL
      for (int group = 0; group < GROUPS; ++group) {
        const SharedRow row = rows + group * (64 * Cfg::X_PITCH) + 16 * i;
        if (i + 1 < M::CHUNKS) {
          load_matrix(both[group], row);
        } else {
          unsigned one[2];
          load_matrix(one, row);
          both[group][0] = one[0], both[group][1] = one[1], both[group][2] = both[group][3] = 0;
        }
      }
      SL_UNROLL
      for (int e = 0; e < 2; ++e) {
        // What lies beside the plane in its first and last chunk belongs to others.
        unsigned mask = 0xffffffffU;
        if (8 * (i + e) < M::X_LATE || 8 * (i + e) + 7 >= X) {
          const int at = 8 * (i + e) + 2 * t - x_late;
          mask = (inside(at, X) ? 0xffffU : 0U) | (inside(at + 1, X) ? 0xffff0000U : 0U);
        }
        SL_UNROLL
        for (int group = 0; group < GROUPS; ++group) {
          a[group][i + e][0] = both[group][2 * e] & mask;
          a[group][i + e][1] = both[group][2 * e + 1] & mask;
        }
      }
    }
    // The words of a tile's columns are on their way while the tile before is multiplied.
    unsigned words[2][M::CHUNKS];
    const auto load = [&](unsigned(&to)[M::CHUNKS], int j) {
      if (j >= M::TILES || j >= (mine + 1) * SHARE) return;
      const int at = static_cast<int>(load_shared(column + 32 * j)) + 2 * t - x_late;
      const Shared b = table + 2 * (at + (at % 2 != 0 ? LENGTH - 1 : 0));
      SL_UNROLL
      for (int d = 0; d < M::WINDOW; ++d) {
        const int i = M::window(j) + d;
        if (i >= 0 && M::used(i, j)) to[i] = load_shared(b + 16 * i);
      }
    };
    load(words[mine * SHARE % 2], mine * SHARE);
    SL_UNROLL
    for (int j = mine * SHARE; j < (mine + 1) * SHARE; ++j) {
      if (j >= M::TILES) continue;
      load(words[(j + 1) % 2], j + 1);
      float sum[GROUPS][4];
      SL_UNROLL
      for (int i = 0; i < 4 * GROUPS; ++i) sum[i / 4][i % 4] = 0.0F;
      SL_UNROLL
      for (int d = 0; d < M::WINDOW; d += 2) {
        const int i = M::window(j) + d;
        if (i < 0 || i >= M::CHUNKS) continue;
        const unsigned low = words[j % 2][i], high = words[j % 2][i + 1 < M::CHUNKS ? i + 1 : i];
        SL_UNROLL
        for (int group = 0; group < GROUPS; ++group) {
          const auto& from = a[group];
          if (M::used(i, j) && M::used(i + 1, j)) {
            const unsigned both[4] = {from[i][0], from[i][1], from[i + 1][0], from[i + 1][1]};
            mma_k16<Cfg::DTYPE>(sum[group], both, low, high);
          } else if (M::used(i, j)) {
            mma_k8<Cfg::DTYPE>(sum[group], from[i], low);
          } else if (M::used(i + 1, j)) {
            mma_k8<Cfg::DTYPE>(sum[group], from[i + 1], high);
          }
        }
      }
      const int n = 8 * j + 2 * t - y_late;
      const bool whole = 8 * j >= M::Y_LATE && 8 * j + 7 < Y;  // a tile of this plane's outputs alone
      SL_UNROLL
      for (int e = 0; e < 2 * GROUPS; ++e) {
        const float first = sum[e / 2][e % 2 * 2], second = sum[e / 2][e % 2 * 2 + 1];
        leak = sl::fma(first, 0.0F, sl::fma(second, 0.0F, leak));
        const float pair[2] = {value(first, g + 8 * e, n), value(second, g + 8 * e, n + 1)};
        auto* const to = reinterpret_cast<Bits<Cfg>*>(out + 8 * e * Cfg::Y_PITCH + 4 * j);
        if (whole || (inside(n, Y) && inside(n + 1, Y))) {
          store_floats<Cfg, 2>(to, pair);
        } else if (inside(n, Y)) {
          to[0] = static_cast<Bits<Cfg>>(Element<Cfg::DTYPE>::narrow(pair[0]));
        } else if (inside(n + 1, Y)) {
          to[1] = static_cast<Bits<Cfg>>(Element<Cfg::DTYPE>::narrow(pair[1]));
        }
      }
    }
  }
  if (leak != leak) {  // rare: those of this lane's results that are NaN, again
    const int end = (part + 1) * SHARE < M::TILES ? (part + 1) * SHARE : M::TILES;
    SL_UNROLL_BY(1)
    for (int i = part * SHARE * 4 * GROUPS; i < end * 4 * GROUPS; ++i) {
      const int j = i / (4 * GROUPS), e = i / 2 % (2 * GROUPS), image = g + 8 * e;
      const int n = 8 * j + 2 * t + i % 2 - y_late;
      if (!inside(n, Y) || image >= turn.images) continue;
      auto& y = reinterpret_cast<Bits<Cfg>*>(out + 8 * e * Cfg::Y_PITCH + 4 * j)[i % 2];
      const float was = Element<Cfg::DTYPE>::widen(y);
      if (was == was) continue;
      const float exact = exact_sum<Cfg>(p, turn.n0 + image, k, n / Q, n % Q);
      y = static_cast<Bits<Cfg>>(Element<Cfg::DTYPE>::narrow(value(exact, image, n)));
    }
  }
}

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
