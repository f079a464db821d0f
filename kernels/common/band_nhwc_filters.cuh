// Filter rows as sparse banded matrices for dw_band_nhwc (kernels/dw_band_nhwc.cuh): in a warp's registers, or, where
// they do not fit there, as rows in shared memory whose words are those of the matrices.
#pragma once

#include "common/band_nhwc_shape.cuh"
#include "common/conv.cuh"

namespace sl {

/// The filters of a warp's groups of channels. Cfg as of BandNhwc.
template <class Cfg>
struct BandNhwcFilters : BandNhwcShape<Cfg> {
  using Shape = BandNhwcShape<Cfg>;
  using Shape::R, Shape::S, Shape::SW, Shape::DW, Shape::CH, Shape::CW, Shape::OUT, Shape::CHUNK_PIXELS, Shape::GROUPS,
      Shape::CHUNK, Shape::flipped;
  static constexpr int PAIRS = CW / 2;                               // of channels, in a warp
  static constexpr int REACH_W = (OUT - 1) * SW + (S - 1) * DW + 1;  // input columns that a strip reads
  static constexpr int UNITS = (REACH_W + 2 * CHUNK_PIXELS - 1) / (2 * CHUNK_PIXELS);  // of K = 16
  static constexpr int OWN = Cfg::OWN, OWNERS = GROUPS / OWN;

  const SlParams& p;
  const Shared ring;  ///< of input rows; filters in shared memory lie FILTER_AT bytes further
  const int k0;       ///< the block's first channel
  unsigned a[OWN][CHUNK > 0 ? 1 : R][UNITS][2];
  float bias[OWN][2];
  unsigned pick;  ///< which two of every four values the matrices keep

  SL_DEVICE BandNhwcFilters(const SlParams& params, int first_channel, Shared memory)
      : p(params), ring(memory), k0(first_channel) {}

  /// Weights are read at constant offsets from one address: `base` = w[k, 0, 0] moved by `from` columns, of which
  /// column `u` is wanted; 0 between the taps and beyond them.
  SL_DEVICE static unsigned tap(const Bits<Cfg>* base, int from, int u, int offset, bool present) {
    if constexpr (DW == 1) {
      return present && inside(from + u, S) ? load_readonly(base + u + offset) : 0U;
    } else {
      const int at = from + u;
      if (!present || at < 0 || at % DW != 0 || at / DW >= S) return 0;
      return load_readonly(base - from + at / DW + offset);
    }
  }

  /// The band matrices of a group of channels. Row g: channel 2 (g % PAIRS) of output column g / PAIRS; row g + 8 the
  /// channel beside it.
  SL_DEVICE void load_filter(int own, int group) {
    const int lane = thread_id() % 32, g = lane / 4, t = lane % 4 ^ (flipped(group) != 0 ? 1 : 0);
    const int channel = 2 * (g % PAIRS), k = k0 + group * CW + channel;
    const int from = (CW == 2 ? 2 * t : (CW == 4 ? t : t / 2)) - g / PAIRS * SW;
    const bool mine = CW < 8 || t % 2 == channel / 4;
    const Bits<Cfg>* base = keep(static_cast<const Bits<Cfg>*>(p.weight) + (w_offset<Cfg>(k, 0, 0, 0) + from));
    SL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const bool present = mine && k + i < static_cast<int>(p.k);
      SL_UNROLL
      for (int r = 0; r < R; ++r) {
        const int offset = (i * R + r) * S;
        SL_UNROLL
        for (int unit = 0; unit < UNITS; ++unit) {
          const int u = unit * 2 * CHUNK_PIXELS;
          const unsigned weight = tap(base, from, u, offset, present);
          if constexpr (CW == 2) {  // two pixels of one channel
            a[own][r][unit][i] = weight | (tap(base, from, u + 1, offset, present) << 16);
          } else {  // one of 4 channels; the other pick is multiplied by 0
            a[own][r][unit][i] = (channel + i) % 4 == 3 ? weight << 16 : weight;
          }
        }
      }
      bias[own][i] = k + i < static_cast<int>(p.k) ? bias_of<Cfg>(p, k + i) : 0.0F;
    }
    if constexpr (CW == 2) {
      pick = 0xDDDD8888U;  // columns 0 and 2 for the first channel, 1 and 3 for the second
    } else {               // its own column and the last; the last's own: the first and the last
      pick = channel % 4 == 0 ? 0xDDDDCCCCU : 0xCCCCEEEEU;
    }
  }

  // Where the band matrices do not fit in registers, the filters lie in shared memory as rows of FILTER_ROW elements:
  // OUT - 1 strides of zeros, then the taps with zeros between them and after them. So a lane's word of a band matrix
  // is a word of such a row; for an odd distance, of the copy that is one element ahead.
  static constexpr int FILTER_BYTES = Cfg::FILTER_ROW * 2, LEAD = (OUT - 1) * SW;
  SL_DEVICE Shared filters() const { return ring + Cfg::FILTER_AT; }

  SL_DEVICE void clear_filters() const {
    for (int i = thread_id() * 16; i < 2 * Cfg::FILTER_COPY; i += Cfg::THREADS * 16) clear_shared(filters() + i);
  }
  SL_DEVICE void stage_filters() const {
    const int left = static_cast<int>(p.k) - k0, count = (left < CH ? left : CH) * (R * S);
    const Bits<Cfg>* from = keep(static_cast<const Bits<Cfg>*>(p.weight) + w_offset<Cfg>(k0, 0, 0, 0));
    SL_UNROLL_BY(4)
    for (int i = thread_id(); i < count; i += Cfg::THREADS) {
      const unsigned weight = load_readonly(from + i);
      const Shared to = filters() + over<S>(i) * FILTER_BYTES + (rest<S>(i) * DW + LEAD) * 2;
      store_shared_half(to, weight);
      store_shared_half(to + (Cfg::FILTER_COPY - 2), weight);
    }
  }

  /// The filters of groups `group`, `group` + OWNERS, ...: into registers, or into shared memory after clear_filters().
  SL_DEVICE void load(int group) {
    if constexpr (CHUNK > 0) {
      stage_filters();
      pick = 0xDDDD8888U;
      const int k = k0 + 2 * group;
      SL_UNROLL
      for (int i = 0; i < 2; ++i) bias[0][i] = k + i < static_cast<int>(p.k) ? bias_of<Cfg>(p, k + i) : 0.0F;
    } else {
      SL_UNROLL
      for (int own = 0; own < OWN; ++own) load_filter(own, group + own * OWNERS);
    }
  }
};

}  // namespace sl
