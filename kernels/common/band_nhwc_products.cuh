// The products of dw_band_nhwc (kernels/dw_band_nhwc.cuh): sparse banded matrices x pixels as they lie in the ring, L
// output rows of 8 strips at a time, every input row loaded once for all the output rows that read it.
#pragma once

#include "common/band_nhwc_filters.cuh"
#include "common/band_nhwc_stage.cuh"
#include "common/window_taps.cuh"

namespace sl {

/// What a warp computes. Cfg as of BandNhwc.
template <class Cfg>
struct BandNhwcProducts : BandNhwcFilters<Cfg> {
  using Filters = BandNhwcFilters<Cfg>;
  using Stage = BandNhwcStage<Cfg>;
  using Filters::Filters;
  using Filters::PAIRS, Filters::UNITS, Filters::OWN, Filters::OWNERS, Filters::FILTER_BYTES, Filters::LEAD,
      Filters::filters;
  using Filters::R, Filters::SH, Filters::SW, Filters::DH, Filters::CW, Filters::L, Filters::RG, Filters::HH,
      Filters::PI, Filters::OUT, Filters::UNIT, Filters::SKIP, Filters::ROW_BYTES, Filters::UNIT_BYTES, Filters::WIDE,
      Filters::STAGE_COLUMNS, Filters::CHUNK, Filters::chunk_at;
  using Filters::ring, Filters::a, Filters::bias, Filters::pick;
  static constexpr int STRIPS = HH * RG * PI, TILES = (STRIPS + 7) / 8, ALONG = Cfg::THREADS / 32 / OWNERS;
  static constexpr int ROWS = (L - 1) * SH + (R - 1) * DH + 1;  // input rows that L output rows read

  SL_DEVICE void multiply(float (&sum)[4], const unsigned (&a)[UNITS][2], const unsigned (&b)[2 * UNITS]) const {
    SL_UNROLL
    for (int unit = 0; unit + 1 < UNITS; unit += 2) {
      const unsigned rows[4] = {a[unit][0], a[unit][1], a[unit + 1][0], a[unit + 1][1]};
      const unsigned columns[4] = {b[2 * unit], b[2 * unit + 1], b[2 * unit + 2], b[2 * unit + 3]};
      mma_sparse_k32<Cfg::DTYPE>(sum, rows, columns, pick);
    }
    if constexpr (UNITS % 2 == 1) {
      const unsigned columns[2] = {b[2 * UNITS - 2], b[2 * UNITS - 1]};
      mma_sparse_k16<Cfg::DTYPE>(sum, a[UNITS - 1], columns, pick);
    }
  }

  /// Column n of the products is this strip of the tile: the even ones first, so that the 4 lanes that store together
  /// store 4 neighbouring strips.
  SL_DEVICE static int strip_of(int n) { return n / 2 + n % 2 * 4; }

  /// Where a lane reads and writes for one tile of 8 strips.
  struct Place {
    static constexpr int LOADS = (UNITS + 1) / 2;
    int read[LOADS];  ///< bytes from the ring to its chunk of each load_matrix of ring row 0
    int row;          ///< its strip's first input row, in bytes, before the step's is added
    int word[2];      ///< bytes from the stage to its two columns of the products, of the first of its two channels
    bool store[2];
  };
  SL_DEVICE static Place place(int group, int tile) {
    const int lane = thread_id() % 32, g = lane / 4, t = lane % 4;
    Place at;
    const int number = tile * 8 + strip_of(lane % 8), strip = number < STRIPS ? number : 0;
    SL_UNROLL
    for (int i = 0; i < Place::LOADS; ++i) {
      // Lanes beyond the matrices of a load name any valid row.
      const int chunk = strip % HH * (2 * SW) + 4 * i + (2 * i + 1 < UNITS ? lane / 8 : lane / 8 % 2);
      at.read[i] = (group * Cfg::GROUP_CHUNKS + strip / (HH * RG) * Cfg::IMAGE_CHUNKS + chunk_at(chunk)) * 16;
    }
    at.row = strip / HH % RG * UNIT_BYTES;
    SL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int mine = tile * 8 + strip_of(2 * t + i);
      at.store[i] = STRIPS % 8 == 0 || mine < STRIPS;
      at.word[i] = ((group * PAIRS + g % PAIRS) * (WIDE ? 2 : 1) * Cfg::STAGE_PITCH + mine / HH * (L * STAGE_COLUMNS) +
                    mine % HH * OUT + g / PAIRS) *
                   4;
    }
    return at;
  }

