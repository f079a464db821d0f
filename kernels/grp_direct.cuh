// grp_direct: grouped convolution in one round trip to memory. A thread asks for everything that ROWS x COLS places of
// OUTS outputs of one group need, straight into registers and before it waits for anything; the block's weights pass
// through shared memory meanwhile. SPLIT neighbouring threads share the channels of a group. For calls so small that
// latency is what they cost.
#pragma once

#include "common/conv.cuh"
#include "common/window_taps.cuh"

namespace sl {

/// The input behind a thread's outputs, SHARE channels of it, and how it is loaded.
template <class Cfg>
struct GroupWindow {
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int SHARE = Cfg::CPG / Cfg::SPLIT, VEC = Cfg::VEC;
  static constexpr int BYTES = VEC * static_cast<int>(sizeof(Bits<Cfg>));
  static constexpr int HIGH = (Cfg::ROWS - 1) * Cfg::STRIDE_H + (Cfg::R - 1) * Cfg::DIL_H + 1;
  static constexpr int SPAN = (Cfg::COLS - 1) * Cfg::STRIDE_W + (Cfg::S - 1) * Cfg::DIL_W + 1;
  static constexpr int PER = NHWC ? 1 : VEC;  ///< columns of one load
  static constexpr int LEAD = NHWC ? 0 : Cfg::LEAD;
  static constexpr int ACROSS = (LEAD + SPAN + PER - 1) / PER, DEEP = NHWC ? SHARE / VEC : SHARE;  ///< loads of a row
  static constexpr int TILES = (Cfg::Q + Cfg::COLS - 1) / Cfg::COLS, STRIPS = (Cfg::P + Cfg::ROWS - 1) / Cfg::ROWS;
  static constexpr long long PIXEL = NHWC ? Cfg::C : 1, X_ROW = Cfg::W * PIXEL;  ///< elements apart
  static constexpr long long PLANE = NHWC ? 1 : Cfg::H * X_ROW, LAYER = NHWC ? VEC : PLANE;

  SL_DEVICE static constexpr bool row_used(int i) {
    return input_used(i, Cfg::ROWS, Cfg::STRIDE_H, Cfg::DIL_H, Cfg::R);
  }
  SL_DEVICE static constexpr bool load_used(int j) {
    for (int column = j * PER - LEAD; column < (j + 1) * PER - LEAD; ++column) {
      if (column >= 0 && column < SPAN && input_used(column, Cfg::COLS, Cfg::STRIDE_W, Cfg::DIL_W, Cfg::S)) return true;
    }
    return false;
  }
  /// Whether load j of a row lies inside the input in every tile of columns: then nothing asks.
  SL_DEVICE static constexpr bool load_inside(int j) {
    const int first = j * PER - LEAD - Cfg::PAD_LEFT;
    return first >= 0 && first + (TILES - 1) * Cfg::COLS * Cfg::STRIDE_W < Cfg::W;
  }

  Raw<BYTES> raw[HIGH][ACROSS][DEEP];

  /// `x`: the window's first element (NCHW: LEAD before it), which lies at row `top`, column `left`.
  SL_DEVICE void ask(const Bits<Cfg>* x, int top, int left) {
    SL_UNROLL
    for (int i = 0; i < HIGH; ++i) {
      const bool row_inside = inside(top + i, Cfg::H);
      SL_UNROLL
      for (int j = 0; j < ACROSS; ++j) {
        const bool present = row_inside && (load_inside(j) || inside(left + j * PER, Cfg::W));
        SL_UNROLL
        for (int c = 0; c < DEEP; ++c) {
          raw[i][j][c] = zero_raw<BYTES>();
          if (!row_used(i) || !load_used(j)) continue;
          if (present) raw[i][j][c] = load_raw<BYTES, true>(x + (i * X_ROW + j * PER * PIXEL + c * LAYER));
        }
      }
    }
  }
  SL_DEVICE float at(int i, int j, int c) const {
    return NHWC ? element<Cfg>(raw[i][j][c / VEC], c % VEC)
                : element<Cfg>(raw[i][(LEAD + j) / PER][c], (LEAD + j) % PER);
  }
};

/// What a thread computes. One without outputs repeats the first of its image, and `live` is false.
template <class Cfg>
struct GroupPlace {
  using At = GroupWindow<Cfg>;
  long long n;
  int first, line;  ///< unit of OUTS outputs: the block's first; the thread's, within the block
  int p0, q0;       ///< first output
  int part;         ///< which channels of the group
  bool live;

