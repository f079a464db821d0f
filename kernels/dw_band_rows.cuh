// dw_band_rows: depthwise 16-bit, stride 1, both layouts, on the matrix unit: kernels that are large beside their
// planes. A block brings whole planes (or tiles of rows) of CHANNELS channels of IMAGES images into shared memory, one
// plane after the other whatever the layout. The 16 rows of A are output rows of one plane (or of PACK images), B is a
// banded matrix of one filter row, and nothing slides: all sums of a plane stay in registers while the filter's rows go
// by. Row m of a group is output row GROUPS m + i, so the matrix that group i reads under filter row r is the one that
// group i + 1 read under row r - 1: every input row is loaded by ldmatrix GROUPS times less often.
#pragma once

#include "common/band_filters.cuh"
#include "common/band_products.cuh"
#include "common/band_stream.cuh"
#include "common/exact.cuh"
#include "common/plane_sweep.cuh"

namespace sl {

/// Cfg: DTYPE (16-bit) LAYOUT BIAS ACT RESIDUAL INDEX64 R S STRIDE_* = 1 DIL_* = 1 MULT = 1 CPG WLAYOUT; H W P Q TOP
/// LEFT: the planes and their padding; GROUPS of 8 output rows of a tile; LEAD = column of the tile in shared memory
/// that input column 0 goes to; CHUNKS of 8 columns that hold the row; PITCH = chunks from row to row; CHANNELS, IMAGES
/// of a block; PACK images whose rows are multiplied at once; SPLIT warps share the filter rows of a plane; LOAD, STORE
/// = elements of a copy along the row (NCHW) or channels (NHWC); WHOLE: CHANNELS divides the channels; SKEW, PART_PAD,
/// PLANE_PAD bytes between octets of channels, parts and planes; KEEP: a warp's band matrices stay in registers; STREAM
/// (NHWC): a block goes on from tile to tile (common/band_stream.cuh), whose pixels are HELD in registers on their way.
/// div[0] = channel blocks, div[1] = row tiles; aux[0] = a block's distance from step to step.
template <class Cfg>
struct BandRows : BandProducts<Cfg> {
  using I = Index<Cfg>;
  using E = Element<Cfg::DTYPE>;
  using Products = BandProducts<Cfg>;
  using typename Products::Filters, typename Products::Sums;
  using Kept = typename Filters::Kept;
  using Products::NHWC, Products::R, Products::H, Products::W, Products::P, Products::Q, Products::G, Products::C,
      Products::NI, Products::KS, Products::CHANNELS, Products::IMAGES, Products::THREADS, Products::MOST,
      Products::TILE, Products::ONE_TILE, Products::STREAM, Products::TILES_Q, Products::ROWS, Products::PART,
      Products::ROW_BYTES, Products::PLANE_BYTES, Products::IMAGE_BYTES, Products::HIGH_BYTES, Products::ROWS_IN,
      Products::FILTERS_AT, Products::PARTIAL_AT, Products::TILES, Products::AT_ONCE, Products::KEPT, Products::UNITS,
      Products::OUT_ROW, Products::OUT_COLUMN, Products::row_at, Products::plane_at;
  /// What a block computes between two barriers: a tile of rows of IMAGES images.
  struct Step {
    I image;
    int top;     ///< first output row
    int images;  ///< that exist
  };

  const SlParams& p;
  unsigned char* const memory;
  const Shared planes, waiting;
  Filters filters;
  int channel0, channels;  ///< the first; that exist
  I number;                ///< of the step
  Step now;

  SL_DEVICE BandRows(const SlParams& params, unsigned char* shared)
      : p(params), memory(shared), planes(shared), waiting(planes + PARTIAL_AT), filters{params, planes + FILTERS_AT} {
    number = static_cast<I>(block_id());
    channel0 = static_cast<int>(take(number, p.div[0])) * CHANNELS;
    now = step_of(number);
    const int left = static_cast<int>(p.c) - channel0;
    channels = Cfg::WHOLE != 0 || left > CHANNELS ? CHANNELS : left;
    filters.channel0 = channel0, filters.channels = channels;
  }
  SL_DEVICE Step step_of(I step) const {
    const int top = ONE_TILE ? 0 : static_cast<int>(take(step, p.div[1])) * TILE;
    const I image = step * IMAGES, left = static_cast<I>(p.n) - image;
    return {image, top, left < 0 ? 0 : (left < IMAGES ? static_cast<int>(left) : IMAGES)};
  }

