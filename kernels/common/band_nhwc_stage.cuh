// Outputs of dw_band_nhwc on their way (kernels/dw_band_nhwc.cuh): staged in shared memory, where the matrices left
// them, and stored from there in vectors along the channels, with residual and activation.
#pragma once

#include "common/band_nhwc_shape.cuh"
#include "common/exact.cuh"

namespace sl {

/// The outputs of a block's step. Cfg as of BandNhwc.
template <class Cfg>
struct BandNhwcStage : BandNhwcShape<Cfg> {
  using Shape = BandNhwcShape<Cfg>;
  using E = Element<Cfg::DTYPE>;
  using Shape::CH, Shape::L, Shape::RG, Shape::PI, Shape::WIDE, Shape::STAGE_COLUMNS;
  using typename Shape::I, typename Shape::Cursor, typename Shape::Block;

  const SlParams& p;
  const Shared memory;
  const int k0, q0;  ///< first channel, first output column

  SL_DEVICE BandNhwcStage(const SlParams& params, const Block& block, Shared first)
      : p(params), memory(first), k0(block.k0), q0(block.q0) {}

  /// The sums of two neighbouring channels to `word` of the lower one's row of the stage.
  SL_DEVICE void put(Shared word, float low, float high) const {
    if constexpr (WIDE) {
      store_shared(word, float_bits(low));
      store_shared(word + Cfg::STAGE_PITCH * 4, float_bits(high));
    } else {
      low = activate<Cfg::ACT>(low, p.alpha, p.beta), high = activate<Cfg::ACT>(high, p.alpha, p.beta);
      store_shared(word, E::narrow2(low, high));
    }
  }

  /// One place of y: VECTOR channels of a pixel, and where they are staged.
  static constexpr int VECTOR = Cfg::STORE, STAGED = WIDE ? VECTOR : (VECTOR + 1) / 2;  // words
  using Vector = Raw<2 * VECTOR>;
  struct Staged {
    unsigned word[STAGED];
  };
  SL_DEVICE static Staged load_staged(Shared from) {
    Staged staged;
    SL_UNROLL
    for (int i = 0; i < STAGED; ++i) staged.word[i] = load_shared(from + i * Cfg::STAGE_PITCH * 4);
    return staged;
  }

  /// Not 0 where something is not finite; a false alarm is harmless.
  SL_DEVICE static unsigned unsound(const Staged& staged) {
    if constexpr (WIDE) {
      float zero = 0.0F;
      SL_UNROLL
      for (int i = 0; i < STAGED; ++i) zero = sl::fma(float_from_bits(staged.word[i]), 0.0F, zero);
      return float_bits(zero) & 0x7fffffffU;
    } else {
      unsigned zero = 0;
      SL_UNROLL
      for (int i = 0; i < STAGED; ++i) zero = fma2<Cfg::DTYPE>(staged.word[i], 0, zero);
      return zero & 0x7fff7fffU;
    }
  }

  SL_DEVICE Vector finished(const Staged& staged, I offset, int odd) const {
    Vector out;
    if constexpr (WIDE) {
      const Vector z = load_raw<2 * VECTOR, false>(static_cast<const Bits<Cfg>*>(p.z) + offset);
      float value[VECTOR];
      SL_UNROLL
      for (int i = 0; i < VECTOR; ++i) {
        value[i] = activate<Cfg::ACT>(float_from_bits(staged.word[i]) + element<Cfg>(z, i), p.alpha, p.beta);
      }
      SL_UNROLL
      for (int i = 0; i < Vector::words; ++i) {
        out.word[i] = VECTOR == 1 ? E::narrow(value[0]) : E::narrow2(value[2 * i], value[(2 * i + 1) % VECTOR]);
      }
    } else {
      SL_UNROLL
      for (int i = 0; i < Vector::words; ++i) out.word[i] = staged.word[i];
      if (VECTOR == 1) out.word[0] = (out.word[0] >> (16 * odd)) & 0xffffU;
    }
    return out;
  }

  using Across = Spread<Cfg::QC, Cfg::THREADS / (CH / VECTOR)>;  // threads along the columns of y, and its lines
  SL_DEVICE static void load_turn(Staged (&staged)[Across::STEPS], Shared from, int turn) {
    SL_UNROLL
    for (int i = 0; i < Across::STEPS; ++i) {
      staged[i] = load_staged(from + (turn * Across::ROWS * STAGE_COLUMNS + i * Across::AT_ONCE) * 4);
    }
  }

