// dw_band_nhwc: depthwise, 16-bit NHWC, on the sparse tensor cores. A filter row becomes a banded matrix over output
// columns x input columns; the pixels of a pair of channels lie interleaved in memory, and 2:4 sparsity picks the one
// channel or the other of every two neighbours. So neither the input nor the output is ever transposed:
//
//   a (sparse, registers): row = one output column of one channel, 16 / CW columns x CW channels of a filter row
//   b (load_matrix):       row = one input column of one channel as they lie in memory; column = one of 8 strips
//   d:                     an output column's two channels end up in one lane: a word of y
//
// A block owns CH channels of a tile HH strips wide and works through steps of RG x L output rows of PI images. Input
// rows come by asynchronous copies, sorted by groups of CW channels, into a ring of SLOTS units of rows that never
// stops, from one image to the next; a warp owns OWN groups, keeps their filters in registers (or CHUNK rows of them),
// and computes L output rows of 8 strips at a time, every input row loaded once for all the L output rows that read it.
// Results go through shared memory to 16-byte stores.
#pragma once

#include "common/exact.cuh"
#include "common/spread.cuh"

namespace sl {

/// Bytes of a row of x, in one register where offsets fit in 32 bits: they are below 2^32 then.
SL_DEVICE unsigned row_bytes(const SlParams& p, int) {
  return static_cast<unsigned>(keep(static_cast<int>(static_cast<unsigned>(p.w) * static_cast<unsigned>(p.c) * 2)));
}
SL_DEVICE long long row_bytes(const SlParams& p, long long) { return p.w * p.c * 2; }

/// Cfg: DTYPE (16-bit) LAYOUT = nhwc BIAS ACT RESIDUAL INDEX64 R S STRIDE_* DIL_* MULT = 1 CPG WLAYOUT;
/// CH channels a block in groups of CW (2, 4, 8), OWN groups a warp, GL lanes of a warp along the groups when it
/// copies; L output rows of a strip, RG row groups of L, HH strips across, PI images; SLOTS units of L * STRIDE_H rows
/// in the ring; XC, QC: columns of x and of y that a block can meet; ROW_CHUNKS, UNIT_CHUNKS, IMAGE_CHUNKS,
/// GROUP_CHUNKS: pitches in chunks of 16 bytes; SWIZZLE; STAGE_PITCH words between the rows of the stage; LOAD bytes of
/// a copy; STORE channels of a store. CHUNK (0: the filters stay in registers), FILTER_ROW, FILTER_COPY, FILTER_AT: see
/// compute_chunks().
/// div[0] = channel blocks, div[1] = column tiles, div[2] = steps of an image (or of PI of them); aux[0] = steps of a
/// block, aux[1] = steps of all images.
template <class Cfg>
struct BandNhwc {
  using I = Index<Cfg>;
  using E = Element<Cfg::DTYPE>;
  static constexpr int R = Cfg::R, S = Cfg::S, SH = Cfg::STRIDE_H, SW = Cfg::STRIDE_W, DH = Cfg::DIL_H, DW = Cfg::DIL_W;
  static constexpr int CH = Cfg::CH, CW = Cfg::CW, L = Cfg::L, RG = Cfg::RG, HH = Cfg::HH, PI = Cfg::PI;
  static constexpr int PAIRS = CW / 2;  // of channels, in a warp
  static constexpr int OUT = 16 / CW;   // output columns of a strip
  static constexpr int CHUNK_PIXELS = 8 / CW;
  static constexpr int REACH_W = (OUT - 1) * SW + (S - 1) * DW + 1;  // input columns that a strip reads
  static constexpr int UNITS = (REACH_W + 2 * CHUNK_PIXELS - 1) / (2 * CHUNK_PIXELS);  // of K = 16
  static constexpr int STRIPS = HH * RG * PI, TILES = (STRIPS + 7) / 8;
  static constexpr int GROUPS = CH / CW, OWN = Cfg::OWN, OWNERS = GROUPS / OWN, ALONG = Cfg::THREADS / 32 / OWNERS;
  static constexpr int ROWS = (L - 1) * SH + (R - 1) * DH + 1;         // input rows that L output rows read
  static constexpr int UNIT = L * SH;                                  // input rows of a unit of the ring
  static constexpr int WINDOW = (RG * L - 1) * SH + (R - 1) * DH + 1;  // input rows of a step
  static constexpr int FIRST_UNITS = (WINDOW + UNIT - 1) / UNIT;       // of a band's first step; then RG a step
  static constexpr int SKIP = FIRST_UNITS * UNIT - WINDOW;             // rows of a band's first unit that nobody reads
  static constexpr int AHEAD = Cfg::SLOTS - FIRST_UNITS;
  static_assert(AHEAD >= 0, "the ring holds a step");
  static constexpr int ROW_BYTES = Cfg::ROW_CHUNKS * 16, UNIT_BYTES = Cfg::UNIT_CHUNKS * 16,
                       ROW_PIXELS = Cfg::ROW_CHUNKS * CHUNK_PIXELS;
  // The stage: words of two channels; with a residual, which is added before the one rounding, floats.
  static constexpr bool WIDE = Cfg::RESIDUAL != 0;
  static constexpr int STAGE_COLUMNS = HH * OUT, STAGE_PIXELS = PI * RG * L * STAGE_COLUMNS;
  static constexpr int PIXEL_BYTES = 2 * CW, PIECE = Cfg::LOAD < PIXEL_BYTES ? Cfg::LOAD : PIXEL_BYTES;
  static constexpr int FETCHERS = Cfg::THREADS / GROUPS;
  static constexpr int CHUNK = Cfg::CHUNK;  // kernel rows in registers, where not all fit; 0: all are