  /// Row of x that is row 0 of the tile; it may lie above the plane.
  SL_DEVICE static int first_row(const Step& step) { return step.top - Cfg::TOP; }
  SL_DEVICE int first_row() const { return first_row(now); }
  SL_DEVICE int first_inside() const { return ONE_TILE || first_row() < 0 ? 0 : first_row(); }

  template <int SLOTS>
  using Sweep = PlaneSweep<SLOTS, CHANNELS, THREADS>;

  /// Zeros into rows and columns beyond the edges of the plane. Copies may be on their way (NCHW), or are still to come
  /// (NHWC): then chunks on the edge are cleared as a whole.
  SL_DEVICE void clear_margins() const {
    constexpr int TAIL = (Cfg::LEAD + W) % 8;  // columns of the last chunk that lie inside, 0: all
    struct Chunk {
      int at;
      bool outside, left, right;  ///< as a whole; columns on the left of the plane; on the right
    };
    using Chunks = Sweep<G * PART * C>;
    Chunks::run(
        now.images,
        [&](unsigned slot) {
          const int chunk = static_cast<int>(slot % C);
          const int number = static_cast<int>(slot / C % PART * G + slot / C / PART);
          const bool present = inside(first_row() + number, H) && number < TILE + R - 1;
          return Chunk{row_at(number) + chunk * 16, !present, Cfg::LEAD > 0 && chunk == 0, TAIL > 0 && chunk == C - 1};
        },
        [&](const Chunk& c, int image, int channel) {
          const Shared to = planes + (plane_at(image, channel) + c.at);
          if (c.outside || (NHWC && (c.left || c.right))) {
            SL_UNROLL
            for (int i = 0; i < CHANNELS; i += Chunks::STEP) clear_shared(to + plane_at(0, i));
          } else if (!NHWC && (c.left || c.right)) {
            SL_UNROLL
            for (int i = 0; i < CHANNELS; i += Chunks::STEP) {
              const Shared there = to + plane_at(0, i);
              SL_UNROLL
              for (int column = 0; column < Cfg::LEAD; column += 2) {
                if (c.left) store_shared(there + 2 * column, 0);
              }
              if (TAIL % 2 == 1 && c.right) store_shared_half(there + 2 * TAIL, 0);
              SL_UNROLL
              for (int column = (TAIL + 1) / 2 * 2; column < 8; column += 2) {
                if (c.right) store_shared(there + 2 * column, 0);
              }
            }
          }
        });
  }

  struct Vector {
    int at;      ///< byte in a plane
    int offset;  ///< element in a plane of x or y
    bool there;
  };

  // NCHW: where no warps share a plane, each brings and stores its own, and waits for no other.
  static constexpr bool OWN = !NHWC && KS == 1;
  /// Number of a plane of x (and of y).
  SL_DEVICE I x_plane(int image, int channel) const {
    return (now.image + image) * static_cast<I>(p.c) + channel0 + channel;
  }
  SL_DEVICE void load_nchw() const {
    constexpr int VECTORS = W / Cfg::LOAD;
    using Vectors = Sweep<VECTORS * ROWS_IN>;
    const auto* const x = keep(static_cast<const Bits<Cfg>*>(p.x));
    const auto prepare = [&](int vector, int line) {
      const int h = first_inside() + line, row = h - first_row();
      return Vector{row_at(row) + (Cfg::LEAD + vector * Cfg::LOAD) * 2, h * W + vector * Cfg::LOAD,
                    ONE_TILE || (h < H && row < TILE + R - 1)};
    };
    const auto copy = [](Shared to, const Bits<Cfg>* from, bool present) {
      if constexpr (Cfg::LOAD >= 2) {
        copy_async<2 * Cfg::LOAD>(to, from, present);
      } else {
        if (present) store_shared_half(to, load_readonly(from));
      }
    };
    if constexpr (OWN) {
      SL_UNROLL_BY(1)
      for (int number = thread_id() / 32; number < UNITS; number += AT_ONCE) {
        const int channel = number % CHANNELS, image = number / CHANNELS * NI;
        const Bits<Cfg>* from[NI];
        SL_UNROLL
        for (int i = 0; i < NI; ++i) {  // what does not exist is not read, but an address all the same
          const bool present = image + i < now.images && (Cfg::WHOLE != 0 || channel < channels);
          from[i] = x + (present ? x_plane(image + i, channel) : 0) * (H * W);
        }
        const Shared to = planes + plane_at(image, channel);
        warp_sweep<VECTORS, ROWS_IN>(prepare, [&](const Vector& v) {
          SL_UNROLL
          for (int i = 0; i < NI; ++i) {
            copy(to + (v.at + i * IMAGE_BYTES), from[i] + v.offset,
                 image + i < now.images && (Cfg::WHOLE != 0 || channel < channels));
          }
        });
      }
    } else {
      const auto at = [&](unsigned slot) {
        return prepare(static_cast<int>(slot % VECTORS), static_cast<int>(slot / VECTORS));
      };
      Vectors::run(now.images, at, [&](const Vector& v, int image, int channel) {
        if (!v.there) return;
        const Bits<Cfg>* const from = x + x_plane(image, channel) * (H * W) + v.offset;
        const Shared to = planes + (plane_at(image, channel) + v.at);
        SL_UNROLL
        for (int i = 0; i < CHANNELS; i += Vectors::STEP) {
          copy(to + plane_at(0, i), from + static_cast<I>(i) * (H * W), Cfg::WHOLE != 0 || channel + i < channels);
        }
      });
    }
    copy_async_commit();
  }

