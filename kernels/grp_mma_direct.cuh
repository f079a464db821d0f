// grp_mma_direct: 2, 4 or 8 channels a group on the matrix unit in one round trip to memory, 16-bit. A lane asks for
// the words that it holds of every fragment, of x and of the weights, straight into registers and before it waits for
// anything: no shared memory, no barrier. For calls so small that latency is what they cost.
#pragma once

#include "common/conv.cuh"
#include "common/exact.cuh"
#include "common/window_taps.cuh"

namespace sl {

/// The lane's words of the weights: channels 2t, 2t+1 of an octet (8 neighbouring input channels, so whole groups) in
/// each tap, for output g of each unit of 8 outputs. Zeros where the output's group does not hold those channels.
template <class Cfg>
struct DirectMmaWeights {
  static constexpr bool OHWI = Cfg::WLAYOUT == kOhwi;
  static constexpr int CPG = Cfg::CPG, TAPS = Cfg::R * Cfg::S, UNITS = Cfg::UNITS;
  static constexpr int PARTS = Cfg::MULT / CPG;  ///< units that read the same octet
  unsigned word[UNITS][TAPS];

  SL_DEVICE void ask(const SlParams& p, int unit, int g, int t) {
    const Bits<Cfg>* const from = keep(static_cast<const Bits<Cfg>*>(p.weight) +
                                       ((unit * 8 + g) * (CPG * TAPS) + 2 * t % CPG * (OHWI ? 1 : TAPS)));
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) {
      const int group = ((unit + u) % PARTS * 8 + g) / Cfg::MULT;  // of the octet's
      SL_UNROLL
      for (int i = 0; i < TAPS; ++i) {
        word[u][i] = 0;
        if (CPG < 8 && 2 * t / CPG != group) continue;
        word[u][i] = load_raw<4, true>(from + (u * 8 * CPG * TAPS + i * (OHWI ? CPG : 2))).word[0];
      }
    }
  }
  /// Two channels are 2 TAPS elements in a row (but for OHWI): makes words of both channels of a tap of them.
  SL_DEVICE void turn() {
    if constexpr (!OHWI) {
      SL_UNROLL
      for (int u = 0; u < UNITS; ++u) {
        unsigned raw[TAPS];
        SL_UNROLL
        for (int i = 0; i < TAPS; ++i) raw[i] = word[u][i];
        SL_UNROLL
        for (int i = 0; i < TAPS; ++i) {
          const int j = TAPS + i;  // element of the second channel
          word[u][i] =
              permute_bytes(raw[i / 2], raw[j / 2], (i % 2 != 0 ? 0x32U : 0x10U) | (j % 2 != 0 ? 0x7600U : 0x5400U));
        }
      }
    }
  }
};

/// Where a warp and its lanes are.
struct DirectMmaPlace {
  long long n;
  int unit, p0, q0;  ///< the warp's first
  int g, t;
};

/// NHWC: rows of the matrix are 8 columns of two strips of ROWS output rows, a fragment's words as they lie in memory.
template <class Cfg>
struct DirectMmaNhwc {
  using Weights = DirectMmaWeights<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, TAPS = R * S, SH = Cfg::STRIDE_H, DH = Cfg::DIL_H, L = Cfg::ROWS;
  static constexpr int UNITS = Cfg::UNITS, PARTS = Weights::PARTS, OCTETS = UNITS > PARTS ? UNITS / PARTS : 1;
  static constexpr int TALL = 2 * L, WIDE = 8;                     ///< output rows and columns of a warp
  static constexpr int HIGH = (TALL - 1) * SH + (R - 1) * DH + 1;  ///< input rows
  static constexpr int TILES = L, SUMS = 4;                        ///< matrices of sums of a unit; a lane's of one
  static constexpr long long X_ROW = static_cast<long long>(Cfg::W) * Cfg::C;
  static constexpr long long Y_ROW = static_cast<long long>(Cfg::Q) * Cfg::K;

  SL_DEVICE static constexpr bool row_used(int i) { return input_used(i, TALL, SH, DH, R); }

  DirectMmaPlace at;
  unsigned value[HIGH][S][OCTETS];  ///< channels 2t, 2t+1 under output column g and tap s
  unsigned z[Cfg::RESIDUAL != 0 ? UNITS : 1][L][2];
  float bias[UNITS][2];

