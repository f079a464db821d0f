// dw_band_nhwc: depthwise, 16-bit NHWC, on the sparse tensor cores. A filter row becomes a banded matrix over output
// columns x input columns; the pixels of a pair of channels lie interleaved in memory, and 2:4 sparsity picks the one
// channel or the other of every two neighbours. So neither the input nor the output is ever transposed:
//
//   a (sparse, registers): row = one output column of one channel, 16 / CW columns x CW channels of a filter row
//   b (load_matrix):       row = one input column of one channel as they lie in memory; column = one of 8 strips
//   d:                     an output column's two channels end up in one lane: a word of y
//
// A block owns CH channels of a tile HH strips wide and works through steps of RG x L output rows of PI images. Input
// rows come by asynchronous copies, sorted by groups of CW channels, into a ring of SLOTS units of rows that never
// stops, from one image to the next; a warp owns OWN groups, keeps their filters in registers (or CHUNK rows of them),
// and computes L output rows of 8 strips at a time, every input row loaded once for all the L output rows that read it.
// Results go through shared memory to 16-byte stores. A band of one row (1-D) comes through registers instead, the next
// image's while one is computed.
#pragma once

#include "common/band_nhwc_held.cuh"
#include "common/band_nhwc_products.cuh"
#include "common/band_nhwc_ring.cuh"
#include "common/band_nhwc_stage.cuh"

namespace sl {

/// Cfg: DTYPE (16-bit) LAYOUT = nhwc BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* MULT = 1 CPG WLAYOUT;
/// CH channels a block in groups of CW (2, 4, 8), OWN groups a warp, GL lanes of a warp along the groups when it
/// copies; L output rows of a strip, RG row groups of L, HH strips across, PI images; SLOTS units of L * STRIDE_H rows
/// in the ring; XC, QC: columns of x and of y that a block can meet; ROW_CHUNKS, UNIT_CHUNKS, IMAGE_CHUNKS,
/// GROUP_CHUNKS: pitches in chunks of 16 bytes; SWIZZLE; STAGE_PITCH words between the rows of the stage; LOAD bytes of
/// a copy; STORE channels of a store. HELD: see BandNhwcHeld; CHUNKS of a row that it brings. CHUNK (0: the filters
/// stay in registers), FILTER_ROW, FILTER_COPY, FILTER_AT: see BandNhwcFilters. div[0] = channel blocks, div[1] =
/// column tiles, div[2] = steps of an image (or of PI of them); aux[0] = steps of a block, aux[1] = steps of all
/// images.
template <class Cfg>
struct BandNhwc : BandNhwcShape<Cfg> {
  using Shape = BandNhwcShape<Cfg>;
  using Ring = BandNhwcRing<Cfg>;
  using Products = BandNhwcProducts<Cfg>;
  using Shape::RG, Shape::CHUNK, Shape::FIRST_UNITS, Shape::AHEAD;
  using typename Shape::Cursor, typename Shape::Block;
  static constexpr int OWNERS = Products::OWNERS;

  const SlParams& p;
  Cursor now;  ///< of the step computed
  Ring ring;
  Products products;
  BandNhwcStage<Cfg> stage;

  SL_DEVICE BandNhwc(const SlParams& params, const Block& block, Shared memory)
      : p(params),
        now(block.start),
        ring(params, block, memory),
        products(params, block.k0, memory),
        stage(params, block, memory + Ring::BYTES) {}

  SL_DEVICE void run() {
    ring.clear_margins();
    if constexpr (CHUNK > 0) products.clear_filters();
    barrier();
    ring.request(Cfg::SLOTS);
    const int warp = thread_id() / 32, group = warp % OWNERS, along = warp / OWNERS;
    products.load(group);
    const auto first = products.place(group, along);
    int step = 0, slot = 0;  // of the ring, where the step begins
    SL_UNROLL_BY(1)
    while (now.valid()) {
      copy_async_wait<AHEAD>();
      barrier();
      products.compute_all(first, group, along, slot, stage);
      barrier();
      const bool last = step + 1 == now.steps;
      const int freed = last ? FIRST_UNITS : RG;
      ring.request(freed);
      stage.drain(now, step);
      slot += freed;
      if (slot >= Cfg::SLOTS) slot -= Cfg::SLOTS;
      if (last) {
        step = 0;
        now.next(p);
      } else {
        ++step;
      }
    }
  }
};

/// The same where a step is one output row under one kernel row.
template <class Cfg>
struct BandNhwcRow : BandNhwcShape<Cfg> {
  using Shape = BandNhwcShape<Cfg>;
  using Products = BandNhwcProducts<Cfg>;
  using typename Shape::Cursor, typename Shape::Block;

  const SlParams& p;
  Cursor now;  ///< of the step computed
  BandNhwcHeld<Cfg> next;
  Products products;
  BandNhwcStage<Cfg> stage;

  SL_DEVICE BandNhwcRow(const SlParams& params, const Block& block, Shared memory)
      : p(params),
        now(block.start),
        next(params, block, memory),
        products(params, block.k0, memory),
        stage(params, block, memory + BandNhwcRing<Cfg>::BYTES) {}

  SL_DEVICE void run() {
    next.ask();
    const int warp = thread_id() / 32, group = warp % Products::OWNERS, along = warp / Products::OWNERS;
    products.load(group);
    const auto first = products.place(group, along);
    next.store();
    SL_UNROLL_BY(1)
    while (now.valid()) {
      barrier();
      const bool more = next.ask();
      if constexpr (Products::STEADY) {
        products.compute_row(first, stage);
      } else {
        products.compute_all(first, group, along, 0, stage);
      }
      barrier();
      if (more) next.store();
      stage.drain(now, 0);
      now.next(p);
    }
  }
};

template <class Cfg>
SL_DEVICE void dw_band_nhwc(const SlParams& p) {
  SL_DYNAMIC_SHARED(unsigned char, shared);
  const Shared memory(shared);
  if constexpr (Cfg::HELD != 0) {
    BandNhwcRow<Cfg> work(p, typename BandNhwcRow<Cfg>::Block(p), memory);
    work.run();
  } else {
    BandNhwc<Cfg> work(p, typename BandNhwc<Cfg>::Block(p), memory);
    work.run();
  }
}

}  // namespace sl
