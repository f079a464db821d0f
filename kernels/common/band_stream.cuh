// A block that goes on from tile to tile of whole NHWC planes (kernels/dw_band_rows.cuh). Pixels come by asynchronous
// copies, each thread's own, so that no barrier waits for them; from there the thread sorts them into planes, two
// neighbouring pixels of V channels as V words, and takes the results from the very places where its next pixels go.
#pragma once

#include "common/band_filters.cuh"
#include "common/dtype.cuh"
#include "common/index.cuh"

namespace sl {

/// Base: BandRows<Cfg>, whose planes hold zeros beside the pixels, and results in the place of pixels.
template <class Cfg, class Base>
struct BandStream : Base {
  using Base::Base;
  using I = typename Base::I;
  using Kept = typename Base::Kept;
  using Step = typename Base::Step;
  using Base::channel0, Base::channels, Base::filters, Base::memory, Base::now, Base::number, Base::p, Base::planes;
  using Base::FILTERS_AT, Base::H, Base::IMAGES, Base::ONE_TILE, Base::P, Base::ROWS_IN, Base::THREADS, Base::TILE;
  using Base::first_row, Base::plane_at, Base::row_at, Base::step_of, Base::waiting;
  using Base::V, Base::W;
  using LinesIn = typename Base::LinesIn;

  /// A thread's pairs of pixels of every step. Where outputs lie in memory is where inputs do.
  struct Items {
    static constexpr int COUNT = LinesIn::turns(ROWS_IN * IMAGES);
    int place[COUNT];  ///< byte in the planes, -1: nothing
    I offset[COUNT];   ///< in x and y, from the step's first row
    int line[COUNT], image[COUNT];
    bool two[COUNT];  ///< the second pixel exists
  };
  SL_DEVICE Items items() const {
    Items items;
    SL_UNROLL
    for (int b = 0; b < Items::COUNT; ++b) {
      const LinesIn at(b);
      const int image = static_cast<int>(at.line / ROWS_IN), line = static_cast<int>(at.line % ROWS_IN);
      const bool wanted = at.there && image < IMAGES && (Cfg::WHOLE != 0 || at.octet * V < channels);
      const int to = plane_at(image, at.octet * V) + row_at(line + (ONE_TILE ? Cfg::TOP : 0));
      items.place[b] = wanted ? to + (Cfg::LEAD + at.column) * 2 : -1;
      items.offset[b] =
          ((static_cast<I>(image) * H + line) * W + at.column) * static_cast<I>(p.c) + channel0 + at.octet * V;
      items.line[b] = line, items.image[b] = image;
      items.two[b] = W % 2 == 0 || at.column + 1 < W;
    }
    return items;
  }
  /// Element of x (and y) that a step's items count from; where its first row lies above the plane, before it.
  SL_DEVICE I first_element(const Step& step) const {
    return (step.image * H + (ONE_TILE ? 0 : first_row(step))) * W * static_cast<I>(p.c);
  }
  // Pixels on their way: in registers where those are few or copies would be narrow, else in shared memory, where each
  // thread finds what it has copied itself, and nothing else.
  static constexpr bool HELD = Cfg::HELD != 0;
  using Next = typename Base::Pair[HELD ? Items::COUNT : 1];
  SL_DEVICE static constexpr int waiting_at(int item, int pixel) { return (item * 2 + pixel) * THREADS * 2 * V; }

  SL_DEVICE void fetch(Next& next, const Items& items, const Step& step) const {
    const Bits<Cfg>* const x = static_cast<const Bits<Cfg>*>(p.x);
    const I first = first_element(step);
    const Shared to = waiting + thread_id() * 2 * V;
    SL_UNROLL
    for (int b = 0; b < Items::COUNT; ++b) {
      bool there = items.place[b] >= 0 && items.image[b] < step.images;
      if (!ONE_TILE) there = there && inside(first_row(step) + items.line[b], H);
      const Bits<Cfg>* const from = x + (there ? first + items.offset[b] : 0);
      if constexpr (HELD) {
        next[b][0] = next[b][1] = zero_raw<2 * V>();
        if (there) next[b][0] = load_raw<2 * V, true>(from);
        if (there && items.two[b]) next[b][1] = load_raw<2 * V, true>(from + p.c);
      } else if (items.place[b] >= 0) {
        copy_async<2 * V, true>(to + waiting_at(b, 0), from, there);
        if (items.two[b]) copy_async<2 * V, true>(to + waiting_at(b, 1), there ? from + p.c : x, there);
      }
    }
    if constexpr (!HELD) copy_async_commit();
  }
  SL_DEVICE void put(const Next& next, const Items& items) const {
    if constexpr (!HELD) copy_async_wait<0>();
    const unsigned char* const from = memory + (Base::PARTIAL_AT + thread_id() * 2 * V);
    SL_UNROLL
    for (int b = 0; b < Items::COUNT; ++b) {
      if (items.place[b] < 0) continue;
      if constexpr (HELD) {
        Base::put(planes + items.place[b], next[b]);
      } else {
        typename Base::Pair pair;
        pair[0] = load_raw<2 * V, false>(from + waiting_at(b, 0));
        pair[1] = zero_raw<2 * V>();
        if (items.two[b]) pair[1] = load_raw<2 * V, false>(from + waiting_at(b, 1));
        Base::put(planes + items.place[b], pair);
      }
    }
  }
  SL_DEVICE void store(const Items& items) const {
    const I first = first_element(now);
    SL_UNROLL
    for (int b = 0; b < Items::COUNT; ++b) {
      bool there = items.place[b] >= 0 && items.image[b] < now.images;
      if (!ONE_TILE) {
        const int row = items.line[b] - Cfg::TOP;
        there = there && inside(row, TILE) && (P % TILE == 0 || now.top + row < P);
      }
      if (there) {
        Base::give(planes + items.place[b], static_cast<Bits<Cfg>*>(p.y) + (first + items.offset[b]), items.two[b]);
      }
    }
  }
  /// Step after step. The pixels of the next one are on their way while the warps multiply, and go to the places whose
  /// outputs the same thread has just stored.
  SL_DEVICE void run() {
    const I apart = static_cast<I>(p.aux[0]);
    const Items items = this->items();
    Next next;
    fetch(next, items, now);
    Kept kept = {};
    clear_block<THREADS>(planes, FILTERS_AT);
    if constexpr (Base::Filters::BARE) {
      filters.fetch(kept);
      barrier();
    } else {
      filters.load([] { barrier(); });
    }
    SL_UNROLL_BY(1)
    while (true) {
      put(next, items);
      fetch(next, items, step_of(number + apart));
      barrier();
      Base::compute_all(kept);
      barrier();
      store(items);
      now = step_of(number += apart);
      if (now.images == 0) return;
    }
  }
};

}  // namespace sl