  /// Walks through a block's steps, which lie side by side: a band ends with its images or with the block's last step.
  struct Cursor {
    I step, end;  ///< of all steps of all image groups: the band's first one; where the block ends
    I n;
    int row, steps, images;  ///< the band's first output row and its steps; images that exist
    SL_DEVICE void decode(const SlParams& p) {
      I group = step;
      const int first = static_cast<int>(take(group, p.div[2])), whole = static_cast<int>(p.div[2].divisor);
      row = first * (RG * L);
      n = group * PI;
      images = PI > 1 && static_cast<I>(p.n) - n < PI ? static_cast<int>(static_cast<I>(p.n) - n) : PI;
      const I left = end - step;
      steps = left < static_cast<I>(whole - first) ? static_cast<int>(left) : whole - first;
    }
    SL_DEVICE bool valid() const { return step < end; }
    SL_DEVICE void next(const SlParams& p) {
      step += steps;
      if (valid()) decode(p);
    }
  };

  const SlParams& p;
  Shared ring, stage;
  int k0, q0, left;
  Cursor now, coming;  // of the step computed, of the unit loaded next
  int coming_unit, coming_slot;
  unsigned a[OWN][CHUNK > 0 ? 1 : R][UNITS][2];
  float bias[OWN][2];
  unsigned pick;

  SL_DEVICE BandNhwc(const SlParams& params, unsigned char* shared)
      : p(params), ring(shared), stage(ring + GROUPS * Cfg::GROUP_CHUNKS * 16) {
    I number = static_cast<I>(block_id());
    k0 = static_cast<int>(take(number, p.div[0])) * CH;
    q0 = static_cast<int>(take(number, p.div[1])) * STAGE_COLUMNS;
    left = q0 * SW - static_cast<int>(p.pad_left);
    now.step = number * static_cast<I>(p.aux[0]);
    now.end = now.step + static_cast<I>(p.aux[0]);
    if (now.end > static_cast<I>(p.aux[1])) now.end = static_cast<I>(p.aux[1]);
    now.decode(p);
    coming = now;
    coming_unit = coming_slot = 0;
  }

