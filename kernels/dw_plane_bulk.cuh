// dw_plane_bulk: dw_plane (common/plane_strip.cuh) whose planes are brought and sent by bulk copies, one each for a
// unit of PLANES neighbouring planes of an image. Blocks stay and work through the images of their channels with the
// weights in registers: while one unit is computed, the next are on their way in and the last is on its way out.
#pragma once

#include "common/bulk.cuh"
#include "common/plane_strip.cuh"

namespace sl {

/// A unit: its first channel and its image. Images run fastest, so that weights serve what follows.
template <class Cfg>
struct PlaneUnit {
  using I = Index<Cfg>;
  I c0, n;

  SL_DEVICE PlaneUnit(const SlParams& p, I number) {
    n = take(number, p.div[0]);
    c0 = number * Cfg::PLANES;
  }
  SL_DEVICE void advance(const SlParams& p) {
    if (++n < static_cast<I>(p.n)) return;
    n = 0;
    c0 += Cfg::PLANES;
  }
  SL_DEVICE int planes(const SlParams& p) const {
    const I left = static_cast<I>(p.c) - c0;
    return left < Cfg::PLANES ? static_cast<int>(left) : Cfg::PLANES;
  }
  /// The unit's first element in a tensor whose planes have SIZE elements.
  template <int SIZE>
  SL_DEVICE I offset(const SlParams& p) const {
    return (n * static_cast<I>(p.c) + c0) * SIZE;
  }
};

/// Cfg: as common/plane_strip.cuh has it, units of x and y multiples of 16 bytes; STAGES units in shared memory. div[0]
/// = images; aux[0] = units that every block works through, the first aux[1] blocks one more.
template <class Cfg>
SL_DEVICE void dw_plane_bulk(const SlParams& p) {
  using I = Index<Cfg>;
  using Unit = PlaneUnit<Cfg>;
  constexpr int TAPS = Cfg::R * Cfg::S, STAGES = Cfg::STAGES, PLANES = Cfg::PLANES;
  constexpr int SIZE = static_cast<int>(sizeof(Bits<Cfg>)), X_PLANE = Cfg::H * Cfg::W, Y_PLANE = Cfg::P * Cfg::Q;
  constexpr int X_UNIT = PLANES * X_PLANE, Y_UNIT = PLANES * Y_PLANE;
  constexpr int Y_AT = Cfg::IN_PLACE != 0 ? 0 : X_UNIT, STAGE = Y_AT + (Cfg::IN_PLACE != 0 ? X_UNIT : Y_UNIT);
  constexpr int WEIGHTS = (PLANES * TAPS * SIZE + 15) / 16 * 16 / SIZE;  // those of the next channels beside these
  SL_DYNAMIC_SHARED(Bits<Cfg>, stages);
  Bits<Cfg>* const ws = stages + STAGES * STAGE;
  const Shared full(ws + 2 * WEIGHTS);  // an mbarrier a stage

  // One thread asks for everything: a unit's x and, where the results will be, its z.
  const auto load = [&](const Unit& unit, int stage) {
    const int bytes = unit.planes(p) * (X_PLANE * SIZE), z_bytes = unit.planes(p) * (Y_PLANE * SIZE);
    Bits<Cfg>* const to = stages + stage * STAGE;
    mbarrier_expect(full + 8 * stage, Cfg::RESIDUAL != 0 ? bytes + z_bytes : bytes);
    bulk_load(Shared(to), static_cast<const Bits<Cfg>*>(p.x) + unit.template offset<X_PLANE>(p), bytes,
              full + 8 * stage);
    if constexpr (Cfg::RESIDUAL != 0) {
      bulk_load(Shared(to + Y_AT), static_cast<const Bits<Cfg>*>(p.z) + unit.template offset<Y_PLANE>(p), z_bytes,
                full + 8 * stage);
    }
  };
  const auto fetch_weights = [&](const Unit& unit, int half) {
    fetch_run<Cfg, Cfg::W_BYTES>(ws + half * WEIGHTS, static_cast<const Bits<Cfg>*>(p.weight) + unit.c0 * TAPS,
                                 unit.planes(p) * TAPS);
    copy_async_commit();
  };

  const I block = static_cast<I>(block_id()), base = static_cast<I>(p.aux[0]), longer = static_cast<I>(p.aux[1]);
  const int units = static_cast<int>(base) + (block < longer ? 1 : 0);
  Unit unit(p, block * base + (block < longer ? block : longer)), coming = unit;
  int asked = 0;
  if (thread_id() == 0) {
    SL_UNROLL
    for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + 8 * stage, 1);
    mbarrier_publish();
    for (; asked < STAGES && asked < units; ++asked) {
      load(coming, asked);
      coming.advance(p);
    }
  }
  fetch_weights(unit, 0);
  copy_async_wait<0>();
  barrier();

  const PlaneStrip<Cfg> place;
  float weight[TAPS], bias = 0.0F;
  bool fresh = true;  // other channels than before
  int half = 0, stage = 0, before = STAGES - 1, parity = 0;
  SL_UNROLL_BY(1)
  for (int done = 1; done <= units; ++done) {
    const int room = unit.planes(p);
    const bool mine = place.strip < Cfg::STRIPS && place.plane < room;
    if (fresh) {
      SL_UNROLL
      for (int i = 0; i < TAPS; ++i)
        weight[i] = Element<Cfg::DTYPE>::widen(ws[half * WEIGHTS + (mine ? place.plane : 0) * TAPS + i]);
      if (mine) bias = bias_of<Cfg>(p, unit.c0 + place.plane);
    }
    Unit next = unit;
    next.advance(p);
    fresh = done < units && next.c0 != unit.c0;
    if (fresh) fetch_weights(next, half ^= 1);
    // Were the compiler to know how far apart they lie, it would read all rows before the first result is written, and
    // keep them in twice the registers.
    Bits<Cfg>* const xs = stages + stage * STAGE;
    Bits<Cfg>* const ys = Cfg::IN_PLACE != 0 ? xs : stages + keep(stage * STAGE + Y_AT);
    mbarrier_wait(full + 8 * stage, parity);
    if (mine) sweep_strip<Cfg>(p, place, xs, ys, weight, bias);
    bulk_publish();
    if (fresh) copy_async_wait<0>();
    barrier();  // everybody has read the unit and written its results; the next weights are there
    if (thread_id() == 0) {
      bulk_store(static_cast<Bits<Cfg>*>(p.y) + unit.template offset<Y_PLANE>(p), Shared(ys), room * (Y_PLANE * SIZE));
      bulk_commit();
      if (done > 1 && asked < units) {
        bulk_wait<1>();  // the results of the unit before have left: its place is free
        load(coming, before);
        coming.advance(p);
        ++asked;
      }
    }
    before = stage;
    if (++stage == STAGES) stage = 0, parity ^= 1;
    unit = next;
  }
  if (thread_id() == 0) bulk_wait<0>();
}

}  // namespace sl
