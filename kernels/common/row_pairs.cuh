// A tile of the input in shared memory as words of two rows, (x[2i][j], x[2i + 1][j]) of a channel: whatever the tap
// and the place, one aligned load brings a word of a matrix fragment. 16-bit, both layouts.
#pragma once

#include "common/conv.cuh"
#include "common/output_tile.cuh"

namespace sl {

/// Cfg: DTYPE LAYOUT INDEX64 R S STRIDE_* DIL_W (DIL_H 1); VEC LEAD PART TILES ROWS AHEAD THREADS as in mult_mma.
/// CHANNELS of the tile. div[1] = column tiles, div[2] = row tiles.
template <class Cfg, int CHANNELS>
struct RowPairs {
  using I = Index<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DW = Cfg::DIL_W;
  static constexpr int PART = Cfg::PART, VEC = Cfg::VEC, LEAD = Cfg::LEAD;
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;

  // Output rows start on either row of a word where the stride is odd.
  static constexpr int PARITIES = SH % 2 != 0 ? 2 : 1;
  static constexpr int PAIRS = PARITIES == 2 ? R / 2 + 1 : (R + 1) / 2;  // of kernel rows
  static constexpr int HIGH = 2 * PARITIES * Cfg::ROWS, WIDE = 8 * PART * Cfg::TILES;
  static constexpr int PAIRS_IN = (HIGH - 1) * SH / 2 + PAIRS;
  static constexpr int COLS_IN = LEAD + (WIDE - 1) * SW + (S - 1) * DW + 1;
  static constexpr int PIECES = NHWC ? COLS_IN * (CHANNELS / VEC) : (COLS_IN + VEC - 1) / VEC;  // loads of a line
  static constexpr int LINES = NHWC ? PAIRS_IN : PAIRS_IN * CHANNELS;

  // In words. Columns lie by their remainder mod the stride, that of a place's first tap first, so that places are
  // neighbours. Lanes of one load are places x four taps, which may end one run of taps and begin the next: runs lie so
  // that those are in other banks (places side by side), or go on as if they were one (places with room between them).
  SL_DEVICE static constexpr int up_to(int size, int rest, int modulus) {
    return size + ((rest - size) % modulus + modulus) % modulus;
  }
  static constexpr int SHIFT = (SW - LEAD % SW) % SW;
  static constexpr int RUN = (S + 1) / 2;  // taps of a phase where the stride is 2
  static constexpr int COLUMNS = ((NHWC ? COLS_IN : PIECES * VEC) + SHIFT + SW - 1) / SW;
  static constexpr int GAP = PART == 1 ? 9 : PART == 2 ? 14 : 0, BANKS = PART <= 2 ? 32 : 8;
  static constexpr int PHASE = SW == 2 ? up_to(COLUMNS, RUN + GAP, BANKS) : COLUMNS;
  static constexpr int LINE = SW == 2 ? up_to(2 * PHASE, S + 2 * GAP, BANKS)
                              : NHWC  ? up_to(PHASE * SW, S + GAP, BANKS)
                                      : up_to(PHASE * SW, 4, 8);  // stores of 4 words
  static constexpr int PLANE = up_to(PAIRS_IN * LINE, NHWC ? 10 : 12, 32);
  static constexpr int BYTES = 4 * ((CHANNELS * PLANE + 3) / 4 * 4);

  SL_DEVICE static constexpr int place_of(int column) { return (column + SHIFT) % SW * PHASE + (column + SHIFT) / SW; }

  using Tile = OutputTile<Cfg>;
  SL_DEVICE static Tile tile(I number, const SlParams& p) { return output_tile<Cfg, HIGH, WIDE>(number, p); }

