// dw_toeplitz_bulk: dw_toeplitz (common/toeplitz.cuh) whose planes are brought and sent by bulk copies. Blocks stay and
// work through units of CHANNELS planes x 16 GROUPS images: while one is multiplied, the next are on their way in and
// the last is on its way out.
#pragma once

#include "common/bulk.cuh"
#include "common/toeplitz.cuh"

namespace sl {

/// A unit: its first channel and image. Images run fastest, so that the tables of its channels serve what follows.
template <class Cfg>
struct BulkUnit {
  using I = Index<Cfg>;
  static constexpr int IMAGES = 16 * Cfg::GROUPS, CHANNELS = Cfg::CHANNELS;
  I c0, n0;

  SL_DEVICE BulkUnit(const SlParams& p, I number) {
    n0 = take(number, p.div[0]) * IMAGES;
    c0 = number * CHANNELS;
  }
  SL_DEVICE void advance(const SlParams& p) {
    n0 += IMAGES;
    if (n0 < static_cast<I>(p.n)) return;
    n0 = 0;
    c0 += CHANNELS;
  }
  SL_DEVICE int images(const SlParams& p) const { return at_most(static_cast<I>(p.n) - n0, IMAGES); }
  SL_DEVICE int channels(const SlParams& p) const { return at_most(static_cast<I>(p.c) - c0, CHANNELS); }

 private:
  SL_DEVICE static int at_most(I left, int all) { return left < all ? static_cast<int>(left) : all; }
};

/// The copies of a unit: a run for each image, spread over the block's warps, in each over its lanes.
template <class Cfg>
struct BulkPlanes {
  using Unit = BulkUnit<Cfg>;
  using M = PlaneMatrix<Cfg>;
  static constexpr int WARPS = Cfg::THREADS / 32, IMAGES = Unit::IMAGES, EACH = (IMAGES + WARPS - 1) / WARPS;
  static constexpr int X_STAGE = IMAGES * Cfg::X_PITCH, Y_STAGE = IMAGES * Cfg::Y_PITCH;  // 32-bit words
  int warp, image;  // the image of this lane; beyond the last where it has none

