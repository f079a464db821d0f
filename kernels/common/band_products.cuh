// Planes in shared memory as the rows of matrices, and their products with banded matrices: the inside of dw_band_rows
// (kernels/dw_band_rows.cuh). Nothing slides: all sums of a tile stay in registers while the filter's rows go by.
#pragma once

#include "common/band_filters.cuh"

namespace sl {

/// Where planes lie, and what a warp multiplies. Cfg as of BandRows.
template <class Cfg>
struct BandProducts {
  using Filters = BandFilters<Cfg>;
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int R = Cfg::R, S = Cfg::S, H = Cfg::H, W = Cfg::W, P = Cfg::P, Q = Cfg::Q;
  static constexpr int G = Cfg::GROUPS, C = Cfg::CHUNKS, NI = Cfg::PACK, KS = Cfg::SPLIT;
  static constexpr int CHANNELS = Cfg::CHANNELS, IMAGES = Cfg::IMAGES, THREADS = Cfg::THREADS;

  // The 16 rows of A are those of a group of one image, or 8 of each of two images.
  static constexpr int SOURCES = NI == 1 ? 1 : NI / 2, GROUP = NI == 1 ? 16 : 8, MOST = GROUP * G;  // output rows
  static constexpr int TILES_P = (P + MOST - 1) / MOST, TILE = (P + TILES_P - 1) / TILES_P;  // tiles of one height
  static constexpr bool ONE_TILE = TILES_P == 1, STREAM = Cfg::STREAM != 0;
  static constexpr int TILES_Q = (Q + 7) / 8;
  static constexpr int HALVES = SOURCES * G;  // of 16 rows
  static constexpr int ROWS = Filters::ROWS;  // filter rows of a warp
  static constexpr bool KEEP = Filters::KEEP;
  // Input row j of the tile is row j / G of part j % G: the rows of a group lie side by side.
  static constexpr int PART = (G + KS * ROWS - 2) / G + GROUP;
  static constexpr int ROW_BYTES = Cfg::PITCH * 16, PART_BYTES = PART * ROW_BYTES + Cfg::PART_PAD;
  static constexpr int PLANE_BYTES = G * PART_BYTES + Cfg::PLANE_PAD;
  static constexpr int SKEW = Cfg::SKEW;  // octets of channels that are copied side by side start in other banks
  static constexpr int IMAGE_BYTES = CHANNELS * PLANE_BYTES + (CHANNELS + 7) / 8 * SKEW;
  static constexpr int HIGH_BYTES = NI == 1 ? 8 * ROW_BYTES : IMAGE_BYTES;  // from the first 8 rows of A to the others
  // Rows of x that are loaded for a tile.
  static constexpr int ROWS_IN = TILE + R - 1 < H || (STREAM && !ONE_TILE) ? TILE + R - 1 : H;

  static constexpr int FILTERS_AT = IMAGES * IMAGE_BYTES, PARTIAL_AT = FILTERS_AT + (Filters::BYTES + 127) / 128 * 128;
  static constexpr int TILES = HALVES * TILES_Q;  // of 16 x 8 sums
  static constexpr int AT_ONCE = Filters::AT_ONCE, KEPT = Filters::KEPT, UNITS = CHANNELS * (IMAGES / NI);
  // Outputs replace the planes; where a block goes on, the very pixels of the input, and the zeros beside them stay.
  static constexpr int OUT_ROW = STREAM ? Cfg::TOP : 0, OUT_COLUMN = STREAM ? Cfg::LEAD : 0;
  static_assert(!STREAM || (NHWC && KS == 1 && P == H && Q == W && Cfg::TOP < R), "outputs in the place of inputs");
  static constexpr int products() {  // matrix instructions of a group and filter row
    int count = 0;
    for (int q = 0; q < TILES_Q; ++q) {
      if (Filters::end_chunk(q) > Filters::first_chunk(q))
        count += (Filters::end_chunk(q) + 1) / 2 - Filters::first_chunk(q) / 2;
    }
    return count;
  }
  // Long filters are a loop over a ring of rows at a time: unrolled, they take long to compile.
  static constexpr bool ROLLED = !KEEP && (2 * G < ROWS) && (HALVES * products() * ROWS > 150);

  SL_DEVICE static constexpr int row_at(int row) {
    const unsigned number = static_cast<unsigned>(row);  // shifts and masks then
    return static_cast<int>(number % G * PART_BYTES + number / G * ROW_BYTES);
  }
  SL_DEVICE static constexpr int plane_at(int image, int channel) {
    return image * IMAGE_BYTES + channel * PLANE_BYTES + channel / 8 * SKEW;
  }