  SL_DEVICE int row_of(int l, int e) const { return at.p0 + e / 2 * L + l; }
  SL_DEVICE int column_of(int, int) const { return at.q0 + at.g; }
  SL_DEVICE int out_of(int u, int e) const { return (at.unit + u) * 8 + 2 * at.t + e % 2; }

  SL_DEVICE bool present(int l, int half) const {
    return (Cfg::Q % 8 == 0 || at.q0 + at.g < Cfg::Q) && (Cfg::P % TALL == 0 || at.p0 + half * L + l < Cfg::P);
  }
  SL_DEVICE long long y_of() const {
    return at.n * (Y_ROW * Cfg::P) + at.p0 * Y_ROW + (at.q0 + at.g) * Cfg::K + at.unit * 8;
  }

  SL_DEVICE void ask(const SlParams& p) {
    const int top = at.p0 * SH - Cfg::PAD_TOP, left = (at.q0 + at.g) * Cfg::STRIDE_W - Cfg::PAD_LEFT;
    const Bits<Cfg>* const x =
        keep(static_cast<const Bits<Cfg>*>(p.x) +
             (at.n * (X_ROW * Cfg::H) + top * X_ROW + left * Cfg::C + at.unit / PARTS * 8 + 2 * at.t));
    SL_UNROLL
    for (int i = 0; i < HIGH; ++i) {
      const bool row_inside = inside(top + i, Cfg::H);
      SL_UNROLL
      for (int s = 0; s < S; ++s) {
        const bool there = row_inside && inside(left + s * Cfg::DIL_W, Cfg::W);
        SL_UNROLL
        for (int o = 0; o < OCTETS; ++o) {
          value[i][s][o] = 0;
          if (!row_used(i) || !there) continue;
          value[i][s][o] = load_raw<4, true>(x + (i * X_ROW + s * Cfg::DIL_W * Cfg::C + o * 8)).word[0];
        }
      }
    }
  }
  SL_DEVICE void ask_rest(const SlParams& p) {
    if constexpr (Cfg::RESIDUAL != 0) {
      const Bits<Cfg>* const from = keep(static_cast<const Bits<Cfg>*>(p.z) + (y_of() + 2 * at.t));
      SL_UNROLL
      for (int i = 0; i < UNITS * TALL; ++i) {
        const int u = i / TALL, l = i / 2 % L, half = i % 2;
        z[u][l][half] = 0;
        if (present(l, half)) z[u][l][half] = load_raw<4, false>(from + ((half * L + l) * Y_ROW + u * 8)).word[0];
      }
    }
    SL_UNROLL
    for (int i = 0; i < UNITS * 2; ++i) bias[i / 2][i % 2] = bias_of<Cfg>(p, out_of(i / 2, i % 2));
  }

  SL_DEVICE unsigned word(int i, int l, int half, int o) const {
    return value[(half * L + l) * SH + i / S * DH][i % S][o];
  }
  SL_DEVICE void multiply(float (&sum)[UNITS][TILES][SUMS], const Weights& weight) const {
    SL_UNROLL
    for (int i = 0; i < UNITS * L; ++i) {
      const int u = i / L, l = i % L, o = u / PARTS;
      sum[u][l][0] = sum[u][l][1] = sum[u][l][2] = sum[u][l][3] = 0.0F;
      SL_UNROLL
      for (int tap = 0; tap + 1 < TAPS; tap += 2) {
        const unsigned a[4] = {word(tap, l, 0, o), word(tap, l, 1, o), word(tap + 1, l, 0, o), word(tap + 1, l, 1, o)};
        mma_k16<Cfg::DTYPE>(sum[u][l], a, weight.word[u][tap], weight.word[u][tap + 1]);
      }
      if constexpr (TAPS % 2 != 0) {
        const unsigned a[2] = {word(TAPS - 1, l, 0, o), word(TAPS - 1, l, 1, o)};
        mma_k8<Cfg::DTYPE>(sum[u][l], a, weight.word[u][TAPS - 1]);
      }
    }
  }