  // NHWC: a thread moves two neighbouring pixels of V channels, which are V words of V planes.
  static constexpr int V = Cfg::LOAD, ACROSS = CHANNELS / (NHWC ? V : 1);
  template <int COLUMNS>
  using Lines = PixelLines<COLUMNS, ACROSS, THREADS>;
  using LinesIn = Lines<W>;
  struct Pixels {
    static constexpr int ALL = LinesIn::turns(ROWS_IN * IMAGES), MOST = V < 4 ? 8 : 32 / V;
    static constexpr int COUNT = ALL < MOST ? ALL : MOST;
    Raw<2 * V> raw[COUNT][2];
    int to[COUNT];
  };
  SL_DEVICE void fetch(Pixels& pixels, int turn) const {
    SL_UNROLL
    for (int b = 0; b < Pixels::COUNT; ++b) {
      const LinesIn at(turn + b);
      const int image = static_cast<int>(at.line / ROWS_IN), h = first_inside() + static_cast<int>(at.line % ROWS_IN);
      const int row = h - first_row();
      const bool wanted = at.there && image < now.images && (ONE_TILE || (h < H && row < TILE + R - 1)) &&
                          (Cfg::WHOLE != 0 || at.octet * V < channels);
      pixels.to[b] = wanted ? plane_at(image, at.octet * V) + row_at(row) + (Cfg::LEAD + at.column) * 2 : -1;
      if (!wanted) continue;
      const Bits<Cfg>* const from =
          static_cast<const Bits<Cfg>*>(p.x) +
          ((((now.image + image) * H + h) * static_cast<I>(W) + at.column) * static_cast<I>(p.c) + channel0 +
           at.octet * V);
      pixels.raw[b][0] = load_raw<2 * V, true>(from);
      pixels.raw[b][1] = zero_raw<2 * V>();
      if (W % 2 == 0 || at.column + 1 < W) pixels.raw[b][1] = load_raw<2 * V, true>(from + static_cast<I>(p.c));
    }
  }
  using Pair = Raw<2 * V>[2];
  SL_DEVICE static void put(Shared to, const Pair& pair) {
    SL_UNROLL
    for (int i = 0; i < V; ++i) {
      const unsigned low = pair[0].word[i / 2], high = pair[1].word[i / 2];
      store_shared(to + i * PLANE_BYTES, permute_bytes(low, high, i % 2 == 0 ? 0x5410U : 0x7632U));
    }
  }
  SL_DEVICE void put(const Pixels& pixels) const {
    SL_UNROLL
    for (int b = 0; b < Pixels::COUNT; ++b) {
      if (pixels.to[b] >= 0) put(planes + pixels.to[b], pixels.raw[b]);
    }
  }

