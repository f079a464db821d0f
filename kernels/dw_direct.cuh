// dw_direct: one round trip to memory. A thread asks for everything that ROWS x COLS outputs need, straight into
// registers and before it waits for anything; the block's weights pass through shared memory meanwhile. For calls so
// small that latency is what they cost.
#pragma once

#include "common/conv.cuh"
#include "common/window_taps.cuh"

namespace sl {

/// The input rows and columns behind a thread's outputs, and how a row of them is loaded.
template <class Cfg>
struct DirectWindow {
  static constexpr bool NHWC = Cfg::LAYOUT == kNhwc;
  static constexpr int CHANNELS = NHWC ? Cfg::VEC : 1;
  static constexpr int BYTES = Cfg::VEC * static_cast<int>(sizeof(Bits<Cfg>));
  static constexpr int TALL = (Cfg::R + Cfg::SPLIT - 1) / Cfg::SPLIT;  ///< kernel rows of a part
  static constexpr int HIGH = (Cfg::ROWS - 1) * Cfg::STRIDE_H + (TALL - 1) * Cfg::DIL_H + 1;
  static constexpr int SPAN = (Cfg::COLS - 1) * Cfg::STRIDE_W + (Cfg::S - 1) * Cfg::DIL_W + 1;
  static constexpr int PER = NHWC ? 1 : Cfg::VEC;  ///< columns of one load
  static constexpr int LEAD = NHWC ? 0 : Cfg::LEAD;
  static constexpr int LOADS = (LEAD + SPAN + PER - 1) / PER;
  static constexpr int TILES = (Cfg::Q + Cfg::COLS - 1) / Cfg::COLS, STRIPS = (Cfg::P + Cfg::ROWS - 1) / Cfg::ROWS;
  static constexpr long long PIXEL = NHWC ? Cfg::C : 1, X_ROW = Cfg::W * PIXEL, Y_ROW = Cfg::Q * PIXEL;  ///< apart

  /// The kernel row of a part that output row o reads input row i with; -1 where none.
  SL_DEVICE static constexpr int tap_row(int i, int o) { return tap_at(i, o, Cfg::STRIDE_H, Cfg::DIL_H, TALL); }
  SL_DEVICE static constexpr bool row_used(int i) { return input_used(i, Cfg::ROWS, Cfg::STRIDE_H, Cfg::DIL_H, TALL); }
  SL_DEVICE static constexpr bool column_used(int j) {
    return input_used(j, Cfg::COLS, Cfg::STRIDE_W, Cfg::DIL_W, Cfg::S);
  }
  /// Whether any column of load j is used.
  SL_DEVICE static constexpr bool load_used(int j) {
    for (int column = j * PER - LEAD; column < (j + 1) * PER - LEAD; ++column) {
      if (column >= 0 && column < SPAN && column_used(column)) return true;
    }
    return false;
  }
  /// Whether load j lies inside the input in every tile of columns: then nothing asks.
  SL_DEVICE static constexpr bool load_inside(int j) {
    const int first = j * PER - LEAD - Cfg::PAD_LEFT;
    return first >= 0 && first + (TILES - 1) * Cfg::COLS * Cfg::STRIDE_W < Cfg::W;
  }
};

/// What a thread computes. One without outputs repeats the first of its image, and `live` is false.
template <class Cfg>
struct DirectPlace {
  using At = DirectWindow<Cfg>;
  long long n;
  int first, line;  ///< channel of the block; of the thread, within the block
  int p0, q0;       ///< first output
  int part, slot;   ///< which kernel rows; the thread within its part
  bool live;