  /// With SWAP lanes of two neighbouring t exchange halves: each stores 4 outputs of one unit.
  SL_DEVICE void store(const SlParams& p, const float (&sum)[UNITS][TILES][SUMS]) const {
    constexpr int TOGETHER = Cfg::SWAP != 0 ? 2 : 1;
    const int t = at.t;
    Bits<Cfg>* const y =
        keep(static_cast<Bits<Cfg>*>(p.y) + (y_of() + (TOGETHER == 2 ? t % 2 * 8 + t / 2 * 4 : 2 * t)));
    SL_UNROLL
    for (int i = 0; i < UNITS / TOGETHER * TALL; ++i) {
      const int u = i / TALL * TOGETHER, l = i / 2 % L, half = i % 2;
      Raw<4 * TOGETHER> raw;
      SL_UNROLL
      for (int v = 0; v < TOGETHER; ++v) {
        float out[2];
        SL_UNROLL
        for (int e = 0; e < 2; ++e) {
          float a = sum[u + v][l][2 * half + e] + bias[u + v][e];
          if constexpr (Cfg::RESIDUAL != 0) {
            Raw<4> one;
            one.word[0] = z[u + v][l][half];
            a += element<Cfg>(one, e);
          }
          out[e] = activate<Cfg::ACT>(a, p.alpha, p.beta);
        }
        raw.word[v] = Element<Cfg::DTYPE>::narrow2(out[0], out[1]);
      }
      if constexpr (TOGETHER == 2) {
        const unsigned other = shuffle(t % 2 != 0 ? raw.word[0] : raw.word[1], (4 * at.g + t) ^ 1);
        raw.word[0] = t % 2 != 0 ? other : raw.word[0];
        raw.word[1] = t % 2 != 0 ? raw.word[1] : other;
      }
      if (present(l, half)) store_raw(y + ((half * L + l) * Y_ROW + u * 8), raw);
    }
  }
};

/// NCHW: rows of the matrix are the 8 outputs of a unit (the other 8 stay zero), its columns every PART-th column of an
/// output row; a fragment's words come from two planes.
template <class Cfg>
struct DirectMmaNchw {
  using Weights = DirectMmaWeights<Cfg>;
  static constexpr int R = Cfg::R, S = Cfg::S, TAPS = R * S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W;
  static constexpr int DH = Cfg::DIL_H, DW = Cfg::DIL_W, L = Cfg::ROWS, PART = Cfg::PART, VEC = Cfg::VEC;
  static constexpr int UNITS = Cfg::UNITS, PARTS = Weights::PARTS, OCTETS = UNITS > PARTS ? UNITS / PARTS : 1;
  static constexpr int TALL = L, WIDE = 8 * PART;
  static constexpr int HIGH = (L - 1) * SH + (R - 1) * DH + 1, SPAN = (PART - 1) * SW + (S - 1) * DW + 1;
  static constexpr int LEAD = Cfg::LEAD, LOADS = (LEAD + SPAN + VEC - 1) / VEC, BYTES = 2 * VEC;
  static constexpr int TILES = L * PART, SUMS = 2;
  static constexpr long long X_PLANE = static_cast<long long>(Cfg::H) * Cfg::W;
  static constexpr long long Y_PLANE = static_cast<long long>(Cfg::P) * Cfg::Q;
  static constexpr int WIDTH = Cfg::STORE, STORES = 2 * PART / WIDTH;  ///< of a row of a lane

  SL_DEVICE static constexpr bool load_used(int j) {
    for (int column = j * VEC - LEAD; column < (j + 1) * VEC - LEAD; ++column) {
      if (column >= 0 && column < SPAN && input_used(column, PART, SW, DW, S)) return true;
    }
    return false;
  }

  DirectMmaPlace at;
  Raw<BYTES> raw[OCTETS][2][HIGH][LOADS];  ///< of channels 2t and 2t+1, under the PART columns from g * PART on
  Raw<2 * WIDTH> z[Cfg::RESIDUAL != 0 ? UNITS : 1][L][STORES];
  float bias[UNITS];

  SL_DEVICE int row_of(int tile, int) const { return at.p0 + tile / PART; }
  SL_DEVICE int column_of(int tile, int e) const { return at.q0 + (2 * at.t + e) * PART + tile % PART; }
  SL_DEVICE int out_of(int u, int) const { return (at.unit + u) * 8 + at.g; }

  SL_DEVICE bool present(int l, int store) const {
    return (Cfg::P % L == 0 || at.p0 + l < Cfg::P) &&
           (Cfg::Q % WIDE == 0 || at.q0 + 2 * at.t * PART + store * WIDTH < Cfg::Q);
  }
  SL_DEVICE long long y_of() const {
    return (at.n * Cfg::K + out_of(0, 0)) * Y_PLANE + at.p0 * Cfg::Q + at.q0 + 2 * at.t * PART;
  }
  SL_DEVICE static long long y_step(int u, int l, int store) { return u * 8 * Y_PLANE + l * Cfg::Q + store * WIDTH; }