  SL_DEVICE void load() const {
    [[maybe_unused]] Pixels pixels;
    if constexpr (NHWC) {
      fetch(pixels, 0);
    } else {
      load_nchw();
    }
    filters.load([&] {
      clear_margins();
      barrier();
    });
    if constexpr (NHWC) {
      put(pixels);
      if constexpr (Pixels::ALL > Pixels::COUNT) {
        SL_UNROLL_BY(1)
        for (int turn = Pixels::COUNT; turn < Pixels::ALL; turn += Pixels::COUNT) {
          fetch(pixels, turn);
          put(pixels);
        }
      }
    }
    if constexpr (!OWN) copy_async_wait<0>();
    barrier();
  }

  /// PACK planes that a warp computes, and where the lane's first output goes: in the place of the planes.
  struct Unit {
    int image, channel;
    bool there;
    Shared out;
    float bias;
  };
  SL_DEVICE Unit unit_of(int number) const {
    const int lane = thread_id() % 32;
    Unit unit{number / CHANNELS * NI, number % CHANNELS, false, planes, 0.0F};
    unit.there = number < UNITS && unit.image < now.images && (Cfg::WHOLE != 0 || unit.channel < channels);
    unit.out = planes + (plane_at(unit.image, unit.channel) + lane / 4 * ROW_BYTES + (OUT_COLUMN + lane % 4 * 2) * 2);
    if (unit.there) unit.bias = bias_of<Cfg>(p, channel0 + unit.channel);
    return unit;
  }
  /// From a lane's first output to that of tile q of half `half`, high rows.
  SL_DEVICE static constexpr int output_at(int half, int high, int q) {
    return half / G * 2 * IMAGE_BYTES + row_at(half % G + OUT_ROW) + high * HIGH_BYTES + q * 16;
  }
  struct Output {
    I image;
    int row, column;
    bool there;
  };
  SL_DEVICE Output output(const Unit& unit, int half, int high, int q, int i) const {
    const int lane = thread_id() % 32, image = unit.image + (NI == 1 ? 0 : half / G * 2 + high);
    const int row = now.top + G * (lane / 4 + (NI == 1 ? 8 * high : 0)) + half % G, column = q * 8 + lane % 4 * 2 + i;
    return {now.image + image, row, column, image < now.images && row < P && column < Q};
  }
  SL_DEVICE float finished(float sum, const Unit& unit, int half, int high, int q, int i) const {
    if constexpr (Cfg::BIAS != kBiasNone) sum += unit.bias;
    if constexpr (Cfg::RESIDUAL != 0) {
      const Output o = output(unit, half, high, q, i);
      const I at = y_offset<Cfg>(p, o.image, static_cast<I>(channel0 + unit.channel), static_cast<I>(o.row),
                                 static_cast<I>(o.column));
      if (o.there) sum += E::widen(load_raw<2, false>(static_cast<const Bits<Cfg>*>(p.z) + at).word[0]);
    }
    return activate<Cfg::ACT>(sum, p.alpha, p.beta);
  }

  /// Bias, residual, activation and rounding of 16 x 8 sums. Adds what is not 0 to `leak` where an output is not
  /// finite.
  SL_DEVICE void finish(const float (&sum)[4], int half, int q, const Unit& unit, unsigned& leak) const {
    SL_UNROLL
    for (int high = 0; high < 2; ++high) {
      const float left = finished(sum[2 * high], unit, half, high, q, 0);
      const float right = finished(sum[2 * high + 1], unit, half, high, q, 1);
      unsigned word = E::narrow2(left, right);
      if constexpr (STREAM) {  // what lies beside the plane stays 0
        const int lane = thread_id() % 32, row = G * (lane / 4 + (NI == 1 ? 8 * high : 0)) + half % G;
        if ((TILE < MOST && row >= TILE) || q * 8 + lane % 4 * 2 >= Q) continue;
        if (Q % 2 != 0 && q * 8 + lane % 4 * 2 + 1 == Q) word &= 0xffffU;
      }
      store_shared(unit.out + output_at(half, high, q), word);
      leak = fma2<Cfg::DTYPE>(word, 0, leak);
    }
  }
  SL_DEVICE static bool leaks(unsigned leak) { return (leak & 0x7fff7fffU) != 0; }

