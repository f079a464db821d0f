// dw_plane: small planes, NCHW. Planes lie one after another, so a block fetches PLANES of them as one run of bytes,
// whatever their width; a thread computes a strip of rows of one plane, whole rows at a time, with the columns known to
// the compiler; the results leave as one run again.
#pragma once

#include "common/channel_weights.cuh"

namespace sl {

/// `count` elements to shared memory, BYTES at a time; what is left over one by one.
template <class Cfg, int BYTES>
SL_DEVICE void fetch_run(Bits<Cfg>* to, const Bits<Cfg>* from, int count) {
  constexpr int PER = BYTES / static_cast<int>(sizeof(Bits<Cfg>));
  const int copies = count / PER;
  SL_UNROLL_BY(4)
  for (int i = thread_id(); i < copies; i += Cfg::THREADS) copy_async<BYTES>(to + i * PER, from + i * PER);
  const int rest = copies * PER + thread_id();
  if (rest < count) to[rest] = from[rest];
}
template <class Cfg, int BYTES>
SL_DEVICE void store_run(Bits<Cfg>* to, const Bits<Cfg>* from, int count) {
  constexpr int PER = BYTES / static_cast<int>(sizeof(Bits<Cfg>));
  const int copies = count / PER;
  SL_UNROLL_BY(4)
  for (int i = thread_id(); i < copies; i += Cfg::THREADS) {
    store_raw<BYTES>(to + i * PER, load_raw<BYTES, false>(from + i * PER));
  }
  const int rest = copies * PER + thread_id();
  if (rest < count) to[rest] = from[rest];
}

/// Cfg: DTYPE LAYOUT (NCHW) BIAS ACT RESIDUAL INDEX64 R S STRIDE_* (no dilation), H W P Q PAD_TOP PAD_LEFT; PLANES a
/// block, STRIPS threads a plane of ROWS output rows each, X_BYTES and Y_BYTES of a copy, which divide the bytes of
/// PLANES planes of x and y. div[0] = channels.
template <class Cfg>
SL_DEVICE void dw_plane(const SlParams& p) {
  using I = Index<Cfg>;
  constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, W = Cfg::W, Q = Cfg::Q;
  constexpr int SIZE = static_cast<int>(sizeof(Bits<Cfg>)), PER = 16 / SIZE, PLANES = Cfg::PLANES;
  constexpr int SLOTS = (R + SH - 1) / SH, FRESH = SH < R ? SH : R;
  constexpr int X_PLANE = Cfg::H * W, Y_PLANE = Cfg::P * Q;
  constexpr int X_RUN = (PLANES * X_PLANE + PER - 1) / PER * PER, Y_RUN = (PLANES * Y_PLANE + PER - 1) / PER * PER;
  SL_DYNAMIC_SHARED(Bits<Cfg>, xs);
  Bits<Cfg>* const ys = xs + X_RUN;
  Bits<Cfg>* const ws = ys + Y_RUN;

  const I first = static_cast<I>(block_id()) * PLANES;
  const I planes = static_cast<I>(p.n) * static_cast<I>(p.c);
  const int room = static_cast<int>(planes - first < PLANES ? planes - first : PLANES);
  fetch_run<Cfg, Cfg::X_BYTES>(xs, static_cast<const Bits<Cfg>*>(p.x) + first * X_PLANE, room * X_PLANE);
  if constexpr (Cfg::RESIDUAL != 0) {  // the results' memory holds z until they come
    fetch_run<Cfg, Cfg::Y_BYTES>(ys, static_cast<const Bits<Cfg>*>(p.z) + first * Y_PLANE, room * Y_PLANE);
  }
  copy_async_commit();
  stage_channel_weights<Cfg, PLANES>(p, ws, first, planes);
  copy_async_wait<0>();
  barrier();

  const int plane = thread_id() % PLANES, strip = thread_id() / PLANES;
  // One strip of a small plane is unrolled as a whole: then rows, too, are known to the compiler, and nothing is
  // computed on padding. (Unrolled, 7x7 on larger planes would overflow the instruction cache.)
  constexpr bool WHOLE = Cfg::STRIPS == 1 && Cfg::P * Q * R * S <= 2500;
  constexpr bool SKIP = WHOLE || R * S >= 25;
  const int p0 = WHOLE ? 0 : strip * Cfg::ROWS;
  if (strip < Cfg::STRIPS && plane < room) {
    float weight[R * S];
    SL_UNROLL
    for (int i = 0; i < R * S; ++i) weight[i] = Element<Cfg::DTYPE>::widen(ws[plane * (R * S) + i]);
    I channel = first + plane;
    channel = take(channel, p.div[0]);
    const float bias = bias_of<Cfg>(p, channel);

    float sum[SLOTS][Q];  // slot d: the output row whose first input row came d steps ago
    SL_UNROLL
    for (int d = 0; d < SLOTS; ++d) {
      SL_UNROLL
      for (int t = 0; t < Q; ++t) sum[d][t] = 0.0F;
    }
    const int rows = WHOLE ? Cfg::P : Cfg::P - p0 < Cfg::ROWS ? Cfg::P - p0 : Cfg::ROWS;
    SL_UNROLL_BY(WHOLE ? Cfg::P + SLOTS - 1 : 1)
    for (int step = 0; step < rows + SLOTS - 1; ++step) {
      const int h = (p0 + step) * SH - Cfg::PAD_TOP;
      SL_UNROLL
      for (int j = 0; j < FRESH; ++j) {
        // A row of the plane, in the widest reads that its length allows.
        constexpr int VEC = W % PER == 0 ? PER : W % 4 == 0 ? 4 : W % 2 == 0 ? 2 : 1;
        constexpr int BYTES = VEC * SIZE;
        Raw<BYTES> raw[W / VEC];
        const bool present = inside(h + j, Cfg::H);
        const Bits<Cfg>* row = xs + plane * X_PLANE + (present ? h + j : 0) * W;
        SL_UNROLL
        for (int i = 0; i < W / VEC; ++i) {
          raw[i] = load_raw<BYTES, false>(row + i * VEC);
          if (!present) raw[i] = zero_raw<BYTES>();
        }
        float value[W];
        SL_UNROLL
        for (int i = 0; i < W; ++i) value[i] = element<Cfg>(raw[i / VEC], i % VEC);
        SL_UNROLL
        for (int d = SLOTS - 1; d >= 0; --d) {
          if (d * SH + j < R && (!SKIP || (step >= d && step - d < rows))) {
            SL_UNROLL
            for (int t = 0; t < Q; ++t) {
              // Every sum moves one slot on in the first addition to it, which costs nothing.
              float next = j > 0 ? sum[d][t] : d > 0 ? sum[d > 0 ? d - 1 : 0][t] : bias;
              SL_UNROLL
              for (int s = 0; s < S; ++s) {
                const int i = t * SW + s - Cfg::PAD_LEFT;
                if (i >= 0 && i < W && (!WHOLE || present))
                  next = sl::fma(value[i < 0 || i >= W ? 0 : i], weight[(d * SH + j) * S + s], next);
              }
              sum[d][t] = next;
            }
          }
        }
      }
      if (step >= SLOTS - 1) {
        constexpr int VEC = Q % PER == 0 ? PER : Q % 4 == 0 ? 4 : Q % 2 == 0 ? 2 : 1;
        Bits<Cfg>* const to = ys + plane * Y_PLANE + (p0 + step - (SLOTS - 1)) * Q;
        SL_UNROLL
        for (int t = 0; t < Q; t += VEC) {
          float out[VEC];
          if constexpr (Cfg::RESIDUAL != 0) load_floats<Cfg, VEC, false>(out, to + t);
          SL_UNROLL
          for (int i = 0; i < VEC; ++i) {
            const float a = Cfg::RESIDUAL != 0 ? sum[SLOTS - 1][t + i] + out[i] : sum[SLOTS - 1][t + i];
            out[i] = activate<Cfg::ACT>(a, p.alpha, p.beta);
          }
          store_floats<Cfg, VEC>(to + t, out);
        }
      }
    }
  }
  barrier();
  store_run<Cfg, Cfg::Y_BYTES>(static_cast<Bits<Cfg>*>(p.y) + first * Y_PLANE, ys, room * Y_PLANE);
}

}  // namespace sl