  /// A step's outputs from the stage to y.
  SL_DEVICE void drain(const Cursor& now, int step) const {
    constexpr int VECTORS = CH / VECTOR;
    constexpr int LINES = PI * RG * L, TURNS = (LINES + Across::ROWS - 1) / Across::ROWS;
    constexpr int BATCH = Across::STEPS * STAGED > 8 ? 1 : (STAGED * Across::STEPS > 4 ? 2 : 4);  // turns at once
    const int thread = keep(thread_id()), vector = rest<VECTORS>(thread), k = k0 + vector * VECTOR;
    const Across mine(over<VECTORS>(thread));
    if (mine.idle() || k >= static_cast<int>(p.k)) return;
    const int row0 = now.row + step * (RG * L), columns = static_cast<int>(p.q) - q0 - mine.column;
    const int pair_row = WIDE ? vector * VECTOR : vector * VECTOR / 2;
    const Shared from = keep(memory + (pair_row * Cfg::STAGE_PITCH + mine.row * STAGE_COLUMNS + mine.column) * 4);
    const I row_elements = static_cast<I>(p.q) * static_cast<I>(p.k);
    const I first = y_offset<Cfg>(p, now.n, static_cast<I>(k), static_cast<I>(row0), static_cast<I>(q0 + mine.column));
    SL_UNROLL
    for (int turn0 = 0; turn0 < TURNS; turn0 += BATCH) {
      Staged staged[BATCH][Across::STEPS];
      I offset[BATCH];
      bool there[BATCH][Across::STEPS];
      // Loads first, whether there is such an output or not: the stage is padded by what they reach beyond it.
      SL_UNROLL
      for (int u = 0; u < BATCH && turn0 + u < TURNS; ++u) load_turn(staged[u], from, turn0 + u);
      unsigned bad = 0;
      SL_UNROLL
      for (int u = 0; u < BATCH && turn0 + u < TURNS; ++u) {
        const int line = (turn0 + u) * Across::ROWS + mine.row, image = PI == 1 ? 0 : over<RG * L>(line);
        const int row = PI == 1 ? line : rest<RG * L>(line);
        const bool line_there = (TURNS * Across::ROWS == LINES || line < LINES) && row0 + row < static_cast<int>(p.p) &&
                                (PI == 1 || image < now.images);
        offset[u] = first + static_cast<I>(row) * row_elements;
        if (PI > 1) offset[u] += static_cast<I>(image) * static_cast<I>(p.p) * row_elements;
        SL_UNROLL
        for (int i = 0; i < Across::STEPS; ++i) {
          there[u][i] = line_there && i * Across::AT_ONCE < columns &&
                        (Across::STEPS * Across::AT_ONCE == Cfg::QC || i * Across::AT_ONCE + mine.column < Cfg::QC);
          if (there[u][i]) bad |= unsound(staged[u][i]);
        }
      }
      if (bad != 0) {
        store_exactly(now, turn0, BATCH, vector, k, mine.row, mine.column, columns, row0);
        continue;
      }
      SL_UNROLL
      for (int u = 0; u < BATCH && turn0 + u < TURNS; ++u) {
        SL_UNROLL
        for (int i = 0; i < Across::STEPS; ++i) {
          if (there[u][i]) {
            const I at = offset[u] + static_cast<I>(i * Across::AT_ONCE) * static_cast<I>(p.k);
            store_raw<2 * VECTOR>(static_cast<Bits<Cfg>*>(p.y) + at, finished(staged[u][i], at, vector % 2));
          }
        }
      }
    }
  }

  /// Stores a thread's outputs of `turns` turns one by one, and computes the NaNs among them again: an Inf or NaN
  /// beside the window met a structural zero. Rare, so rolled up. The stage stays as it is: others may read the same
  /// words.
  SL_DEVICE void store_exactly(const Cursor& now, int turn0, int turns, int vector, int k, int line0, int column0,
                               int columns, int row0) const {
    SL_UNROLL_BY(1)
    for (int number = 0; number < turns * Across::STEPS * VECTOR; ++number) {
      const int i = number % VECTOR, step = number / VECTOR % Across::STEPS * Across::AT_ONCE;
      const int line = (turn0 + number / (VECTOR * Across::STEPS)) * Across::ROWS + line0;
      const int image = line / (RG * L), row = row0 + line % (RG * L), column = q0 + column0 + step;
      if (line >= PI * RG * L || image >= now.images || row >= static_cast<int>(p.p)) continue;
      if (step >= columns || step + column0 >= Cfg::QC) continue;
      const int channel = vector * VECTOR + i;
      const Shared word =
          memory + ((WIDE ? channel : channel / 2) * Cfg::STAGE_PITCH + line * STAGE_COLUMNS + column0 + step) * 4;
      const I at = y_offset<Cfg>(p, now.n + image, static_cast<I>(k + i), static_cast<I>(row), static_cast<I>(column));
      const auto exact = [&] { return exact_sum<Cfg>(p, now.n + image, k + i, row, column) + bias_of<Cfg>(p, k + i); };
      unsigned y;
      if constexpr (WIDE) {
        float value = float_from_bits(load_shared(word));
        if (!finite(value)) value = exact();
        value += E::widen(load_raw<2, false>(static_cast<const Bits<Cfg>*>(p.z) + at).word[0]);
        y = E::narrow(activate<Cfg::ACT>(value, p.alpha, p.beta));
      } else {
        y = load_shared_half(word + channel % 2 * 2);
        const bool nan = (y & 0x7fffU) > (Cfg::DTYPE == kF16 ? 0x7c00U : 0x7f80U);
        if (nan) y = E::narrow(activate<Cfg::ACT>(exact(), p.alpha, p.beta));
      }
      store_raw<2>(static_cast<Bits<Cfg>*>(p.y) + at, Raw<2>{{y}});
    }
  }
};

}  // namespace sl