  /// Computes a lane's NaNs of tiles first, first + step, ... again: an Inf or NaN may have met a structural zero.
  SL_DEVICE void repair(int first, int step, const Unit& unit) const {
    SL_UNROLL_BY(1)
    for (int number = first * 4; number < TILES * 4; number += number % 4 == 3 ? 4 * step - 3 : 1) {
      const int half = number / 4 / TILES_Q, q = number / 4 % TILES_Q, high = number / 2 % 2, i = number % 2;
      const Output o = output(unit, half, high, q, i);
      if (!o.there) continue;
      const Shared at = unit.out + (output_at(half, high, q) + i * 2);
      if ((load_shared_half(at) & 0x7fffU) <= (Cfg::DTYPE == kF16 ? 0x7c00U : 0x7f80U)) continue;
      const float exact = exact_sum<Cfg>(p, o.image, channel0 + unit.channel, o.row, o.column);
      store_shared_half(at, E::narrow(finished(exact, unit, half, high, q, i)));
    }
  }

  /// What the block has, or where each warp stores its own PACK planes, those.
  SL_DEVICE void store_nchw(int own_image, int own_channel) const {
    constexpr int VECTORS = Q / Cfg::STORE;
    using Vectors = Sweep<VECTORS * TILE>;
    auto* const y = keep(static_cast<Bits<Cfg>*>(p.y));
    const auto prepare = [&](int vector, int row) {
      return Vector{row_at(row) + vector * (Cfg::STORE * 2), (now.top + row) * Q + vector * Cfg::STORE,
                    P % TILE == 0 || now.top + row < P};
    };
    const auto copy = [](Bits<Cfg>* to, const unsigned char* from) {
      store_raw<2 * Cfg::STORE>(to, load_raw<2 * Cfg::STORE, false>(from));
    };
    if constexpr (OWN) {
      const unsigned char* const from = memory + plane_at(own_image, own_channel);
      Bits<Cfg>* const to = y + x_plane(own_image, own_channel) * (P * Q);
      const I image_elements = static_cast<I>(p.c) * (P * Q);
      warp_sweep<VECTORS, TILE>(prepare, [&](const Vector& v) {
        SL_UNROLL
        for (int i = 0; i < NI; ++i) {
          if (own_image + i < now.images) copy(to + (i * image_elements + v.offset), from + (v.at + i * IMAGE_BYTES));
        }
      });
    } else {
      const auto at = [&](unsigned slot) {
        return prepare(static_cast<int>(slot % VECTORS), static_cast<int>(slot / VECTORS));
      };
      Vectors::run(now.images, at, [&](const Vector& v, int image, int channel) {
        if (!v.there) return;
        Bits<Cfg>* const to = y + x_plane(image, channel) * (P * Q) + v.offset;
        const unsigned char* const from = memory + (plane_at(image, channel) + v.at);
        SL_UNROLL
        for (int i = 0; i < CHANNELS; i += Vectors::STEP) {
          if (Cfg::WHOLE != 0 || channel + i < channels) {
            copy(to + static_cast<I>(i) * (P * Q), from + plane_at(0, i));
          }
        }
      });
    }
  }

  /// Which of the filter rows are the warp's.
  SL_DEVICE static int share() { return KS == 1 ? 0 : thread_id() / 32 % KS; }