  // A thread reads one piece of every TOGETHER-th line (or TURNS pieces of every line): VEC elements of both rows.
  static constexpr int TOGETHER = Cfg::THREADS > PIECES ? Cfg::THREADS / PIECES : 1;
  static constexpr int TURNS = TOGETHER > 1 ? 1 : (PIECES + Cfg::THREADS - 1) / Cfg::THREADS;
  static constexpr int STEPS = (LINES + TOGETHER - 1) / TOGETHER;
  static constexpr int BATCH = Cfg::AHEAD != 0 || STEPS < 8 ? STEPS : 8;  // loads on their way
  static constexpr bool WHOLE = LINES % (TOGETHER * BATCH) == 0;          // no line to check
  struct Item {
    Raw<2 * VEC> row[2];
  };
  struct Piece {
    int line, piece;  ///< the thread's first line; within a line
    int channel, column;
    bool real;
    SL_DEVICE explicit Piece(int turn) {
      const int i = thread_id() + turn * Cfg::THREADS;
      line = TOGETHER > 1 ? i / PIECES : 0;
      piece = TOGETHER > 1 ? i % PIECES : i;
      channel = NHWC ? piece % (CHANNELS / VEC) * VEC : 0;
      column = NHWC ? piece / (CHANNELS / VEC) : piece * VEC;
      real = line < TOGETHER && piece < PIECES;
    }
  };

  SL_DEVICE static void load(const SlParams& p, const Tile& at, int channel0, int turn, int first_step,
                             Item (&to)[BATCH]) {
    const Piece own(turn);
    const int left = static_cast<int>(static_cast<long long>(at.column) * SW - p.pad_left) - Cfg::LEAD;
    const int top = static_cast<int>(static_cast<long long>(at.row) * SH - p.pad_top);
    const int height = static_cast<int>(p.h), channels = static_cast<int>(p.c) - channel0;
    const bool there = own.real && inside(left + own.column, static_cast<int>(p.w)) && own.channel < channels;
    const I row_step = pixel_offset<Cfg>(p, 1, 0), plane = static_cast<I>(p.h) * static_cast<I>(p.w);
    const Bits<Cfg>* x = x_at<Cfg>(p, at.n, channel0 + own.channel) + pixel_offset<Cfg>(p, top, left + own.column);
    SL_UNROLL
    for (int step = 0; step < BATCH; ++step) {
      const int line = own.line + (first_step + step) * TOGETHER;
      const int channel = NHWC ? 0 : line / PAIRS_IN, row = (NHWC ? line : line % PAIRS_IN) * 2;
      const bool present = there && (WHOLE || line < LINES) && (NHWC || channel < channels);
      const Bits<Cfg>* from = x + (channel * plane + row * row_step);
      SL_UNROLL
      for (int e = 0; e < 2; ++e) {
        to[step].row[e] = zero_raw<2 * VEC>();
        if (present && inside(top + row + e, height)) to[step].row[e] = load_raw<2 * VEC, true>(from + e * row_step);
      }
    }
  }
  SL_DEVICE static void put(Shared buffer, int turn, int first_step, const Item (&from)[BATCH]) {
    const Piece own(turn);
    if (!own.real) return;
    SL_UNROLL
    for (int step = 0; step < BATCH; ++step) {
      const int line = own.line + (first_step + step) * TOGETHER;
      if (!WHOLE && line >= LINES) continue;
      unsigned word[VEC];
      SL_UNROLL
      for (int j = 0; j < VEC; ++j) {
        word[j] =
            permute_bytes(from[step].row[0].word[j / 2], from[step].row[1].word[j / 2], j % 2 != 0 ? 0x7632U : 0x5410U);
      }
      const int start = NHWC ? own.channel * PLANE + line * LINE + place_of(own.column)
                             : line / PAIRS_IN * PLANE + line % PAIRS_IN * LINE;
      const Shared to = buffer + 4 * start;
      if constexpr (NHWC) {
        SL_UNROLL
        for (int j = 0; j < VEC; ++j) store_shared(to + 4 * j * PLANE, word[j]);
      } else if constexpr (SW == 1 && VEC % 4 == 0) {
        SL_UNROLL
        for (int j = 0; j < VEC; j += 4) {
          store_shared4(to + 4 * (own.column + j), word[j], word[j + 1], word[j + 2], word[j + 3]);
        }
      } else {
        SL_UNROLL
        for (int j = 0; j < VEC; ++j) store_shared(to + 4 * place_of(own.column + j), word[j]);
      }
    }
  }
};

}  // namespace sl