  static constexpr int QUADS = (C + 1) / 2;  // fragments of A: 16 rows of two chunks
  static constexpr int RING = 2 * G;         // rows of all groups, and the next ones
  using Rows = unsigned[SOURCES][RING][QUADS][4];
  using Sums = float[HALVES][TILES_Q][4];

  /// The rows that some group reads under one filter row, into a slot of the ring.
  SL_DEVICE static void load_rows(Rows& a, int slot, Shared at) {
    SL_UNROLL
    for (int source = 0; source < SOURCES; ++source) {
      const Shared from = at + 2 * source * IMAGE_BYTES;
      SL_UNROLL
      for (int i = 0; i < QUADS; ++i) {
        unsigned(&quad)[4] = a[source][slot][i];
        if (2 * i + 1 < C) {
          load_matrix<4>(quad, from + 32 * i);
        } else {
          unsigned two[2];
          load_matrix<2>(two, from + 32 * i);
          quad[0] = two[0], quad[1] = two[1];
        }
      }
    }
  }

  /// One filter row: `a` holds the rows of groups 0, 1, ... from slot `turn` of the ring on.
  SL_DEVICE static void multiply(Sums& sums, const Rows& a, int turn, const typename Filters::Band& band) {
    SL_UNROLL
    for (int half = 0; half < HALVES; ++half) {
      SL_UNROLL
      for (int q = 0; q < TILES_Q; ++q) {
        if (Filters::first_chunk(q) >= Filters::end_chunk(q)) continue;  // sees the padding alone
        SL_UNROLL
        for (int i = Filters::first_chunk(q) / 2; 2 * i < Filters::end_chunk(q); ++i) {
          const unsigned(&quad)[4] = a[half / G][(half % G + turn) % RING][i];
          const int word = 2 * i - q - Filters::FIRST;  // of the quad's first chunk
          if (2 * i < Filters::first_chunk(q)) {
            const unsigned right[2] = {quad[2], quad[3]};
            mma_k8<Cfg::DTYPE>(sums[half][q], right, band[word + 1]);
          } else if (2 * i + 1 == Filters::end_chunk(q)) {
            const unsigned left[2] = {quad[0], quad[1]};
            mma_k8<Cfg::DTYPE>(sums[half][q], left, band[word]);
          } else {
            mma_k16<Cfg::DTYPE>(sums[half][q], quad, band[word], band[word + 1]);
          }
        }
      }
    }
  }

  /// Planes of one chunk and outputs of one: the two halves of a product's inner dimension are two filter rows.
  static constexpr bool PAIRED = C == 1 && G == 1 && TILES_Q == 1;
  SL_DEVICE static void compute_pairs(Sums& sums, Shared at, Shared filter, const typename Filters::Bands& kept) {
    constexpr int WORD = -Filters::FIRST;
    at = at + thread_id() % 32 / 16 * (ROW_BYTES - 16);
    SL_UNROLL
    for (int r = 0; r < ROWS; r += 2) {
      typename Filters::Band band[2];
      SL_UNROLL
      for (int i = 0; i < 2 && r + i < ROWS; ++i) {
        if constexpr (KEEP) {
          band[i][WORD] = kept[r + i][WORD];
        } else {
          Filters::words(band[i], filter, r + i);
        }
      }
      SL_UNROLL
      for (int source = 0; source < SOURCES; ++source) {
        const Shared from = at + (2 * source * IMAGE_BYTES + r * ROW_BYTES);
        if (r + 1 < ROWS) {
          unsigned rows[4];
          load_matrix<4>(rows, from);
          mma_k16<Cfg::DTYPE>(sums[source][0], rows, band[0][WORD], band[1][WORD]);
        } else {
          unsigned rows[2];
          load_matrix<2>(rows, from);
          mma_k8<Cfg::DTYPE>(sums[source][0], rows, band[0][WORD]);
        }
      }
    }
  }