  SL_DEVICE DirectPlace() {
    constexpr unsigned THREADS = Cfg::THREADS / Cfg::SPLIT, TILES = At::TILES, STRIPS = At::STRIPS;
    const unsigned number = static_cast<unsigned>(block_id()), block = number % Cfg::IMAGE_BLOCKS;
    const unsigned mine = static_cast<unsigned>(thread_id()), within = mine % THREADS;
    unsigned tile, strip;
    if constexpr (At::NHWC) {  // a block covers ACROSS x DOWN tiles of the output; neighbouring threads are channels
      constexpr unsigned LANES = Cfg::LINES / Cfg::VEC, ACROSS = Cfg::BLOCK_TILES,
                         BESIDE = (TILES + ACROSS - 1) / ACROSS;
      constexpr unsigned CHANNEL_BLOCKS = Cfg::IMAGE_BLOCKS / Cfg::ALONG;
      const unsigned along = block / CHANNEL_BLOCKS, place = within / LANES;
      first = static_cast<int>(block % CHANNEL_BLOCKS) * Cfg::LINES;
      line = static_cast<int>(within % LANES) * Cfg::VEC;
      tile = along % BESIDE * ACROSS + place % ACROSS;
      strip = along / BESIDE * Cfg::BLOCK_STRIPS + place / ACROSS;
      live = place < ACROSS * Cfg::BLOCK_STRIPS && tile < TILES && strip < STRIPS;
    } else {  // neighbouring threads are tiles of a row, then strips, then planes
      const unsigned place = block % Cfg::ALONG * THREADS + within;
      first = static_cast<int>(block / Cfg::ALONG) * Cfg::LINES;
      line = static_cast<int>(place / (TILES * STRIPS));
      tile = place % TILES;
      strip = place / TILES % STRIPS;
      live = line < Cfg::LINES;
    }
    n = number / Cfg::IMAGE_BLOCKS;
    live = live && first + line < Cfg::C;
    if (!live) line = 0, tile = 0, strip = 0;
    p0 = static_cast<int>(strip) * Cfg::ROWS;
    q0 = TILES == 1 ? 0 : static_cast<int>(tile) * Cfg::COLS;
    part = Cfg::SPLIT == 1 ? 0 : static_cast<int>(mine / THREADS);
    slot = static_cast<int>(within);
  }
};

/// The weights of a block's channels on their way to shared memory, where they are widened: copied COPY elements at a
/// time as they lie in memory, read READ at a time by a thread that wants those of one part.
template <class Cfg>
struct DirectWeights {
  using At = DirectWindow<Cfg>;
  static constexpr int TAPS = Cfg::R * Cfg::S, COUNT = Cfg::LINES * TAPS, COPY = Cfg::COPY, READ = Cfg::READ;
  static constexpr int BYTES = COPY * static_cast<int>(sizeof(Bits<Cfg>)), STORE = COPY < 4 ? COPY : 4;
  static constexpr int TURNS = (COUNT / COPY + Cfg::THREADS - 1) / Cfg::THREADS;
  // NHWC: as in memory, so the weights of a thread lie together and lanes are an odd number of reads apart, in other
  // banks (with an odd number of taps). NCHW, where there are few: those of each part on their own, PITCH apart, an odd
  // number of reads again.
  static constexpr int PART = At::TALL * Cfg::S, FOURS = (PART + 3) / 4, PITCH = 4 * (FOURS + 1 - FOURS % 2);
  static constexpr int ROOM = At::NHWC
                                  ? COUNT + (At::TALL * Cfg::SPLIT - Cfg::R) * Cfg::S + 3
                                  : Cfg::LINES * Cfg::SPLIT * PITCH;  ///< floats; a part may read beyond the last row
  static constexpr int READS = ((At::NHWC ? (Cfg::VEC - 1) * TAPS : 0) + PART + READ - 1) / READ;
  Raw<BYTES> held[TURNS];

  SL_DEVICE static bool present(int at, int first) { return at < COUNT && first * TAPS + at < Cfg::C * TAPS; }
  SL_DEVICE static int place(int turn) { return (turn * Cfg::THREADS + thread_id()) * COPY; }

  SL_DEVICE void ask(const SlParams& p, int first) {
    const Bits<Cfg>* const from = keep(static_cast<const Bits<Cfg>*>(p.weight) + first * TAPS);
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      if (present(place(turn), first)) held[turn] = load_raw<BYTES, true>(from + place(turn));
    }
  }
  SL_DEVICE void store(float* to, int first) const {
    SL_UNROLL
    for (int turn = 0; turn < TURNS; ++turn) {
      if (!present(place(turn), first)) continue;
      if constexpr (At::NHWC) {
        SL_UNROLL
        for (int i = 0; i < COPY; i += STORE) {
          Raw<4 * STORE> wide;
          SL_UNROLL
          for (int j = 0; j < STORE; ++j) wide.word[j] = float_bits(element<Cfg>(held[turn], i + j));
          store_raw<4 * STORE>(to + place(turn) + i, wide);
        }
      } else {
        SL_UNROLL
        for (int i = 0; i < COPY; ++i) {
          const unsigned at = static_cast<unsigned>(place(turn) + i), line = at / TAPS, tap = at % TAPS;
          to[line * (Cfg::SPLIT * PITCH) + tap / PART * PITCH + tap % PART] = element<Cfg>(held[turn], i);
        }
      }
    }
  }
  /// Where the weights of a part begin; from there, that of its kernel row r, column s and the thread's channel v.
  SL_DEVICE static int start(int line, int part) {
    return At::NHWC ? line * TAPS + part * PART : (line * Cfg::SPLIT + part) * PITCH;
  }
  SL_DEVICE static constexpr int index(int r, int s, int v) { return v * TAPS + r * Cfg::S + s; }
};

