// dw_band_plane: depthwise NCHW on the matrix unit for small planes, whose rows are too short for vectors. A block
// brings CHANNELS neighbouring planes of 16 images into shared memory, as they lie in memory. One mma multiplies one
// whole input row of 16 images (A) by a banded matrix of one filter row (B): what lies left and right of a row is no
// column of B, so nothing is padded. Outputs leave by way of shared memory too.
#pragma once

#include "common/band.cuh"
#include "common/exact.cuh"

namespace sl {

/// What a warp computes at a time: GROUPS x parts x output channels of a block.
template <class Cfg>
struct PlaneUnit {
  int group, row, rows, channel;

  /// aux[0] = output rows of a part, aux[1] = parts (phases run fastest).
  SL_DEVICE PlaneUnit(const SlParams& p, int number) {
    group = number % Cfg::GROUPS;
    const int parts = static_cast<int>(p.aux[1]), rest = number / Cfg::GROUPS;
    const int part = rest % parts;
    channel = rest / parts;
    row = part % Cfg::PHASES + part / Cfg::PHASES * static_cast<int>(p.aux[0]) * Cfg::PHASES;
    const int left = (static_cast<int>(p.p) - row + Cfg::PHASES - 1) / Cfg::PHASES;
    rows = left < static_cast<int>(p.aux[0]) ? left : static_cast<int>(p.aux[0]);
  }
};

/// Cfg: DTYPE BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* MULT CPG WLAYOUT LAYOUT; WORDS = ceil(row length / 8), ODD =
/// rows start at odd elements too; LEAD = -pad_left; TILES of 8 output columns a unit, GROUPS of them; STORE = elements
/// of a pair in shared memory; CHANNELS; COPY, FLUSH = elements of a copy in and out; PHASES, STEP: output rows p, p +
/// PHASES, ... slide over input rows DIL_H apart, STEP of them for each output row.
/// div[0] = channel blocks, run fastest; div[1], div[2] = copies of an image in and out; aux[2], aux[3] = 32-bit words
/// from one image's planes to the next one's, in and out.
template <class Cfg>
SL_DEVICE void dw_band_plane(const SlParams& p) {
  using I = Index<Cfg>;
  constexpr int IMAGES = 16;  // rows of A
  constexpr int TILES = Cfg::TILES, WORDS = Cfg::WORDS, STEP = Cfg::STEP;
  constexpr int SLOTS = (Cfg::R + STEP - 1) / STEP, FRESH = STEP < Cfg::R ? STEP : Cfg::R;

  SL_DYNAMIC_SHARED(unsigned, memory);
  const int pitch_in = static_cast<int>(p.aux[2]), pitch_out = static_cast<int>(p.aux[3]);
  unsigned* const out = memory + IMAGES * pitch_in;
  const int lane = thread_id() % 32, g = lane / 4, t = lane % 4;
  I rest = static_cast<I>(block_id());
  const I c0 = take(rest, p.div[0]) * Cfg::CHANNELS;
  const I n0 = rest * IMAGES;
  const int channels = static_cast<int>(static_cast<I>(p.c) - c0 < Cfg::CHANNELS ? static_cast<I>(p.c) - c0
                                                                                 : static_cast<I>(Cfg::CHANNELS));
  const int images =
      static_cast<int>(static_cast<I>(p.n) - n0 < IMAGES ? static_cast<I>(p.n) - n0 : static_cast<I>(IMAGES));
  const int height = static_cast<int>(p.h), width = static_cast<int>(p.w);
  const int plane = height * width, plane_out = static_cast<int>(p.p * p.q);

  {
    const int copies = channels * plane / Cfg::COPY, full = static_cast<int>(p.div[1].divisor);
    for (int i = thread_id(); i < IMAGES * full; i += Cfg::THREADS) {
      const int image = div(i, p.div[1]), at = (i - image * full);
      if (at >= copies) continue;
      const bool present = image < images;
      const I from = ((n0 + (present ? image : 0)) * static_cast<I>(p.c) + c0) * static_cast<I>(plane) + at * Cfg::COPY;
      copy_async<2 * Cfg::COPY>(memory + image * pitch_in + at * (Cfg::COPY / 2),
                                static_cast<const Bits<Cfg>*>(p.x) + from, present);
    }
    copy_async_commit();
    // Words that the last row reads beyond its end.
    for (int i = thread_id(); i < IMAGES * 8; i += Cfg::THREADS) {
      memory[i / 8 * pitch_in + channels * plane / 2 + i % 8] = 0;
    }
  }

  const int units = channels * (Cfg::MULT * Cfg::GROUPS) * static_cast<int>(p.aux[1]);
  bool arrived = false;
  for (int number = thread_id() / 32; number < units || !arrived; number += Cfg::THREADS / 32) {
    const bool working = number < units;
    const PlaneUnit<Cfg> unit(p, working ? number : 0);
    const int k = static_cast<int>(c0) * Cfg::MULT + unit.channel;
    Band<Cfg> band;
    band.load(static_cast<const Bits<Cfg>*>(p.weight) + static_cast<long long>(k) * (Cfg::R * Cfg::S), g, t,
              unit.group * (TILES * 8 * Cfg::STRIDE_W), width);
    const float bias = bias_of<Cfg>(p, k);
    if (!arrived) {
      copy_async_wait<0>();
      barrier();
      arrived = true;
      if (!working) break;
    }

    float sums[TILES][SLOTS][4];
    SL_UNROLL
    for (int tile = 0; tile < TILES; ++tile) {
      SL_UNROLL
      for (int d = 0; d < SLOTS; ++d) {
        SL_UNROLL
        for (int i = 0; i < 4; ++i) sums[tile][d][i] = 0.0F;
      }
    }
    const auto advance = [&](float(&sum)[4], int tile, int d) {
      SL_UNROLL
      for (int i = 0; i < 4; ++i) sum[i] = d > 0 ? sums[tile][d > 0 ? d - 1 : 0][i] : 0.0F;
    };
    const auto emit = [&](int done) {
      if (!inside(done, unit.rows)) return;
      const int row = unit.row + done * Cfg::PHASES;
      SL_UNROLL
      for (int tile = 0; tile < TILES; ++tile) {
        float(&sum)[4] = sums[tile][SLOTS - 1];
        const int q0 = (unit.group * TILES + tile) * 8 + 2 * t;
        float leak = 0.0F;  // NaN where a sum is not finite
        SL_UNROLL
        for (int i = 0; i < 4; ++i) leak = sl::fma(sum[i], 0.0F, leak);
        if (leak != leak) {
          SL_UNROLL_BY(1)
          for (int i = 0; i < 4; ++i) {
            const int image = g + i / 2 * 8, q = q0 + i % 2;
            if (image >= images || q >= static_cast<int>(p.q)) continue;
            const float exact = exact_sum<Cfg>(p, n0 + image, k, row, q);
            if (i == 0) sum[0] = exact;
            if (i == 1) sum[1] = exact;
            if (i == 2) sum[2] = exact;
            if (i == 3) sum[3] = exact;
          }
        }
        SL_UNROLL
        for (int e = 0; e < 2; ++e) {
          const int image = g + 8 * e;
          if (image >= images) continue;
          SlParams to = p;
          to.y = reinterpret_cast<Bits<Cfg>*>(out + image * pitch_out) +
                 (unit.channel * plane_out + row * static_cast<int>(p.q) + q0);
          if constexpr (Cfg::RESIDUAL != 0) {
            to.z = static_cast<const Bits<Cfg>*>(p.z) +
                   y_offset<Cfg>(p, n0 + image, static_cast<I>(k), static_cast<I>(row), static_cast<I>(q0));
          }
          float pair[2] = {sum[2 * e], sum[2 * e + 1]};
          if constexpr (Cfg::BIAS != kBiasNone) pair[0] += bias, pair[1] += bias;
          finish_row<Cfg, Cfg::STORE>(to, 0, pair, static_cast<int>(p.q) - q0);
        }
      }
    };

    // Rows outside the plane add nothing: the first steps are skipped, the last ones only empty the slots.
    const int top = static_cast<int>(static_cast<long long>(unit.row) * Cfg::STRIDE_H - p.pad_top);
    int step = top < 0 ? -top / (STEP * Cfg::DIL_H) : 0;
    step = step < SLOTS - 1 ? step : SLOTS - 1;
    const int steps = unit.rows + SLOTS - 1;
    int h = top + step * (STEP * Cfg::DIL_H);
    const int planes_at = unit.channel / Cfg::MULT * plane;
    SL_UNROLL_BY(2)
    for (; step < steps && h < height; ++step) {
      SL_UNROLL
      for (int j = 0; j < FRESH; ++j) {
        const int row = h + j * Cfg::DIL_H;
        const int first = planes_at + row * width;  // element
        const unsigned* const words = memory + g * pitch_in + (first / 2 + t);
        unsigned a[2][WORDS];
        SL_UNROLL
        for (int e = 0; e < 2; ++e) {
          SL_UNROLL
          for (int i = 0; i < WORDS; ++i) {
            a[e][i] = 0;
            if (inside(row, height)) {
              const unsigned* const from = words + e * 8 * pitch_in + 4 * i;
              a[e][i] = Cfg::ODD != 0 ? permute_bytes(from[0], from[1], first % 2 != 0 ? 0x5432U : 0x3210U) : from[0];
            }
          }
        }
        SL_UNROLL
        for (int tile = 0; tile < TILES; ++tile) {
          SL_UNROLL
          for (int d = SLOTS - 1; d >= 0; --d) {
            float(&sum)[4] = sums[tile][d];
            if (j == 0) advance(sum, tile, d);
            const int r = d * STEP + j;
            if (r >= Cfg::R) continue;
            SL_UNROLL
            for (int i = 0; i < WORDS; i += 2) {
              if (Cfg::GROUPS == 1 && !Band<Cfg>::used(tile, i / 2)) continue;
              if (i + 1 < WORDS) {
                const unsigned both[4] = {a[0][i], a[1][i], a[0][i + 1], a[1][i + 1]};
                mma_k16<Cfg::DTYPE>(sum, both, band.word[tile][r][i], band.word[tile][r][i + 1]);
              } else {
                const unsigned one[2] = {a[0][i], a[1][i]};
                mma_k8<Cfg::DTYPE>(sum, one, band.word[tile][r][i]);
              }
            }
          }
        }
      }
      h += STEP * Cfg::DIL_H;
      emit(step - (SLOTS - 1));
    }
    SL_UNROLL_BY(1)
    for (; step < steps; ++step) {
      SL_UNROLL
      for (int tile = 0; tile < TILES; ++tile) {
        SL_UNROLL
        for (int d = SLOTS - 1; d >= 0; --d) advance(sums[tile][d], tile, d);
      }
      emit(step - (SLOTS - 1));
    }
  }

  barrier();
  const int copies = channels * Cfg::MULT * plane_out / Cfg::FLUSH, full = static_cast<int>(p.div[2].divisor);
  for (int i = thread_id(); i < images * full; i += Cfg::THREADS) {
    const int image = div(i, p.div[2]), at = (i - image * full);
    if (at >= copies) continue;
    const I to = ((n0 + image) * static_cast<I>(p.k) + c0 * Cfg::MULT) * static_cast<I>(plane_out) + at * Cfg::FLUSH;
    store_raw<2 * Cfg::FLUSH>(
        static_cast<Bits<Cfg>*>(p.y) + to,
        load_raw<2 * Cfg::FLUSH, false>(reinterpret_cast<const Bits<Cfg>*>(out + image * pitch_out) + at * Cfg::FLUSH));
  }
}

}  // namespace sl