  SL_DEVICE void compute_all(const Kept& kept) const {
    if constexpr (OWN) {
      copy_async_wait<0>();
      warp_sync();
    }
    SL_UNROLL_BY(1)
    for (int unit0 = 0; unit0 < UNITS; unit0 += KEPT * AT_ONCE) {
      SL_UNROLL
      for (int i = 0; i < KEPT; ++i) compute_unit(unit0 + i * AT_ONCE, kept[i]);
    }
  }
  /// One unit of each warp (of SPLIT warps).
  SL_DEVICE void compute_unit(int unit0, const typename Filters::Bands& kept) const {
    const int warp = thread_id() / 32, share = this->share();
    {
      const Unit unit = unit_of(unit0 + warp / KS);
      Sums sums;
      if (unit.there) {
        Products::compute(sums, planes + plane_at(unit.image, unit.channel), share * ROWS,
                          filters.of(unit.channel, share * ROWS), kept);
      }
      if constexpr (KS == 1) {
        if (!unit.there) return;
        warp_sync();
        unsigned leak = 0;
        SL_UNROLL
        for (int tile = 0; tile < TILES; ++tile) {
          finish(sums[tile / TILES_Q][tile % TILES_Q], tile / TILES_Q, tile % TILES_Q, unit, leak);
        }
        if (leaks(leak)) repair(0, 1, unit);
        if constexpr (OWN) {
          warp_sync();
          store_nchw(unit.image, unit.channel);
        }
      } else {
        Word4* const partial = reinterpret_cast<Word4*>(memory + PARTIAL_AT) + thread_id() % 32;
        if (unit.there) {
          SL_UNROLL
          for (int tile = 0; tile < TILES; ++tile) {
            const float(&from)[4] = sums[tile / TILES_Q][tile % TILES_Q];
            partial[(warp * TILES + tile) * 32] =
                Word4{float_bits(from[0]), float_bits(from[1]), float_bits(from[2]), float_bits(from[3])};
          }
        }
        barrier();
        unsigned leak = 0;
        SL_UNROLL_BY(1)
        for (int tile = share; tile < TILES && unit.there; tile += KS) {
          float total[4] = {0.0F, 0.0F, 0.0F, 0.0F};
          SL_UNROLL
          for (int i = 0; i < KS; ++i) {
            const Word4 part = partial[((warp - share + i) * TILES + tile) * 32];
            total[0] += float_from_bits(part.x), total[1] += float_from_bits(part.y);
            total[2] += float_from_bits(part.z), total[3] += float_from_bits(part.w);
          }
          finish(total, tile / TILES_Q, tile % TILES_Q, unit, leak);
        }
        if (leaks(leak)) repair(share, KS, unit);
        if (unit0 + AT_ONCE < UNITS) barrier();
      }
    }
  }

  SL_DEVICE void store_nhwc() const {
    using LinesOut = Lines<Q>;
    SL_UNROLL_BY(2)
    for (int turn = 0; turn < LinesOut::turns(TILE * IMAGES); ++turn) {
      const LinesOut at(turn);
      const int image = static_cast<int>(at.line / TILE), row = static_cast<int>(at.line % TILE);
      if (!at.there || image >= now.images || (P % TILE != 0 && now.top + row >= P)) continue;
      if (Cfg::WHOLE == 0 && at.octet * V >= channels) continue;
      Bits<Cfg>* const to =
          static_cast<Bits<Cfg>*>(p.y) +
          ((((now.image + image) * P + now.top + row) * static_cast<I>(Q) + at.column) * static_cast<I>(p.c) +
           channel0 + at.octet * V);
      give(planes + (plane_at(image, at.octet * V) + row_at(row) + at.column * 2), to, Q % 2 == 0 || at.column + 1 < Q);
    }
  }
  /// Two pixels of V channels from V planes to y; the second only where it is `there`.
  SL_DEVICE void give(Shared from, Bits<Cfg>* to, bool there) const {
    unsigned word[V];
    SL_UNROLL
    for (int i = 0; i < V; ++i) word[i] = load_shared(from + i * PLANE_BYTES);
    SL_UNROLL
    for (int pixel = 0; pixel < 2; ++pixel) {
      Raw<2 * V> out;
      SL_UNROLL
      for (int i = 0; i < Raw<2 * V>::words; ++i) {
        out.word[i] = V == 1 ? word[0] >> (16 * pixel)
                             : permute_bytes(word[2 * i], word[(2 * i + 1) % V], pixel == 0 ? 0x5410U : 0x7632U);
      }
      if (pixel == 0 || there) store_raw<2 * V>(to + static_cast<I>(pixel) * static_cast<I>(p.c), out);
    }
  }

  SL_DEVICE void run() {
    load();
    Kept kept = {};
    filters.keep(kept, share());
    compute_all(kept);
    if constexpr (OWN) return;
    barrier();
    if constexpr (NHWC) {
      store_nhwc();
    } else {
      store_nchw(0, 0);
    }
  }
};

template <class Cfg>
SL_DEVICE void dw_band_rows(const SlParams& p) {
  SL_DYNAMIC_SHARED(unsigned char, shared);
  if constexpr (Cfg::STREAM != 0) {
    BandStream<Cfg, BandRows<Cfg>> work(p, shared);
    work.run();
  } else {
    BandRows<Cfg> work(p, shared);
    work.run();
  }
}

}  // namespace sl
