// dw_band: depthwise NCHW on the matrix unit. One mma multiplies 16 strips x 16 input columns (A) by a banded matrix of
// one filter row (B) to 8 neighbouring outputs of each strip. A warp owns STRIPS row pieces of BLOCKS strips each and
// slides down them: input rows arrive in the warp's own ring in shared memory by asynchronous copies, every byte once,
// ldmatrix reads the overlapping windows, and each row is added to the SLOTS output rows it belongs to. No barrier.
#pragma once

#include "common/band.cuh"
#include "common/exact.cuh"

namespace sl {

/// The ring of one warp, in chunks of 8 columns (16 bytes: a row of ldmatrix).
template <class Cfg>
struct BandRing {
  static constexpr int SLOTS = (Cfg::R + Cfg::STEP - 1) / Cfg::STEP;  // output rows in flight
  static constexpr int FRESH =
      Cfg::STEP < Cfg::R ? Cfg::STEP : Cfg::R;                     // input rows of one step that some output reads
  static constexpr int BLOCK_CHUNKS = Cfg::TILES * Cfg::STRIDE_W;  // from one strip's window to the next one's
  static constexpr int CHUNKS = (Cfg::BLOCKS - 1) * BLOCK_CHUNKS + Cfg::WORDS;  // of one row of a piece

  static constexpr int ROW = Cfg::STRIPS * Cfg::PITCH;          // chunks of one row of all pieces
  static constexpr int STAGE = Cfg::BATCH * FRESH * ROW;        // chunks of one turn: BATCH steps
  static constexpr int ELEMENTS = Cfg::DEPTH * STAGE * 8;       // of one warp's ring
  static constexpr int COPIES = Cfg::STRIPS * Cfg::ROW_COPIES;  // of one row of all pieces
  static constexpr int LANE_COPIES = (COPIES + 31) / 32;
  static constexpr int LEAVING = Cfg::STRIPS * Cfg::OUT_PITCH;         // elements of finished rows of one warp
  static constexpr int PIECE_VECTORS = Cfg::BATCH * Cfg::OUT_ROW / 8;  // of finished rows of a piece
  static constexpr int VECTORS = Cfg::STRIPS * PIECE_VECTORS;
  static constexpr int LANE_VECTORS = (VECTORS + 31) / 32;
  static constexpr int BESIDE = CHUNKS * 8 / Cfg::COPY - Cfg::ROW_COPIES;  // as many elements again lie left and right
  static constexpr int RINGS = (Cfg::THREADS / 32) * ELEMENTS;             // elements of all rings of a block
};

/// Where a piece is: image, first output row, first output column. IMAGES: rows are the images of a batch.
template <class Cfg>
struct BandPiece {
  Index<Cfg> n;
  int row, column;
  bool exists;