  SL_DEVICE void ask(const SlParams& p) {
    const int top = at.p0 * SH - Cfg::PAD_TOP, left = (at.q0 + at.g * PART) * SW - Cfg::PAD_LEFT - LEAD;
    const Bits<Cfg>* const x = keep(static_cast<const Bits<Cfg>*>(p.x) +
                                    ((at.n * Cfg::C + at.unit / PARTS * 8 + 2 * at.t) * X_PLANE + top * Cfg::W + left));
    SL_UNROLL
    for (int i = 0; i < HIGH; ++i) {
      const bool row_inside = inside(top + i, Cfg::H);
      SL_UNROLL
      for (int j = 0; j < LOADS; ++j) {
        const bool there = row_inside && inside(left + j * VEC, Cfg::W);
        SL_UNROLL
        for (int c = 0; c < 2 * OCTETS; ++c) {
          Raw<BYTES>& to = raw[c / 2][c % 2][i][j];
          to = zero_raw<BYTES>();
          if (!input_used(i, L, SH, DH, R) || !load_used(j) || !there) continue;
          to = load_raw<BYTES, true>(x + ((c / 2 * 8 + c % 2) * X_PLANE + i * Cfg::W + j * VEC));
        }
      }
    }
  }
  SL_DEVICE void ask_rest(const SlParams& p) {
    if constexpr (Cfg::RESIDUAL != 0) {
      const Bits<Cfg>* const from = keep(static_cast<const Bits<Cfg>*>(p.z) + y_of());
      SL_UNROLL
      for (int i = 0; i < UNITS * L * STORES; ++i) {
        const int u = i / (L * STORES), l = i / STORES % L, store = i % STORES;
        z[u][l][store] = zero_raw<2 * WIDTH>();
        if (present(l, store)) z[u][l][store] = load_raw<2 * WIDTH, false>(from + y_step(u, l, store));
      }
    }
    SL_UNROLL
    for (int u = 0; u < UNITS; ++u) bias[u] = bias_of<Cfg>(p, out_of(u, 0));
  }

  /// Both channels under tap i of output column g * PART + part.
  SL_DEVICE unsigned word(int i, int l, int part, int o) const {
    const int row = l * SH + i / S * DH, column = LEAD + part * SW + i % S * DW, e = column % VEC;
    return permute_bytes(raw[o][0][row][column / VEC].word[e / 2], raw[o][1][row][column / VEC].word[e / 2],
                         e % 2 != 0 ? 0x7632U : 0x5410U);
  }
  SL_DEVICE void multiply(float (&sum)[UNITS][TILES][SUMS], const Weights& weight) const {
    SL_UNROLL
    for (int i = 0; i < UNITS * TILES; ++i) {
      const int u = i / TILES, tile = i % TILES, l = tile / PART, part = tile % PART, o = u / PARTS;
      float d[4] = {0.0F, 0.0F, 0.0F, 0.0F};
      SL_UNROLL
      for (int tap = 0; tap + 1 < TAPS; tap += 2) {
        const unsigned a[4] = {weight.word[u][tap], 0, weight.word[u][tap + 1], 0};
        mma_k16<Cfg::DTYPE>(d, a, word(tap, l, part, o), word(tap + 1, l, part, o));
      }
      if constexpr (TAPS % 2 != 0) {
        const unsigned a[2] = {weight.word[u][TAPS - 1], 0};
        mma_k8<Cfg::DTYPE>(d, a, word(TAPS - 1, l, part, o));
      }
      sum[u][tile][0] = d[0], sum[u][tile][1] = d[1];
    }
  }

  SL_DEVICE void store(const SlParams& p, const float (&sum)[UNITS][TILES][SUMS]) const {
    Bits<Cfg>* const y = keep(static_cast<Bits<Cfg>*>(p.y) + y_of());
    SL_UNROLL
    for (int i = 0; i < UNITS * L * STORES; ++i) {
      const int u = i / (L * STORES), l = i / STORES % L, store = i % STORES;
      if (!present(l, store)) continue;
      float out[WIDTH];
      SL_UNROLL
      for (int j = 0; j < WIDTH; ++j) {
        const int column = store * WIDTH + j;  // of the lane's 2 PART
        float a = sum[u][l * PART + column % PART][column / PART] + bias[u];
        if constexpr (Cfg::RESIDUAL != 0) a += element<Cfg>(z[u][l][store], j);
        out[j] = activate<Cfg::ACT>(a, p.alpha, p.beta);
      }
      store_floats<Cfg, WIDTH>(y + y_step(u, l, store), out);
    }
  }
};

