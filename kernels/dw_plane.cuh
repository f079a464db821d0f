// dw_plane: small planes, NCHW (common/plane_strip.cuh). Planes lie one after another, so a block fetches PLANES of
// them as one run of bytes, whatever their width; the results leave as one run again.
#pragma once

#include "common/plane_strip.cuh"

namespace sl {

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

/// Cfg: as common/plane_strip.cuh has it; X_BYTES and Y_BYTES of a copy, which divide the bytes of PLANES planes of x
/// and y. div[0] = channels.
template <class Cfg>
SL_DEVICE void dw_plane(const SlParams& p) {
  using I = Index<Cfg>;
  constexpr int R = Cfg::R, S = Cfg::S;
  constexpr int SIZE = static_cast<int>(sizeof(Bits<Cfg>)), PER = 16 / SIZE, PLANES = Cfg::PLANES;
  constexpr int X_PLANE = Cfg::H * Cfg::W, Y_PLANE = Cfg::P * Cfg::Q;
  constexpr int X_RUN = (PLANES * X_PLANE + PER - 1) / PER * PER, Y_RUN = (PLANES * Y_PLANE + PER - 1) / PER * PER;
  SL_DYNAMIC_SHARED(Bits<Cfg>, xs);
  Bits<Cfg>* const ys = Cfg::IN_PLACE != 0 ? xs : xs + X_RUN;
  Bits<Cfg>* const ws = ys + Y_RUN;

  const I first = static_cast<I>(block_id()) * PLANES;
  const I planes = static_cast<I>(p.n) * static_cast<I>(p.c);
  const int room = static_cast<int>(planes - first < PLANES ? planes - first : PLANES);
  fetch_run<Cfg, Cfg::X_BYTES>(xs, static_cast<const Bits<Cfg>*>(p.x) + first * X_PLANE, room * X_PLANE);
  if constexpr (Cfg::RESIDUAL != 0) {  // the results' memory holds z until they come
    fetch_run<Cfg, Cfg::Y_BYTES>(ys, static_cast<const Bits<Cfg>*>(p.z) + first * Y_PLANE, room * Y_PLANE);
  }
  I c0 = first;
  c0 = take(c0, p.div[0]);
  const bool together = c0 + PLANES <= static_cast<I>(p.c);  // their weights are one run too
  if (together) {
    constexpr int TAPS = R * S;
    fetch_run<Cfg, Cfg::W_BYTES>(ws, static_cast<const Bits<Cfg>*>(p.weight) + c0 * TAPS, PLANES * TAPS);
  }
  copy_async_commit();
  if (!together) stage_channel_weights<Cfg, PLANES>(p, ws, first, planes);
  copy_async_wait<0>();
  barrier();

  const PlaneStrip<Cfg> place;
  if (place.strip < Cfg::STRIPS && place.plane < room) {
    float weight[R * S];
    SL_UNROLL
    for (int i = 0; i < R * S; ++i) weight[i] = Element<Cfg::DTYPE>::widen(ws[place.plane * (R * S) + i]);
    I channel = first + place.plane;
    channel = take(channel, p.div[0]);
    sweep_strip<Cfg>(p, place, xs, ys, weight, bias_of<Cfg>(p, channel));
  }
  barrier();
  store_run<Cfg, Cfg::Y_BYTES>(static_cast<Bits<Cfg>*>(p.y) + first * Y_PLANE, ys, room * Y_PLANE);
}

}  // namespace sl