  SL_DEVICE GroupPlace() {
    constexpr unsigned PLACES = Cfg::THREADS / Cfg::SPLIT, TILES = At::TILES, STRIPS = At::STRIPS;
    const unsigned number = static_cast<unsigned>(block_id()), block = number % Cfg::IMAGE_BLOCKS;
    const unsigned mine = static_cast<unsigned>(thread_id()), within = mine / Cfg::SPLIT;
    unsigned tile, strip;
    if constexpr (At::NHWC) {  // a block covers ACROSS x DOWN tiles of the output; neighbouring threads are channels
      constexpr unsigned ACROSS = Cfg::BLOCK_TILES, BESIDE = (TILES + ACROSS - 1) / ACROSS;
      constexpr unsigned LINE_BLOCKS = Cfg::IMAGE_BLOCKS / Cfg::ALONG;
      const unsigned along = block / LINE_BLOCKS, place = within / Cfg::LINES;
      first = static_cast<int>(block % LINE_BLOCKS) * Cfg::LINES;
      line = static_cast<int>(within % Cfg::LINES);
      tile = along % BESIDE * ACROSS + place % ACROSS;
      strip = along / BESIDE * Cfg::BLOCK_STRIPS + place / ACROSS;
      live = place < ACROSS * Cfg::BLOCK_STRIPS && tile < TILES && strip < STRIPS;
    } else {  // neighbouring threads are tiles of a row, then strips, then planes
      const unsigned place = block % Cfg::ALONG * PLACES + within;
      first = static_cast<int>(block / Cfg::ALONG) * Cfg::LINES;
      line = static_cast<int>(place / (TILES * STRIPS));
      tile = place % TILES;
      strip = place / TILES % STRIPS;
      live = line < Cfg::LINES;
    }
    n = number / Cfg::IMAGE_BLOCKS;
    live = live && first + line < Cfg::K / Cfg::OUTS;
    if (!live) line = 0, tile = 0, strip = 0;
    p0 = static_cast<int>(strip) * Cfg::ROWS;
    q0 = TILES == 1 ? 0 : static_cast<int>(tile) * Cfg::COLS;
    part = static_cast<int>(mine % Cfg::SPLIT);
  }
};

/// The weights of a block's outputs on their way to shared memory, where they are widened: those of one output and one
/// part of the channels together, in memory's order, read four at a time.
template <class Cfg>
struct DirectGroupWeights {
  using At = GroupWindow<Cfg>;
  static constexpr int TAPS = Cfg::R * Cfg::S, CPG = Cfg::CPG, SPLIT = Cfg::SPLIT, SHARE = At::SHARE;
  static constexpr bool OHWI = Cfg::WLAYOUT == kOhwi;
  static constexpr int PER_OUT = CPG * TAPS, COUNT = Cfg::LINES * Cfg::OUTS * PER_OUT, COPY = Cfg::COPY;
  static constexpr int BYTES = COPY * static_cast<int>(sizeof(Bits<Cfg>));
  static constexpr int TURNS = (COUNT / COPY + Cfg::THREADS - 1) / Cfg::THREADS;
  // Parts are an odd number of reads apart, and threads of neighbouring units SPLIT reads further on, modulo 8: then
  // no eight threads that read together meet in a bank.
  static constexpr int READS = (SHARE * TAPS + 3) / 4, PART = READS + 1 - READS % 2, OUT = SPLIT * PART;
  static constexpr int UNIT = Cfg::OUTS * OUT + ((SPLIT - Cfg::OUTS * OUT) % 8 + 8) % 8;
  static constexpr int NOWHERE = 4 * Cfg::LINES * UNIT, ROOM = NOWHERE + 4;       ///< floats
  static constexpr int RUN = SPLIT == 1 ? PER_OUT : OHWI ? SHARE : SHARE * TAPS;  ///< those that stay together
  static constexpr int power(int a, int limit) { return limit > 1 && a % limit != 0 ? power(a, limit / 2) : limit; }
  static constexpr int STORE = power(RUN, COPY < 4 ? COPY : 4);
  static constexpr int PIECES = COPY / STORE;
  Raw<BYTES> held[TURNS];
  int room[TURNS][PIECES];  ///< where each piece of a copy goes; beyond all weights where there is none