  // Two rows of the ring at once: the halves of a product's inner dimension are one chunk under two filter rows, so
  // that none is half empty where a tile meets an odd number of chunks or begins at an odd one. Odd groups are one
  // filter row behind.
  static constexpr bool IN_TWOS = STREAM && KEEP && G % 2 == 0;
  static constexpr int SLOTS = ROWS + G - 1;  // rows of the ring that a tile needs
  using Twos = unsigned[SOURCES][G][C][4];    // half of them are on their way
  /// Rows 2 `pair` and 2 `pair` + 1, as far as there are.
  SL_DEVICE static void load_twos(Twos& a, int pair, Shared at) {
    SL_UNROLL
    for (int source = 0; source < SOURCES; ++source) {
      SL_UNROLL
      for (int chunk = 0; chunk < C; ++chunk) {
        const Shared from = at + (2 * source * IMAGE_BYTES + row_at(2 * pair) + 16 * chunk);
        unsigned(&quad)[4] = a[source][pair % G][chunk];
        if (2 * pair + 1 < SLOTS) {
          load_matrix<4>(quad, from);
        } else if (2 * pair < SLOTS) {
          unsigned two[2];
          load_matrix<2>(two, from);
          quad[0] = two[0], quad[1] = two[1];
        }
      }
    }
  }
  /// Rows of the ring r (even) and r + 1 of group 0, those that are as far from them of the others.
  SL_DEVICE static void multiply_twos(Sums& sums, const Twos& a, int r, const typename Filters::Bands& kept) {
    SL_UNROLL
    for (int half = 0; half < HALVES; ++half) {
      const int group = half % G, low = r - group % 2;  // filter row of the first
      SL_UNROLL
      for (int q = 0; q < TILES_Q; ++q) {
        SL_UNROLL
        for (int chunk = Filters::first_chunk(q); chunk < Filters::end_chunk(q); ++chunk) {
          const unsigned(&quad)[4] = a[half / G][(r / 2 + group / 2) % G][chunk];
          const int word = chunk - q - Filters::FIRST;
          if (low >= 0 && low + 1 < ROWS) {
            mma_k16<Cfg::DTYPE>(sums[half][q], quad, kept[low][word], kept[low + 1][word]);
          } else if (low < 0) {
            const unsigned second[2] = {quad[2], quad[3]};
            mma_k8<Cfg::DTYPE>(sums[half][q], second, kept[0][word]);
          } else if (low < ROWS) {
            const unsigned first[2] = {quad[0], quad[1]};
            mma_k8<Cfg::DTYPE>(sums[half][q], first, kept[low][word]);
          }
        }
      }
    }
  }
  SL_DEVICE static void compute_twos(Sums& sums, Shared at, const typename Filters::Bands& kept) {
    at = at + thread_id() % 32 / 16 * (row_at(1) - 16);  // a lane's second matrices are those of the second row
    Twos a;
    SL_UNROLL
    for (int j = 0; j < G / 2; ++j) load_twos(a, j, at);
    SL_UNROLL
    for (int r = 0; r <= ROWS; r += 2) {
      load_twos(a, (r + G) / 2, at);
      multiply_twos(sums, a, r, kept);
    }
  }

  /// The sums of filter rows [row, row + ROWS) for PACK planes of one channel, of which `plane` is the first.
  SL_DEVICE static void compute(Sums& sums, Shared plane, int row, Shared filter, const typename Filters::Bands& kept) {
    const int lane = thread_id() % 32;  // names row lane % 8 of the matrix: high rows, right chunk
    Shared at = plane + ((row / G + lane % 8) * ROW_BYTES + lane / 8 % 2 * HIGH_BYTES + lane / 16 * 16);
    SL_UNROLL
    for (int tile = 0; tile < TILES; ++tile) {
      SL_UNROLL
      for (int i = 0; i < 4; ++i) sums[tile / TILES_Q][tile % TILES_Q][i] = 0.0F;
    }
    if constexpr (PAIRED) {
      compute_pairs(sums, at, filter, kept);
      return;
    }
    if constexpr (IN_TWOS) {
      compute_twos(sums, at, kept);
      return;
    }
    Rows a;
    SL_UNROLL
    for (int j = 0; j < G; ++j) load_rows(a, j, at + row_at(j));
    typename Filters::Band band = {};
    if constexpr (!KEEP) Filters::words(band, filter, 0);
    const auto filter_row = [&](int r, bool last) {  // what the next row needs is on its way meanwhile
      typename Filters::Band next = {};
      if (!last) load_rows(a, (r + G) % RING, at + row_at(r + G));
      if constexpr (KEEP) {
        multiply(sums, a, r % RING, kept[r]);
      } else {
        if (!last) Filters::words(next, filter, r + 1);
        multiply(sums, a, r % RING, band);
        SL_UNROLL
        for (int i = 0; i < Filters::WORDS; ++i) band[i] = next[i];
      }
    };
    constexpr int STEP = ROLLED ? RING : ROWS, LAST = ROWS - (ROWS - 1) / STEP * STEP;
    SL_UNROLL_BY(1)
    for (int r = LAST; r < ROWS; r += STEP) {
      SL_UNROLL
      for (int i = 0; i < STEP; ++i) filter_row(i, false);
      at = at + STEP / G * ROW_BYTES;
      filter = filter + STEP * Filters::ROW_BYTES;
    }
    SL_UNROLL
    for (int i = 0; i < LAST; ++i) filter_row(i, i + 1 == LAST);
  }
};

}  // namespace sl