  /// div[1] = pieces along a row, div[2] = parts of a plane (phases run fastest); aux[0] = output rows of a part,
  /// aux[1] = pieces of a channel; aux[2] = steps that every part skips, whose rows lie above the plane.
  SL_DEVICE BandPiece(const SlParams& p, Index<Cfg> number) {
    exists = number < static_cast<Index<Cfg>>(p.aux[1]);
    Index<Cfg> rest = exists ? number : 0;
    column = static_cast<int>(take(rest, p.div[1])) * (8 * Cfg::TILES * Cfg::BLOCKS);
    const int part = static_cast<int>(take(rest, p.div[2]));
    row = part % Cfg::PHASES + part / Cfg::PHASES * static_cast<int>(p.aux[0]) * Cfg::PHASES;
    n = rest;
  }
};

/// Cfg: DTYPE BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* MULT CPG WLAYOUT LAYOUT; TILES of 8 output columns a strip;
/// WORDS = chunks of a strip's window; LEAD = columns between the window's start and the first tap of output 0;
/// WHOLE_ROW = the window is the input row itself; FULL_ROWS = a piece spans its row, so that zeros left and right of
/// it stay in the ring; ROW_COPIES of COPY elements (which divides the row length: a copy lies wholly inside or
/// outside) bring one row of a piece, to element ROW_START of its place; STORE = elements a store; SHARE = output
/// channels that multiply one A; BATCH = steps of one turn of the loop, DEPTH = turns that the ring holds; BLOCKS,
/// STRIPS, PITCH = chunks from a piece's row to the next piece's; PHASES, STEP: output rows p, p + PHASES, ... slide
/// over input rows DIL_H apart, STEP of them for each output row; IMAGES = the rows are those of one-row images. work =
/// 32 threads a warp: div[0] = channels / SHARE, run fastest; see BandPiece.
template <class Cfg>
SL_DEVICE void dw_band(const SlParams& p) {
  using I = Index<Cfg>;
  using Ring = BandRing<Cfg>;
  constexpr int TILES = Cfg::TILES, WORDS = Cfg::WORDS, SHARE = Cfg::SHARE, STEP = Cfg::STEP, BATCH = Cfg::BATCH;
  constexpr int SLOTS = Ring::SLOTS, FRESH = Ring::FRESH, DEPTH = Cfg::DEPTH;

  SL_SHARED(unsigned short, rings, Ring::RINGS + (Cfg::THREADS / 32) * Ring::LEAVING);
  const long long thread = block_id() * Cfg::THREADS + thread_id();
  if (thread >= p.work) return;  // whole warps
  const int lane = thread_id() % 32, g = lane / 4, t = lane % 4;
  unsigned short* const ring = keep(&rings[thread_id() / 32 * Ring::ELEMENTS]);
  I rest = static_cast<I>(thread / 32);
  const I k = take(rest, p.div[0]) * SHARE;
  const I first_piece = rest * Cfg::STRIPS;

  const int height = static_cast<int>(Cfg::IMAGES ? p.n : p.h), width = static_cast<int>(p.w);
  const int height_out = static_cast<int>(Cfg::IMAGES ? p.n : p.p);
  const I plane = static_cast<I>(p.h) * static_cast<I>(width);
  const I row_pitch = Cfg::IMAGES ? static_cast<I>(p.c) * plane : static_cast<I>(width) * Cfg::DIL_H;
  const int part_rows = static_cast<int>(p.aux[0]), skip = static_cast<int>(p.aux[2]);

  // What this lane copies: the same columns of the same pieces, row after row.
  const Bits<Cfg>* from[Ring::LANE_COPIES];
  int h[Ring::LANE_COPIES], limit[Ring::LANE_COPIES];
  unsigned short* to[Ring::LANE_COPIES];
  SL_UNROLL
  for (int i = 0; i < Ring::LANE_COPIES; ++i) {
    const int number = lane + 32 * i;
    const int piece = number / Cfg::ROW_COPIES, part = number % Cfg::ROW_COPIES;
    const BandPiece<Cfg> at(p, first_piece + (piece < Cfg::STRIPS ? piece : 0));
    const int start =
        Cfg::FULL_ROWS || Cfg::WHOLE_ROW
            ? 0
            : static_cast<int>(static_cast<long long>(at.column) * Cfg::STRIDE_W - p.pad_left) - Cfg::LEAD;
    const int column = start + part * Cfg::COPY;
    h[i] = static_cast<int>(static_cast<long long>(at.row) * (Cfg::IMAGES ? 1 : Cfg::STRIDE_H) - p.pad_top) +
           skip * (STEP * Cfg::DIL_H);
    from[i] = x_at<Cfg>(p, at.n, static_cast<I>(k / Cfg::MULT)) +
              (static_cast<long long>(h[i]) * (Cfg::IMAGES ? static_cast<long long>(row_pitch) : p.w) + column);
    limit[i] = at.exists && inside(column, width) ? height : 0;
    to[i] = ring + piece * (Cfg::PITCH * 8) + Cfg::ROW_START + part * Cfg::COPY;
  }
  const auto* const nothing = keep(static_cast<const Bits<Cfg>*>(p.x));  // a valid address for a copy of zeros
  int fill = 0;  // the stage that the next copies go to, in elements
  const auto fetch = [&] {
    SL_UNROLL
    for (int i = 0; i < Ring::LANE_COPIES; ++i) {
      if (32 * i + 32 <= Ring::COPIES || lane + 32 * i < Ring::COPIES) {
        SL_UNROLL
        for (int j = 0; j < BATCH * FRESH; ++j) {
          const int ahead = j / FRESH * STEP + j % FRESH;
          const bool present = inside(h[i] + ahead * Cfg::DIL_H, limit[i]);
          copy_async<2 * Cfg::COPY>(to[i] + fill + j * (Ring::ROW * 8), present ? from[i] + ahead * row_pitch : nothing,
                                    present);
        }
      }
      from[i] += BATCH * STEP * row_pitch;
      h[i] += BATCH * STEP * Cfg::DIL_H;
    }
    fill = fill == (DEPTH - 1) * Ring::STAGE * 8 ? 0 : fill + Ring::STAGE * 8;
  };
  const int turns = keep((part_rows + SLOTS - 1 - skip + BATCH - 1) / BATCH);
  SL_UNROLL_BY(1)
  for (int i = 0; i < DEPTH - 1; ++i) {
    if (i < turns) fetch();
    copy_async_commit();
  }

  if constexpr (Cfg::FULL_ROWS != 0 && Ring::BESIDE > 0) {  // what lies left and right of a row never changes
    SL_UNROLL_BY(1)
    for (int i = lane; i < DEPTH * BATCH * FRESH * Cfg::STRIPS * Ring::BESIDE; i += 32) {
      const int row = i / Ring::BESIDE, part = i % Ring::BESIDE;
      const int at = part < Cfg::ROW_START / Cfg::COPY ? part : part + Cfg::ROW_COPIES;
      store_raw<2 * Cfg::COPY>(ring + row * (Cfg::PITCH * 8) + at * Cfg::COPY, zero_raw<2 * Cfg::COPY>());
    }
  }

  Band<Cfg> band[SHARE];
  float bias[SHARE];
  SL_UNROLL
  for (int m = 0; m < SHARE; ++m) {
    band[m].load(static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k + m) * (Cfg::R * Cfg::S), g, t);
    bias[m] = bias_of<Cfg>(p, k + m);
  }