  SL_DEVICE static void read(unsigned (&b)[2 * UNITS], Shared row, const Place& at, int own) {
    row = row + own * (OWNERS * Cfg::GROUP_CHUNKS * 16);
    SL_UNROLL
    for (int i = 0; i < Place::LOADS; ++i) {
      if (2 * i + 1 < UNITS) {
        unsigned words[4];
        load_matrix<4>(words, row + at.read[i]);
        SL_UNROLL
        for (int j = 0; j < 4; ++j) b[4 * i + j] = words[j];
      } else {
        unsigned words[2];
        load_matrix<2>(words, row + at.read[i]);
        b[4 * i] = words[0], b[4 * i + 1] = words[1];
      }
    }
  }

  SL_DEVICE static constexpr bool used(int row) { return input_used(row, L, SH, DH, R); }

  /// A warp's tiles are TURN strips apart. In bytes, those after the first lie a constant further in the ring and in
  /// the stage where a turn moves on by whole images of one row of strips, or within one.
  static constexpr int TURN = 8 * ALONG, TURNS = TILES / ALONG;
  static constexpr bool STEADY = CHUNK == 0 && RG == 1 && STRIPS % TURN == 0 && (TURN % HH == 0 || HH % TURN == 0);
  SL_DEVICE static constexpr int further_in_ring(int turn) {
    return (turn * TURN / HH * Cfg::IMAGE_CHUNKS + turn * TURN % HH * (2 * SW)) * 16;
  }
  SL_DEVICE static constexpr int further_in_stage(int turn) {
    return (turn * TURN / HH * (L * STAGE_COLUMNS) + turn * TURN % HH * OUT) * 4;
  }

  /// L output rows of 8 strips and a group of channels; `slot` = the unit of the ring where the step begins.
  SL_DEVICE void compute(const Place& at, int turn, int own, int slot, const Stage& stage) const {
    const Shared ring = Filters::ring + further_in_ring(turn);
    int unit = at.row + slot * UNIT_BYTES;
    if (RG > 1 && unit >= Cfg::SLOTS * UNIT_BYTES) unit -= Cfg::SLOTS * UNIT_BYTES;
    Shared from = ring + unit;
    const Shared to =
        stage.memory + (own * (OWNERS * PAIRS * (WIDE ? 2 : 1) * Cfg::STAGE_PITCH * 4) + further_in_stage(turn));
    float sum[L][4];
    SL_UNROLL
    for (int r = 0; r < ROWS; ++r) {
      if (r > 0 && (SKIP + r) % UNIT == 0) {
        unit += UNIT_BYTES;
        if (unit >= Cfg::SLOTS * UNIT_BYTES) unit -= Cfg::SLOTS * UNIT_BYTES;
        from = ring + unit;
      }
      if (!used(r)) continue;
      unsigned b[2 * UNITS];
      read(b, from + (SKIP + r) % UNIT * ROW_BYTES, at, own);
      SL_UNROLL
      for (int l = 0; l < L; ++l) {
        const int below = r - l * SH;  // of the output row's first input row
        if (below < 0 || below % DH != 0 || below / DH >= R) continue;
        if (below == 0) sum[l][0] = sum[l][1] = bias[own][0], sum[l][2] = sum[l][3] = bias[own][1];
        multiply(sum[l], a[own][below / DH], b);
        if (below / DH == R - 1) {
          SL_UNROLL
          for (int i = 0; i < 2; ++i) {
            if (at.store[i]) stage.put(to + (at.word[i] + l * STAGE_COLUMNS * 4), sum[l][i], sum[l][2 + i]);
          }
        }
      }
    }
  }