  SL_DEVICE static int place(int turn) { return (turn * Cfg::THREADS + thread_id()) * COPY; }
  /// Weights of the block from `first` on.
  SL_DEVICE static int present(int first) {
    const int left = (Cfg::K - first * Cfg::OUTS) * PER_OUT;
    return left < COUNT ? left : COUNT;
  }
  SL_DEVICE void ask(const SlParams& p, int first) {
    const Bits<Cfg>* const from = keep(static_cast<const Bits<Cfg>*>(p.weight) + first * (Cfg::OUTS * PER_OUT));
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      held[turn] = zero_raw<BYTES>();
      if (place(turn) < present(first)) held[turn] = load_raw<BYTES, true>(from + place(turn));
    }
  }
  SL_DEVICE static int room_of(unsigned at) {
    const unsigned out = at / PER_OUT, rest = at % PER_OUT;
    const unsigned c = rest % CPG, part = OHWI ? c / SHARE : rest / (SHARE * TAPS);
    const unsigned within = OHWI ? rest / CPG * SHARE + c % SHARE : rest % (SHARE * TAPS);
    return static_cast<int>(4 * (out / Cfg::OUTS * UNIT + out % Cfg::OUTS * OUT + part * PART) + within);
  }
  /// While the loads are on their way.
  SL_DEVICE void aim(int first) {
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      SL_UNROLL
      for (int i = 0; i < PIECES; ++i) {
        const int at = place(turn) + i * STORE;
        room[turn][i] = keep(at < present(first) ? room_of(static_cast<unsigned>(at)) : NOWHERE);
      }
    }
  }
  SL_DEVICE void store(float* to) const {
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      SL_UNROLL
      for (int i = 0; i < PIECES; ++i) {
        Raw<4 * STORE> wide;
        SL_UNROLL
        for (int j = 0; j < STORE; ++j) wide.word[j] = float_bits(element<Cfg>(held[turn], i * STORE + j));
        store_raw<4 * STORE>(to + room[turn][i], wide);
      }
    }
  }
  /// Of the e-th weight that a thread reads of one output.
  SL_DEVICE static constexpr int tap(int e) { return OHWI ? e / SHARE : e % TAPS; }
  SL_DEVICE static constexpr int channel(int e) { return OHWI ? e % SHARE : e / TAPS; }
};