  // The two strips whose sums this lane holds.
  int rows[2], outputs[2];
  const I y_pitch =
      Cfg::IMAGES ? static_cast<I>(p.k) * static_cast<I>(p.p) * static_cast<I>(p.q) : static_cast<I>(p.q) * Cfg::PHASES;
  constexpr bool STAGED = Cfg::OUT_ROW > 0;
  unsigned short* const leaving = &rings[Ring::RINGS + thread_id() / 32 * Ring::LEAVING];
  SlParams of_strip[2] = {
      p, p};  // y (staged: of the first row in shared memory) and z where the row goes that the next step completes
  SL_UNROLL
  for (int e = 0; e < 2; ++e) {
    const int strip = g + 8 * e;
    const bool used = strip < Cfg::STRIPS * Cfg::BLOCKS;
    const BandPiece<Cfg> at(p, first_piece + (used ? strip / Cfg::BLOCKS : 0));
    const int column = at.column + strip % Cfg::BLOCKS * (8 * TILES) + 2 * t;
    const int left = (height_out - at.row + Cfg::PHASES - 1) / Cfg::PHASES;
    outputs[e] = static_cast<int>(p.q) - column;
    rows[e] = !at.exists || !used || outputs[e] <= 0 ? 0 : left < part_rows ? left : part_rows;
    const I first = Cfg::IMAGES ? y_offset<Cfg>(p, static_cast<I>(at.row), k, 0, static_cast<I>(column))
                                : y_offset<Cfg>(p, at.n, k, static_cast<I>(at.row), static_cast<I>(column));
    if constexpr (STAGED) {
      of_strip[e].y = leaving + (used ? strip / Cfg::BLOCKS : 0) * Cfg::OUT_PITCH + column;
    } else {
      of_strip[e].y = static_cast<Bits<Cfg>*>(p.y) + (first - (SLOTS - 1 - skip) * y_pitch);
    }
    if constexpr (Cfg::RESIDUAL != 0)
      of_strip[e].z = static_cast<const Bits<Cfg>*>(p.z) + (first - (SLOTS - 1 - skip) * y_pitch);
  }
  // Staged: the 16-byte vectors of finished rows that this lane stores.
  Bits<Cfg>* vector_to[STAGED ? Ring::LANE_VECTORS : 1];
  int vector_rows[STAGED ? Ring::LANE_VECTORS : 1], vector_from[STAGED ? Ring::LANE_VECTORS : 1];
  if constexpr (STAGED) {
    SL_UNROLL
    for (int i = 0; i < Ring::LANE_VECTORS; ++i) {
      const int number = lane + 32 * i, piece = number / Ring::PIECE_VECTORS, part = number % Ring::PIECE_VECTORS;
      const BandPiece<Cfg> at(p, first_piece + (piece < Cfg::STRIPS ? piece : 0));
      const int left = height_out - at.row;
      vector_rows[i] = !at.exists || piece >= Cfg::STRIPS ? 0 : left < part_rows ? left : part_rows;
      vector_from[i] = piece * Cfg::OUT_PITCH + part * 8;
      vector_to[i] = static_cast<Bits<Cfg>*>(p.y) +
                     (y_offset<Cfg>(p, at.n, k, static_cast<I>(at.row), 0) - (SLOTS - 1 - skip) * y_pitch + part * 8);
    }
  }