  SL_DEVICE static int chunk_at(int chunk) { return chunk ^ ((chunk >> 3) & Cfg::SWIZZLE); }

  /// Of 16 groups that are copied side by side 8 fill all banks: the other 8 keep the halves of their chunks the other
  /// way round, and their filters too.
  static constexpr int HALF_CHUNK = CHUNK_PIXELS / 2;
  SL_DEVICE static int flipped(int group) { return Cfg::GL > 8 ? over<8>(group) % 2 * HALF_CHUNK : 0; }

  /// The columns of x that this block loads: [first_column, end_column) of its tile.
  SL_DEVICE int first_column() const { return within_row(-left); }
  SL_DEVICE int end_column() const { return within_row(static_cast<int>(p.w) - left); }
  SL_DEVICE static int within_row(int column) { return column < 0 ? 0 : (column < ROW_PIXELS ? column : ROW_PIXELS); }

  /// Zeros into the chunks that hold columns beyond the edges of the image, which no copy writes.
  SL_DEVICE void clear_margins() const {
    const int before = (first_column() + CHUNK_PIXELS - 1) / CHUNK_PIXELS, after = end_column() / CHUNK_PIXELS;
    const int chunks = before + Cfg::ROW_CHUNKS - after;  // those that are partly margin may count twice
    for (int i = thread_id() % 4; i < chunks; i += 4) {
      const Shared to = ring + chunk_at(i < before ? i : after + i - before) * 16;
      SL_UNROLL_BY(1)
      for (int row = thread_id() / 4; row < GROUPS * PI * Cfg::SLOTS * UNIT; row += Cfg::THREADS / 4) {
        const int unit = row / UNIT, image = unit / Cfg::SLOTS;
        clear_shared(to + (row % UNIT * ROW_BYTES + unit % Cfg::SLOTS * UNIT_BYTES +
                           (image % PI * Cfg::IMAGE_CHUNKS + image / PI * Cfg::GROUP_CHUNKS) * 16));
      }
    }
  }

  /// One pixel's CW channels from k on into shared memory; zeros where it is not there.
  SL_DEVICE void copy_pixel(Shared to, const Bits<Cfg>* from, bool present, [[maybe_unused]] int k) const {
    if constexpr (PIECE == PIXEL_BYTES && PIECE >= 4) {
      copy_async<PIECE, true>(to, from, present);
    } else {
      SL_UNROLL
      for (int i = 0; i < PIXEL_BYTES; i += PIECE) {
        const bool here = present && k + i / 2 < static_cast<int>(p.c);
        if constexpr (PIECE >= 4) {
          copy_async<PIECE, true>(to + i, here ? static_cast<const void*>(from + i / 2) : p.x, here);
        } else {
          store_shared_half(to + i, here ? load_raw<2, true>(from + i / 2).word[0] : 0);
        }
      }
    }
  }