template <class Cfg, bool NHWC>
struct DirectMmaOf {
  using Type = DirectMmaNhwc<Cfg>;
};
template <class Cfg>
struct DirectMmaOf<Cfg, false> {
  using Type = DirectMmaNchw<Cfg>;
};

/// Sums that are not finite, again and without the structural zeros. Cold, so one rolled loop.
template <class Cfg, class Work>
SL_DEVICE void repair_direct(const SlParams& p, const Work& work, float (&sum)[Work::UNITS][Work::TILES][Work::SUMS]) {
  constexpr int TILES = Work::TILES, SUMS = Work::SUMS, ALL = Work::UNITS * TILES * SUMS;
  float all = 0.0F;
  SL_UNROLL
  for (int i = 0; i < ALL; ++i) all += sum[i / (TILES * SUMS)][i / SUMS % TILES][i % SUMS];
  if (finite(all)) return;
  SL_UNROLL_BY(1)
  for (int i = 0; i < ALL; ++i) {
    const int u = i / (TILES * SUMS), tile = i / SUMS % TILES, e = i % SUMS;
    const int row = work.row_of(tile, e), column = work.column_of(tile, e);
    float value = 0.0F;
    SL_UNROLL
    for (int j = 0; j < ALL; ++j) value = j == i ? sum[j / (TILES * SUMS)][j / SUMS % TILES][j % SUMS] : value;
    if (finite(value) || row >= Cfg::P || column >= Cfg::Q) continue;
    value = exact_sum<Cfg>(p, static_cast<Index<Cfg>>(work.at.n), work.out_of(u, e), row, column);
    SL_UNROLL
    for (int j = 0; j < ALL; ++j) {
      float& place = sum[j / (TILES * SUMS)][j / SUMS % TILES][j % SUMS];
      place = j == i ? value : place;
    }
  }
}

/// Cfg: DTYPE (16-bit) LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG (2, 4, 8) MULT (of CPG); C (of
/// 8) H W K P Q PAD_TOP PAD_LEFT. A warp has UNITS neighbouring units of 8 outputs; NHWC: of 2 strips of ROWS rows x 8
/// columns, SWAP: stored 8 bytes at a time; NCHW: of ROWS rows x 8 PART columns, loaded VEC at a time from LEAD columns
/// before the window's first, stored STORE at a time. BESIDE warps of a block lie along the units, the others along
/// columns and rows; IMAGE_BLOCKS of an image, ALONG of them over the same units.
template <class Cfg>
SL_DEVICE void grp_mma_direct(const SlParams& p) {
  using Work = typename DirectMmaOf<Cfg, Cfg::LAYOUT == kNhwc>::Type;
  constexpr unsigned PLACES = Cfg::THREADS / 32 / Cfg::BESIDE, UNIT_BLOCKS = Cfg::IMAGE_BLOCKS / Cfg::ALONG;
  constexpr unsigned ACROSS = (Cfg::Q + Work::WIDE - 1) / Work::WIDE;
  const unsigned number = static_cast<unsigned>(block_id()), block = number % Cfg::IMAGE_BLOCKS;
  const int warp = thread_id() / 32, lane = thread_id() % 32;
  Work work;
  DirectMmaPlace& at = work.at;
  at.n = number / Cfg::IMAGE_BLOCKS;
  at.g = lane / 4, at.t = lane % 4;
  // Blocks beside one another share input (NHWC); so do a block's warps along the units.
  at.unit = (static_cast<int>(block % UNIT_BLOCKS) * Cfg::BESIDE + warp % Cfg::BESIDE) * Cfg::UNITS;
  const unsigned place = block / UNIT_BLOCKS * PLACES + static_cast<unsigned>(warp / Cfg::BESIDE);
  at.p0 = static_cast<int>(place / ACROSS) * Work::TALL;
  at.q0 = static_cast<int>(place % ACROSS) * Work::WIDE;
  if (at.unit >= Cfg::K / 8 || at.p0 >= Cfg::P) return;  // a whole warp

  DirectMmaWeights<Cfg> weight;
  work.ask(p);
  weight.ask(p, at.unit, at.g, at.t);
  work.ask_rest(p);
  weight.turn();
  float sum[Work::UNITS][Work::TILES][Work::SUMS];
  work.multiply(sum, weight);
  if constexpr (Cfg::CPG < 8) repair_direct<Cfg>(p, work, sum);
  work.store(p, sum);
}

}  // namespace sl