  float sums[SHARE][TILES][SLOTS][4];  // the last one is never read: it holds what is ready
  SL_UNROLL
  for (int m = 0; m < SHARE; ++m) {
    SL_UNROLL
    for (int tile = 0; tile < TILES; ++tile) {
      SL_UNROLL
      for (int d = 0; d < SLOTS; ++d) {
        SL_UNROLL
        for (int i = 0; i < 4; ++i) sums[m][tile][d][i] = 0.0F;
      }
    }
  }

  // The row of ldmatrix that this lane names: strip lane % 16 (an unused one: the last); lanes from 16 on name the next
  // chunk.
  const int named = lane % 16 < Cfg::STRIPS * Cfg::BLOCKS ? lane % 16 : Cfg::STRIPS * Cfg::BLOCKS - 1;
  const unsigned short* const window =
      ring + (named / Cfg::BLOCKS * Cfg::PITCH + named % Cfg::BLOCKS * Ring::BLOCK_CHUNKS + lane / 16) * 8;
  int drain = 0;
  int done = 1 - SLOTS + skip;  // the output row of the part that the next step completes
  SL_UNROLL_BY(1)
  for (int turn = 0; turn < turns; ++turn) {
    copy_async_wait<DEPTH - 2>();
    warp_sync();  // what other lanes copied is there, and what they read of the stage filled next has been read
    if (turn + DEPTH - 1 < turns) fetch();
    copy_async_commit();
    float ready[BATCH][SHARE][TILES][4];
    SL_UNROLL
    for (int u = 0; u < BATCH; ++u) {
      SL_UNROLL
      for (int j = 0; j < FRESH; ++j) {
        unsigned a[(WORDS + 1) / 2][4];
        SL_UNROLL
        for (int i = 0; i < WORDS; i += 2) {
          const unsigned short* const row = window + drain + ((u * FRESH + j) * Ring::ROW + i) * 8;
          if (i + 1 < WORDS) {
            load_matrix<4>(a[i / 2], row);
          } else {
            unsigned half[2];
            load_matrix<2>(half, row);
            a[i / 2][0] = half[0], a[i / 2][1] = half[1];
          }
        }
        SL_UNROLL
        for (int m = 0; m < SHARE; ++m) {
          SL_UNROLL
          for (int tile = 0; tile < TILES; ++tile) {
            SL_UNROLL
            for (int d = SLOTS - 1; d >= 0; --d) {
              float(&sum)[4] = sums[m][tile][d];
              if (j == 0) {  // every row is one step older
                SL_UNROLL
                for (int i = 0; i < 4; ++i) sum[i] = d > 0 ? sums[m][tile][d > 0 ? d - 1 : 0][i] : 0.0F;
              }
              const int r = d * STEP + j;
              if (r >= Cfg::R) continue;
              SL_UNROLL
              for (int i = 0; i < WORDS; i += 2) {
                if (!Band<Cfg>::used(tile, i / 2)) continue;
                if (i + 1 < WORDS) {
                  mma_k16<Cfg::DTYPE>(sum, a[i / 2], band[m].word[tile][r][i], band[m].word[tile][r][i + 1]);
                } else {
                  const unsigned half[2] = {a[i / 2][0], a[i / 2][1]};
                  mma_k8<Cfg::DTYPE>(sum, half, band[m].word[tile][r][i]);
                }
              }
            }
          }
        }
      }
      SL_UNROLL
      for (int m = 0; m < SHARE; ++m) {
        SL_UNROLL
        for (int tile = 0; tile < TILES; ++tile) {
          SL_UNROLL
          for (int i = 0; i < 4; ++i) ready[u][m][tile][i] = sums[m][tile][SLOTS - 1][i];
        }
      }
    }
    drain = drain == (DEPTH - 1) * Ring::STAGE * 8 ? 0 : drain + Ring::STAGE * 8;

    float leak = 0.0F;  // NaN where a sum is not finite
    SL_UNROLL
    for (int u = 0; u < BATCH; ++u) {
      float of_row = 0.0F;  // chains of their own
      SL_UNROLL
      for (int m = 0; m < SHARE; ++m) {
        SL_UNROLL
        for (int tile = 0; tile < TILES; ++tile) {
          SL_UNROLL
          for (int i = 0; i < 4; ++i) of_row = sl::fma(ready[u][m][tile][i], 0.0F, of_row);
        }
      }
      leak += of_row;
    }
    if (leak != leak) {
      SL_UNROLL_BY(1)
      for (int number = 0; number < BATCH * SHARE * TILES * 4; ++number) {
        const int i = number % 4, tile = number / 4 % TILES, m = number / (4 * TILES) % SHARE;
        const int u = number / (4 * TILES * SHARE);
        const int strip = g + i / 2 * 8;
        const BandPiece<Cfg> at(p, first_piece + strip / Cfg::BLOCKS);
        const int q = at.column + (strip % Cfg::BLOCKS * TILES + tile) * 8 + 2 * t + i % 2;
        const int row = at.row + (done + u) * Cfg::PHASES;
        if (!inside(done + u, i < 2 ? rows[0] : rows[1]) || q >= static_cast<int>(p.q)) continue;
        const float exact = exact_sum<Cfg>(p, Cfg::IMAGES ? static_cast<I>(row) : at.n, static_cast<int>(k) + m,
                                           Cfg::IMAGES ? 0 : row, q);
        SL_UNROLL
        for (int candidate = 0; candidate < BATCH * SHARE * TILES * 4; ++candidate) {  // registers have no index
          float& one = ready[candidate / (4 * TILES * SHARE)][candidate / (4 * TILES) % SHARE][candidate / 4 % TILES]
                            [candidate % 4];
          if (candidate == number) one = exact;
        }
      }
    }
    SL_UNROLL
    for (int u = 0; u < BATCH; ++u) {
      SL_UNROLL
      for (int e = 0; e < 2; ++e) {
        if (inside(done + u, rows[e])) {
          SL_UNROLL
          for (int m = 0; m < SHARE; ++m) {
            SL_UNROLL
            for (int tile = 0; tile < TILES; ++tile) {
              const float(&sum)[4] = ready[u][m][tile];
              float pair[2] = {sum[2 * e], sum[2 * e + 1]};
              if constexpr (Cfg::BIAS != kBiasNone) pair[0] += bias[m], pair[1] += bias[m];
              const I at = static_cast<I>(m) * static_cast<I>(p.p) * static_cast<I>(p.q) + tile * 8;
              // Of the first tile the first output exists where rows[e] is not 0.
              const int limit = tile == 0 && Cfg::STORE == 2 ? 2 : outputs[e] - tile * 8;
              SlParams to = of_strip[e];
              if constexpr (STAGED) to.y = static_cast<Bits<Cfg>*>(to.y) + u * Cfg::OUT_ROW;
              finish_row<Cfg, Cfg::STORE>(to, at, pair, limit);
            }
          }
        }
        if constexpr (!STAGED) of_strip[e].y = static_cast<Bits<Cfg>*>(of_strip[e].y) + y_pitch;
        if constexpr (Cfg::RESIDUAL != 0) of_strip[e].z = static_cast<const Bits<Cfg>*>(of_strip[e].z) + y_pitch;
      }
    }
    if constexpr (STAGED) {
      warp_sync();
      SL_UNROLL
      for (int i = 0; i < Ring::LANE_VECTORS; ++i) {
        if (inside(done, vector_rows[i])) store_raw<16>(vector_to[i], load_raw<16, false>(leaving + vector_from[i]));
        vector_to[i] += BATCH * y_pitch;
      }
    }
    done += BATCH;
  }
}

}  // namespace sl