/// Cfg: DTYPE LAYOUT WLAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* CPG MULT; C H W K P Q PAD_TOP PAD_LEFT:
/// everything but the batch, so that the first instructions wait for few parameters. ROWS x COLS places of OUTS outputs
/// (a unit; divides MULT) a thread; SPLIT neighbouring threads share a group's channels and then the unit's outputs;
/// VEC (NHWC: channels a load; NCHW: columns), LEAD (NCHW: -PAD_LEFT mod VEC), STORE (elements a store). A block has
/// LINES units, whose weights are copied COPY at a time; IMAGE_BLOCKS of an image, ALONG of them over the same units,
/// each of BLOCK_TILES x BLOCK_STRIPS tiles (NHWC).
template <class Cfg>
SL_DEVICE void grp_direct(const SlParams& p) {
  using At = GroupWindow<Cfg>;
  using Weights = DirectGroupWeights<Cfg>;
  constexpr bool NHWC = At::NHWC;
  constexpr int P = Cfg::P, Q = Cfg::Q, R = Cfg::R, S = Cfg::S, ROWS = Cfg::ROWS, COLS = Cfg::COLS;
  constexpr int OUTS = Cfg::OUTS, SPLIT = Cfg::SPLIT, OWN = OUTS / SPLIT;  // outputs that a thread stores
  constexpr long long Y_PIXEL = NHWC ? Cfg::K : 1, Y_ROW = Q * Y_PIXEL, Y_PLANE = NHWC ? 1 : P * Y_ROW;
  SL_SHARED(float, ws, Weights::ROOM);

  const GroupPlace<Cfg> at;
  Weights weights;
  weights.ask(p, at.first);

  const int unit = at.first + at.line;
  const int channel = unit / (Cfg::MULT / OUTS) * Cfg::CPG + at.part * At::SHARE, output = unit * OUTS + at.part * OWN;
  const int top = at.p0 * Cfg::STRIDE_H - Cfg::PAD_TOP, left = at.q0 * Cfg::STRIDE_W - Cfg::PAD_LEFT - At::LEAD;
  // One pointer that the compiler may not see through: else every load computes its own.
  const Bits<Cfg>* const x =
      keep(static_cast<const Bits<Cfg>*>(p.x) + (at.n * (static_cast<long long>(Cfg::C) * Cfg::H * Cfg::W) +
                                                 channel * At::PLANE + top * At::X_ROW + left * At::PIXEL));
  At window;
  window.ask(x, top, left);

  constexpr int WIDTH = Cfg::STORE, WIDTH_BYTES = WIDTH * static_cast<int>(sizeof(Bits<Cfg>));
  constexpr int ACROSS = NHWC ? COLS : COLS / WIDTH, DEEP = NHWC ? OWN / WIDTH : OWN;  // stores of a row
  constexpr int STEP = COLS / ACROSS;                                                  // columns of one store
  const long long y_from =
      at.n * (static_cast<long long>(Cfg::K) * P * Q) + output * Y_PLANE + at.p0 * Y_ROW + at.q0 * Y_PIXEL;
  const auto present = [&](int o, int t) {
    return (P % ROWS == 0 || at.p0 + o < P) && (Q % COLS == 0 || at.q0 + t * STEP < Q);
  };
  const auto y_of = [](int o, int t, int d) { return o * Y_ROW + t * STEP * Y_PIXEL + d * (NHWC ? WIDTH : Y_PLANE); };
  constexpr bool Z = Cfg::RESIDUAL != 0;
  Raw<WIDTH_BYTES> z[Z ? ROWS : 1][Z ? ACROSS : 1][Z ? DEEP : 1];
  if constexpr (Z) {
    const Bits<Cfg>* const from = keep(static_cast<const Bits<Cfg>*>(p.z) + y_from);
    SL_UNROLL
    for (int o = 0; o < ROWS; ++o) {
      SL_UNROLL
      for (int t = 0; t < ACROSS; ++t) {
        SL_UNROLL
        for (int d = 0; d < DEEP; ++d) {
          z[o][t][d] = zero_raw<WIDTH_BYTES>();
          if (present(o, t)) z[o][t][d] = load_raw<WIDTH_BYTES, false>(from + y_of(o, t, d));
        }
      }
    }
  }
  float bias[OWN];
  SL_UNROLL
  for (int o = 0; o < OWN; ++o) bias[o] = bias_of<Cfg>(p, output + o);

  weights.aim(at.first);
  weights.store(ws);
  barrier();

  // Outputs in the order in which they are handed over: first a thread's own, then those of the thread beside it, ...
  const float* mine[SPLIT];
  SL_UNROLL
  for (int part = 0; part < SPLIT; ++part) {
    mine[part] = ws + 4 * (at.line * Weights::UNIT + (part ^ at.part) * (OWN * Weights::OUT) + at.part * Weights::PART);
  }
  float sum[OUTS][ROWS][COLS];
  SL_UNROLL
  for (int i = 0; i < OUTS * ROWS * COLS; ++i) sum[i / (ROWS * COLS)][i / COLS % ROWS][i % COLS] = 0.0F;
  SL_UNROLL
  for (int first = 0; first < At::SHARE * R * S; first += 4) {
    Raw<16> weight[OUTS];
    SL_UNROLL
    for (int o = 0; o < OUTS; ++o) {
      weight[o] = load_raw<16, false>(mine[o / OWN] + (4 * (o % OWN) * Weights::OUT + first));
    }
    SL_UNROLL
    for (int e = first; e < first + 4; ++e) {
      if (e >= At::SHARE * R * S) continue;
      const int c = Weights::channel(e), r = Weights::tap(e) / S, s = Weights::tap(e) % S;
      SL_UNROLL
      for (int i = 0; i < ROWS * COLS; ++i) {
        const int row = i / COLS, column = i % COLS;
        const float value = window.at(row * Cfg::STRIDE_H + r * Cfg::DIL_H, column * Cfg::STRIDE_W + s * Cfg::DIL_W, c);
        SL_UNROLL
        for (int o = 0; o < OUTS; ++o) {
          sum[o][row][column] = sl::fma(value, float_from_bits(weight[o].word[e - first]), sum[o][row][column]);
        }
      }
    }
  }

  // Each hands over half of what it holds and keeps the other, until its own are left.
  SL_UNROLL
  for (int step = 1; step < SPLIT; step *= 2) {
    const int away = SPLIT / (2 * step);
    SL_UNROLL
    for (int i = 0; i < OUTS / 2 * ROWS * COLS; ++i) {
      const int o = i / (ROWS * COLS), row = i / COLS % ROWS, column = i % COLS;
      if (o < away * OWN) sum[o][row][column] += shuffle_xor(sum[away * OWN + o][row][column], away);
    }
  }
  if (!at.live) return;

  Bits<Cfg>* const y = static_cast<Bits<Cfg>*>(p.y) + y_from;
  SL_UNROLL
  for (int o = 0; o < ROWS; ++o) {
    SL_UNROLL
    for (int t = 0; t < ACROSS; ++t) {
      if (!present(o, t)) continue;
      SL_UNROLL
      for (int d = 0; d < DEEP; ++d) {
        float out[WIDTH];
        SL_UNROLL
        for (int i = 0; i < WIDTH; ++i) {
          const int own = NHWC ? d * WIDTH + i : d, column = t * STEP + (NHWC ? 0 : i);
          float a = sum[own][o][column] + bias[own];
          if constexpr (Z) a += element<Cfg>(z[o][t][d], i);
          out[i] = activate<Cfg::ACT>(a, p.alpha, p.beta);
        }
        store_floats<Cfg, WIDTH>(y + y_of(o, t, d), out);
      }
    }
  }
}

}  // namespace sl