  /// The unit that comes next into its slot of the ring.
  SL_DEVICE void fetch() const {
    constexpr int HIGH = GROUPS / Cfg::GL;
    using Along = Spread<Cfg::XC, FETCHERS>;
    const int thread = keep(thread_id()), warp = over<32>(thread), lane = rest<32>(thread);
    const int group = HIGH == 1 ? rest<GROUPS>(thread) : rest<Cfg::GL>(lane) + rest<HIGH>(warp) * Cfg::GL;
    const Along mine(HIGH == 1 ? over<GROUPS>(thread) : over<Cfg::GL>(lane) + over<HIGH>(warp) * (32 / Cfg::GL));
    const int k = k0 + group * CW, flip = flipped(group);
    if (mine.idle() || k >= static_cast<int>(p.c)) return;
    const int column = first_column() + mine.column, end = end_column();
    const int h0 = coming.row * SH - static_cast<int>(p.pad_top) - SKIP + coming_unit * UNIT + mine.row;
    const int skip = coming_unit == 0 ? SKIP - mine.row : -UNIT;  // rows before this one are read by nobody
    const I pixel = (coming.n * static_cast<I>(p.h) + h0) * static_cast<I>(p.w) + left + column;
    const Bits<Cfg>* first = static_cast<const Bits<Cfg>*>(p.x) + (pixel * static_cast<I>(p.c) + k);
    const auto row = row_bytes(p, I{});
    const unsigned char* x[Along::STEPS];
    Shared to[Along::STEPS];
    bool there[Along::STEPS];
    SL_UNROLL
    for (int i = 0; i < Along::STEPS; ++i) {
      const int at = column + i * Along::AT_ONCE;
      there[i] = at < end;
      to[i] = keep(ring + (group * (Cfg::GROUP_CHUNKS * 16) + coming_slot * UNIT_BYTES + mine.row * ROW_BYTES +
                           chunk_at(over<CHUNK_PIXELS>(at)) * 16 + (rest<CHUNK_PIXELS>(at) ^ flip) * PIXEL_BYTES));
      x[i] = keep(
          reinterpret_cast<const unsigned char*>(first + static_cast<I>(i * Along::AT_ONCE) * static_cast<I>(p.c)));
    }
    SL_UNROLL_BY(1)
    for (int image = 0; image < (PI == 1 ? 1 : coming.images); ++image) {
      SL_UNROLL
      for (int r = 0; r < UNIT; r += Along::ROWS) {
        if (r + Along::ROWS > UNIT && r + mine.row >= UNIT) break;
        if (SKIP > 0 && r < SKIP && r < skip) continue;
        const bool present = inside(h0 + r, static_cast<int>(p.h));
        SL_UNROLL
        for (int i = 0; i < Along::STEPS; ++i) {
          if (there[i]) {
            const unsigned char* from = x[i] + static_cast<long long>(row) * r;
            copy_pixel(to[i] + r * ROW_BYTES, reinterpret_cast<const Bits<Cfg>*>(from), present, k);
          }
        }
      }
      SL_UNROLL
      for (int i = 0; i < Along::STEPS; ++i) {
        x[i] += static_cast<long long>(row) * p.h;
        to[i] = to[i] + Cfg::IMAGE_CHUNKS * 16;
      }
    }
  }

  /// Loads `count` more units, into slots that nobody reads any more.
  SL_DEVICE void request(int count) {
    SL_UNROLL_BY(1)
    for (; count > 0; --count) {
      if (coming.valid()) {
        fetch();
        if (++coming_slot == Cfg::SLOTS) coming_slot = 0;
        if (++coming_unit == FIRST_UNITS + (coming.steps - 1) * RG) {
          coming_unit = 0;
          coming.next(p);
        }
      }
      copy_async_commit();  // empty at the end: what is on its way is counted in groups
    }
  }

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

  SL_DEVICE static constexpr bool used(int row) {
    for (int l = 0; l < L; ++l) {
      const int below = row - l * SH;
      if (below >= 0 && below % DH == 0 && below / DH < R) return true;
    }
    return false;
  }