  SL_DEVICE BulkPlanes() {
    const int lane = thread_id() % 32;
    warp = thread_id() / 32;
    image = lane < EACH ? lane * WARPS + warp : IMAGES;
  }
  /// One arrival a warp, which announces the warp's runs: images that are not there are not waited for.
  SL_DEVICE void load(const SlParams& p, const Unit& unit, unsigned* to, Shared full) const {
    const int images = unit.images(p), bytes = unit.channels(p) * (2 * M::X);
    const int runs = warp < images ? (images - warp + WARPS - 1) / WARPS : 0;
    if (thread_id() % 32 == 0) mbarrier_expect(full, runs * bytes);
    if (image >= images) return;
    const auto* const x = static_cast<const Bits<Cfg>*>(p.x);
    bulk_load(Shared(to + image * Cfg::X_PITCH),
              x + ((unit.n0 + image) * static_cast<Index<Cfg>>(p.c) + unit.c0) * M::X, bytes, full);
  }
  SL_DEVICE void store(const SlParams& p, const Unit& unit, unsigned* from) const {
    if (image < unit.images(p)) {
      auto* const y = static_cast<Bits<Cfg>*>(p.y);
      bulk_store(y + ((unit.n0 + image) * static_cast<Index<Cfg>>(p.k) + unit.c0) * M::Y,
                 Shared(from + image * Cfg::Y_PITCH), unit.channels(p) * (2 * M::Y));
    }
    bulk_commit();
  }
  /// Zeros for images that no unit brings: whatever lies there would be multiplied, and if it were NaN be looked at.
  template <int STAGES>
  SL_DEVICE static void clear(const SlParams& p, unsigned* xs) {
    const int last = static_cast<int>(p.n % IMAGES);
    if (last == 0) return;
    SL_UNROLL_BY(1)
    for (int stage = 0; stage < STAGES; ++stage) {
      SL_UNROLL_BY(1)
      for (int at = last * Cfg::X_PITCH + 4 * thread_id(); at < X_STAGE; at += 4 * Cfg::THREADS)
        clear_shared(Shared(xs + stage * X_STAGE + at));
    }
    bulk_publish();
  }
};

/// Cfg: as common/toeplitz.cuh has it, runs of x and y multiples of 16 bytes; STAGES buffers of x. div[0] = units of a
/// block of channels; aux[0] = units that every block works through, the first aux[1] blocks one more.
template <class Cfg>
SL_DEVICE void dw_toeplitz_bulk(const SlParams& p) {
  using I = Index<Cfg>;
  using Tables = MatrixTables<Cfg>;
  using Planes = BulkPlanes<Cfg>;
  constexpr int CHANNELS = Cfg::CHANNELS, STAGES = Cfg::STAGES;
  constexpr int OUTS = STAGES > 1 ? 2 : 1;  // buffers of results
  SL_DYNAMIC_SHARED(unsigned, xs);
  unsigned* const ys = xs + STAGES * Planes::X_STAGE;
  unsigned* const tables = ys + OUTS * Planes::Y_STAGE;
  unsigned* const columns = tables + 4 * Tables::VECTORS;
  const Shared full(columns + Tables::COLUMNS);  // an mbarrier a stage

  const Planes planes;
  const I block = static_cast<I>(block_id()), base = static_cast<I>(p.aux[0]), longer = static_cast<I>(p.aux[1]);
  const int units = static_cast<int>(base) + (block < longer ? 1 : 0);
  BulkUnit<Cfg> unit(p, block * base + (block < longer ? block : longer));
  Bits<Cfg> held[Tables::TURNS];
  Tables::load(held, p, unit.c0, unit.channels(p));
  if (thread_id() == 0) {
    SL_UNROLL
    for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + 8 * stage, Planes::WARPS);
    mbarrier_publish();
  }
  Planes::template clear<STAGES>(p, xs);
  barrier();
  BulkUnit<Cfg> coming = unit;
  int asked = 0;
  SL_UNROLL
  for (int stage = 0; stage < STAGES; ++stage) {
    if (asked >= units) continue;
    planes.load(p, coming, xs + stage * Planes::X_STAGE, full + 8 * stage);
    coming.advance(p);
    ++asked;
  }
  Tables::clear(tables, columns);
  barrier();
  Tables::fill(tables, held);
  barrier();

  const int channel = planes.warp % CHANNELS, part = planes.warp / CHANNELS;
  int stage = 0, parity = 0, out = 0;
  SL_UNROLL_BY(1)
  for (int done = 1; done <= units; ++done) {
    BulkUnit<Cfg> next = unit;
    next.advance(p);
    const bool other = done < units && next.c0 != unit.c0;  // other channels, so other tables
    Tables::load(held, p, next.c0, other ? next.channels(p) : 0);
    unsigned* const x_stage = xs + stage * Planes::X_STAGE;
    unsigned* const y_stage = ys + out * Planes::Y_STAGE;
    mbarrier_wait(full + 8 * stage, parity);
    if (channel < unit.channels(p)) {
      multiply_planes<Cfg>(p, {unit.c0, unit.n0, unit.images(p), x_stage, y_stage, tables, columns}, channel, part);
    }
    bulk_publish();
    if (OUTS == 2) bulk_wait<0>();  // the other results have left: they were sent a unit ago
    barrier();                      // everybody has read the unit and written its results
    planes.store(p, unit, y_stage);
    if (asked < units) {
      planes.load(p, coming, x_stage, full + 8 * stage);
      coming.advance(p);
      ++asked;
    }
    if (other || (OUTS == 1 && done < units)) {
      if (other) Tables::fill(tables, held);
      if (OUTS == 1) bulk_wait<0>();
      barrier();
    }
    if (OUTS == 2) out ^= 1;
    if (++stage == STAGES) stage = 0, parity ^= 1;
    unit = next;
  }
  bulk_wait<0>();
}

}  // namespace sl