/// Cfg: DTYPE LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* MULT (1); C H W P Q PAD_TOP PAD_LEFT: everything but
/// the batch, so that the first instructions wait for few parameters. ROWS x COLS outputs a thread; VEC (NHWC: channels
/// a thread; NCHW: columns a load), LEAD (NCHW: -PAD_LEFT mod VEC), STORE (elements a store); SPLIT threads share the
/// kernel rows of an output. A block has LINES channels, of whose weights COPY are copied and READ are read at a time;
/// IMAGE_BLOCKS of an image, ALONG of them over the same channels, each of BLOCK_TILES x BLOCK_STRIPS tiles (NHWC).
template <class Cfg>
SL_DEVICE void dw_direct(const SlParams& p) {
  using At = DirectWindow<Cfg>;
  using Weights = DirectWeights<Cfg>;
  constexpr bool NHWC = At::NHWC;
  constexpr int P = Cfg::P, Q = Cfg::Q, S = Cfg::S, TALL = At::TALL;
  constexpr long long X_IMAGE = At::X_ROW * Cfg::H * (NHWC ? 1 : Cfg::C), Y_IMAGE = At::Y_ROW * P * (NHWC ? 1 : Cfg::C);
  constexpr int ROWS = Cfg::ROWS, COLS = Cfg::COLS, CHANNELS = At::CHANNELS, SPLIT = Cfg::SPLIT, READ = Cfg::READ;
  SL_SHARED(float, ws, Weights::ROOM);

  const DirectPlace<Cfg> at;
  const int channel = at.first + at.line, from_row = at.part * TALL;
  Weights weights;
  weights.ask(p, at.first);

  const int top = at.p0 * Cfg::STRIDE_H - Cfg::PAD_TOP + from_row * Cfg::DIL_H;
  const int left = at.q0 * Cfg::STRIDE_W - Cfg::PAD_LEFT - At::LEAD;
  // One pointer that the compiler may not see through: else every load computes its own.
  const Bits<Cfg>* const x =
      keep(static_cast<const Bits<Cfg>*>(p.x) +
           (at.n * X_IMAGE + channel * (NHWC ? 1 : At::X_ROW * Cfg::H) + top * At::X_ROW + left * At::PIXEL));
  Raw<At::BYTES> raw[At::HIGH][At::LOADS];
  SL_UNROLL
  for (int i = 0; i < At::HIGH; ++i) {
    const bool row_inside = inside(top + i, Cfg::H);
    SL_UNROLL
    for (int j = 0; j < At::LOADS; ++j) {
      raw[i][j] = zero_raw<At::BYTES>();
      if (!At::row_used(i) || !At::load_used(j)) continue;
      if (row_inside && (At::load_inside(j) || inside(left + j * At::PER, Cfg::W))) {
        raw[i][j] = load_raw<At::BYTES, true>(x + (i * At::X_ROW + j * At::PER * At::PIXEL));
      }
    }
  }

  constexpr int WIDTH = Cfg::STORE, STORES = COLS * CHANNELS / WIDTH;  // of one row
  constexpr int STEP = COLS / STORES, WIDTH_BYTES = WIDTH * static_cast<int>(sizeof(Bits<Cfg>));
  const long long y_from =
      at.n * Y_IMAGE + channel * (NHWC ? 1 : At::Y_ROW * P) + at.p0 * At::Y_ROW + at.q0 * At::PIXEL;
  const auto present = [&](int o, int t) {
    return (P % ROWS == 0 || at.p0 + o < P) && (Q % COLS == 0 || at.q0 + t * STEP < Q);
  };
  Raw<WIDTH_BYTES> z[Cfg::RESIDUAL != 0 ? ROWS : 1][Cfg::RESIDUAL != 0 ? STORES : 1];
  if constexpr (Cfg::RESIDUAL != 0) {
    const Bits<Cfg>* const from = keep(static_cast<const Bits<Cfg>*>(p.z) + y_from);
    SL_UNROLL
    for (int o = 0; o < ROWS; ++o) {
      SL_UNROLL
      for (int t = 0; t < STORES; ++t) {
        z[o][t] = zero_raw<WIDTH_BYTES>();
        if (at.part == 0 && present(o, t))
          z[o][t] = load_raw<WIDTH_BYTES, false>(from + (o * At::Y_ROW + t * STEP * At::PIXEL));
      }
    }
  }
  float sum[ROWS][COLS][CHANNELS];
  SL_UNROLL
  for (int v = 0; v < CHANNELS; ++v) {
    const float bias = at.part == 0 ? bias_of<Cfg>(p, channel + v) : 0.0F;
    SL_UNROLL
    for (int o = 0; o < ROWS; ++o) {
      SL_UNROLL
      for (int t = 0; t < COLS; ++t) sum[o][t][v] = bias;
    }
  }

  weights.store(ws, at.first);
  barrier();
  if (SPLIT == 1 && !at.live) return;

  const float* const mine = ws + Weights::start(at.line, at.part);
  Raw<4 * READ> weight[Weights::READS];
  SL_UNROLL
  for (int i = 0; i < Weights::READS; ++i) weight[i] = load_raw<4 * READ, false>(mine + i * READ);

  SL_UNROLL
  for (int i = 0; i < At::HIGH; ++i) {
    if (!At::row_used(i)) continue;
    float value[At::SPAN][CHANNELS];
    SL_UNROLL
    for (int j = 0; j < At::SPAN; ++j) {
      SL_UNROLL
      for (int v = 0; v < CHANNELS; ++v) {
        value[j][v] = element<Cfg>(raw[i][(At::LEAD + j) / At::PER], NHWC ? v : (At::LEAD + j) % At::PER);
      }
    }
    SL_UNROLL
    for (int o = 0; o < ROWS; ++o) {
      const int r = At::tap_row(i, o);
      if (r < 0) continue;
      if (r + (SPLIT - 1) * TALL >= Cfg::R && from_row + r >= Cfg::R) continue;  // the last part may have fewer rows
      SL_UNROLL
      for (int s = 0; s < S; ++s) {
        SL_UNROLL
        for (int v = 0; v < CHANNELS; ++v) {
          const int e = Weights::index(r, s, v);
          const float tap = float_from_bits(weight[e / READ].word[e % READ]);
          SL_UNROLL
          for (int t = 0; t < COLS; ++t) {
            sum[o][t][v] = sl::fma(value[t * Cfg::STRIDE_W + s * Cfg::DIL_W][v], tap, sum[o][t][v]);
          }
        }
      }
    }
  }

  if constexpr (SPLIT > 1) {  // the first part adds up, always in the same order
    constexpr int THREADS = Cfg::THREADS / SPLIT, OUTPUTS = ROWS * COLS * CHANNELS, ROW = COLS * CHANNELS;
    SL_SHARED(float, sums, (SPLIT - 1) * OUTPUTS * THREADS);
    SL_UNROLL
    for (int i = 0; i < OUTPUTS; ++i) {
      const float own = sum[i / ROW][i % ROW / CHANNELS][i % CHANNELS];
      if (at.part > 0) sums[((at.part - 1) * OUTPUTS + i) * THREADS + at.slot] = own;
    }
    barrier();
    if (at.part > 0 || !at.live) return;
    SL_UNROLL
    for (int i = 0; i < OUTPUTS; ++i) {
      SL_UNROLL
      for (int part = 1; part < SPLIT; ++part) {
        sum[i / ROW][i % ROW / CHANNELS][i % CHANNELS] += sums[((part - 1) * OUTPUTS + i) * THREADS + at.slot];
      }
    }
  }

  Bits<Cfg>* const y = static_cast<Bits<Cfg>*>(p.y) + y_from;
  SL_UNROLL
  for (int o = 0; o < ROWS; ++o) {
    SL_UNROLL
    for (int t = 0; t < STORES; ++t) {
      if (!present(o, t)) continue;
      float out[WIDTH];
      SL_UNROLL
      for (int i = 0; i < WIDTH; ++i) {
        float a = sum[o][t * STEP + (NHWC ? 0 : i)][NHWC ? i : 0];
        if constexpr (Cfg::RESIDUAL != 0) a += element<Cfg>(z[o][t], i);
        out[i] = activate<Cfg::ACT>(a, p.alpha, p.beta);
      }
      store_floats<Cfg, WIDTH>(y + (o * At::Y_ROW + t * STEP * At::PIXEL), out);
    }
  }
}

}  // namespace sl