  /// As compute(), CHUNK kernel rows at a time.
  SL_DEVICE void compute_chunks(const Place& at, int group, int slot, const Stage& stage) const {
    constexpr int SPAN = (L - 1) * SH + (CHUNK - 1) * DH + 1;  // input rows that a chunk reads
    static_assert(CHUNK == 0 || (CW == 2 && OWN == 1 && UNIT_BYTES == UNIT * ROW_BYTES), "one pair, rows without gaps");
    constexpr int END = Cfg::SLOTS * UNIT_BYTES;
    const int lane = rest<32>(keep(thread_id())), ahead = LEAD - over<4>(lane) * SW;
    const Shared filter = filters() + ahead % 2 * Cfg::FILTER_COPY + group * (2 * R * FILTER_BYTES) +
                          (2 * rest<4>(lane) + ahead / 2 * 2) * 2;
    float sum[L][4];
    SL_UNROLL
    for (int l = 0; l < L; ++l) sum[l][0] = sum[l][1] = bias[0][0], sum[l][2] = sum[l][3] = bias[0][1];
    int start = at.row + (slot * UNIT + SKIP) * ROW_BYTES;
    SL_UNROLL_BY(1)
    for (int r0 = 0; r0 < R; r0 += CHUNK) {
      unsigned bands[CHUNK][UNITS][2];
      SL_UNROLL
      for (int c = 0; c < CHUNK; ++c) {
        SL_UNROLL
        for (int i = 0; i < 2 * UNITS; ++i) {
          const Shared word = filter + r0 * FILTER_BYTES + ((i % 2 * R + c) * FILTER_BYTES + i / 2 * 16);
          bands[c][i / 2][i % 2] = r0 + c < R ? load_shared(word) : 0U;
        }
      }
      if (start >= END) start -= END;
      int row = start;
      start += CHUNK * DH * ROW_BYTES;
      SL_UNROLL
      for (int r = 0; r < SPAN; ++r) {
        bool needed = false;
        SL_UNROLL
        for (int l = 0; l < L; ++l) {
          const int below = r - l * SH;
          needed = needed || (below >= 0 && below % DH == 0 && below / DH < CHUNK);
        }
        if (needed && r0 * DH + r < ROWS) {
          unsigned b[2 * UNITS];
          read(b, ring + row, at, 0);
          SL_UNROLL
          for (int l = 0; l < L; ++l) {
            const int below = r - l * SH;
            if (below < 0 || below % DH != 0 || below / DH >= CHUNK) continue;
            multiply(sum[l], bands[below / DH], b);
          }
        }
        row += ROW_BYTES;
        if (row >= END) row -= END;
      }
    }
    SL_UNROLL
    for (int l = 0; l < L; ++l) {
      SL_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (at.store[i]) stage.put(stage.memory + (at.word[i] + l * STAGE_COLUMNS * 4), sum[l][i], sum[l][2 + i]);
      }
    }
  }

  /// The outputs of all groups that the warp owns, of which `group` is the first.
  SL_DEVICE void compute_group(const Place& at, int turn, int group, int slot, const Stage& stage) const {
    if constexpr (CHUNK > 0) {
      compute_chunks(at, group, slot, stage);
    } else {
      SL_UNROLL
      for (int own = 0; own < OWN; ++own) compute(at, turn, own, slot, stage);
    }
  }

  /// One output row under one kernel row, all tiles of the warp: a tile's pixels are on their way while those of the
  /// one before are multiplied.
  SL_DEVICE void compute_row(const Place& first, const Stage& stage) const {
    constexpr int COUNT = TURNS * OWN;
    unsigned b[2][2 * UNITS];
    read(b[0], ring, first, 0);
    SL_UNROLL
    for (int i = 0; i < COUNT; ++i) {
      const int turn = i / OWN, own = i % OWN;
      if (i + 1 < COUNT) read(b[(i + 1) % 2], ring + further_in_ring((i + 1) / OWN), first, (i + 1) % OWN);
      float sum[4] = {bias[own][0], bias[own][0], bias[own][1], bias[own][1]};
      multiply(sum, a[own][0], b[i % 2]);
      const Shared to =
          stage.memory + (own * (OWNERS * PAIRS * (WIDE ? 2 : 1) * Cfg::STAGE_PITCH * 4) + further_in_stage(turn));
      SL_UNROLL
      for (int j = 0; j < 2; ++j) {
        if (first.store[j]) stage.put(to + first.word[j], sum[j], sum[2 + j]);
      }
    }
  }

  /// Of all tiles of the warp, of which `first` is the first.
  SL_DEVICE void compute_all(const Place& first, int group, int along, int slot, const Stage& stage) const {
    if constexpr (STEADY || TILES == ALONG) {
      SL_UNROLL_BY(R == 1 ? TURNS : 1)
      for (int turn = 0; turn < TURNS; ++turn) compute_group(first, turn, group, slot, stage);
    } else {
      SL_UNROLL_BY(1)
      for (int tile = along; tile < TILES; tile += ALONG) compute_group(place(group, tile), 0, group, slot, stage);
    }
  }
};

}  // namespace sl