  /// L output rows of 8 strips and a group of channels; `slot` = the unit of the ring where the step begins.
  SL_DEVICE void compute(const Place& at, int own, int slot) const {
    int unit = at.row + slot * UNIT_BYTES;
    if (RG > 1 && unit >= Cfg::SLOTS * UNIT_BYTES) unit -= Cfg::SLOTS * UNIT_BYTES;
    Shared from = ring + unit;
    const Shared to = stage + own * (OWNERS * PAIRS * (WIDE ? 2 : 1) * Cfg::STAGE_PITCH * 4);
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
            if (at.store[i]) put(to + (at.word[i] + l * STAGE_COLUMNS * 4), sum[l][i], sum[l][2 + i]);
          }
        }
      }
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

  /// As compute(), CHUNK kernel rows at a time.
  SL_DEVICE void compute_chunks(const Place& at, int group, int slot) const {
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
        if (at.store[i]) put(stage + (at.word[i] + l * STAGE_COLUMNS * 4), sum[l][i], sum[l][2 + i]);
      }
    }
  }

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
  SL_DEVICE void drain(int step) const {
    constexpr int VECTORS = CH / VECTOR;
    constexpr int LINES = PI * RG * L, TURNS = (LINES + Across::ROWS - 1) / Across::ROWS;
    constexpr int BATCH = Across::STEPS * STAGED > 8 ? 1 : (STAGED * Across::STEPS > 4 ? 2 : 4);  // turns at once
    const int thread = keep(thread_id()), vector = rest<VECTORS>(thread), k = k0 + vector * VECTOR;
    const Across mine(over<VECTORS>(thread));
    if (mine.idle() || k >= static_cast<int>(p.k)) return;
    const int row0 = now.row + step * (RG * L), columns = static_cast<int>(p.q) - q0 - mine.column;
    const int pair_row = WIDE ? vector * VECTOR : vector * VECTOR / 2;
    const Shared from = keep(stage + (pair_row * Cfg::STAGE_PITCH + mine.row * STAGE_COLUMNS + mine.column) * 4);
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
        store_exactly(turn0, BATCH, vector, k, mine.row, mine.column, columns, row0);
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
  SL_DEVICE void store_exactly(int turn0, int turns, int vector, int k, int line0, int column0, int columns,
                               int row0) const {
    SL_UNROLL_BY(1)
    for (int number = 0; number < turns * Across::STEPS * VECTOR; ++number) {
      const int i = number % VECTOR, step = number / VECTOR % Across::STEPS * Across::AT_ONCE;
      const int line = (turn0 + number / (VECTOR * Across::STEPS)) * Across::ROWS + line0;
      const int image = line / (RG * L), row = row0 + line % (RG * L), column = q0 + column0 + step;
      if (line >= PI * RG * L || image >= now.images || row >= static_cast<int>(p.p)) continue;
      if (step >= columns || step + column0 >= Cfg::QC) continue;
      const int channel = vector * VECTOR + i;
      const Shared word =
          stage + ((WIDE ? channel : channel / 2) * Cfg::STAGE_PITCH + line * STAGE_COLUMNS + column0 + step) * 4;
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

  SL_DEVICE void compute_group(const Place& at, int group, int slot) const {
    if constexpr (CHUNK > 0) {
      compute_chunks(at, group, slot);
    } else {
      SL_UNROLL
      for (int own = 0; own < OWN; ++own) compute(at, own, slot);
    }
  }

  SL_DEVICE void run() {
    clear_margins();
    if constexpr (CHUNK > 0) clear_filters();
    barrier();
    request(Cfg::SLOTS);
    const int warp = thread_id() / 32, group = warp % OWNERS, along = warp / OWNERS;
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
    const Place only = place(group, along);  // of a warp that has one tile
    int step = 0, slot = 0;                  // of the ring, where the step begins
    SL_UNROLL_BY(1)
    while (now.valid()) {
      copy_async_wait<AHEAD>();
      barrier();
      if constexpr (TILES == ALONG) {
        compute_group(only, group, slot);
      } else {
        SL_UNROLL_BY(1)
        for (int tile = along; tile < TILES; tile += ALONG) compute_group(place(group, tile), group, slot);
      }
      barrier();
      const bool last = step + 1 == now.steps;
      const int freed = last ? FIRST_UNITS : RG;
      request(freed);
      drain(step);
      slot += freed;
      if (slot >= Cfg::SLOTS) slot -= Cfg::SLOTS;
      if (last) {
        step = 0;
        now.next(p);
      } else {
        ++step;
      }
    }
  }
};

template <class Cfg>
SL_DEVICE void dw_band_nhwc(const SlParams& p) {
  SL_DYNAMIC_SHARED(unsigned char, shared);
  BandNhwc<Cfg> work(p, shared);
  work.run();
}

}  // namespace sl
