// The ring of input rows in shared memory of a block of dw_band_nhwc (kernels/dw_band_nhwc.cuh), and the copies that
// fill it, sorted by groups of channels: units of rows, on from band to band and image to image.
#pragma once

#include "common/band_nhwc_shape.cuh"
#include "common/conv.cuh"

namespace sl {

/// Bytes of a row of x, in one register where offsets fit in 32 bits: they are below 2^32 then.
SL_DEVICE unsigned row_bytes(const SlParams& p, int) {
  return static_cast<unsigned>(keep(static_cast<int>(static_cast<unsigned>(p.w) * static_cast<unsigned>(p.c) * 2)));
}
SL_DEVICE long long row_bytes(const SlParams& p, long long) { return p.w * p.c * 2; }

/// The ring of a block, and what it loads next. Cfg as of BandNhwc.
template <class Cfg>
struct BandNhwcRing : BandNhwcShape<Cfg> {
  using Shape = BandNhwcShape<Cfg>;
  using Shape::SH, Shape::CW, Shape::RG, Shape::PI, Shape::CHUNK_PIXELS, Shape::GROUPS, Shape::UNIT, Shape::FIRST_UNITS,
      Shape::SKIP, Shape::ROW_BYTES, Shape::UNIT_BYTES, Shape::chunk_at, Shape::flipped;
  using typename Shape::I, typename Shape::Cursor, typename Shape::Block;
  static constexpr int BYTES = GROUPS * Cfg::GROUP_CHUNKS * 16;
  static constexpr int ROW_PIXELS = Cfg::ROW_CHUNKS * CHUNK_PIXELS;
  static constexpr int PIXEL_BYTES = 2 * CW, PIECE = Cfg::LOAD < PIXEL_BYTES ? Cfg::LOAD : PIXEL_BYTES;
  static constexpr int FETCHERS = Cfg::THREADS / GROUPS;

  const SlParams& p;
  const Shared memory;
  const int k0, left;  ///< first channel; input column that the tile begins with
  Cursor coming;       ///< of the unit loaded next
  int coming_unit = 0, coming_slot = 0;

  SL_DEVICE BandNhwcRing(const SlParams& params, const Block& block, Shared first)
      : p(params), memory(first), k0(block.k0), left(block.left), coming(block.start) {}

  /// The columns of x that this block loads: [first_column, end_column) of its tile.
  SL_DEVICE int first_column() const { return within_row(-left); }
  SL_DEVICE int end_column() const { return within_row(static_cast<int>(p.w) - left); }
  SL_DEVICE static int within_row(int column) { return column < 0 ? 0 : (column < ROW_PIXELS ? column : ROW_PIXELS); }

  /// Zeros into the chunks that hold columns beyond the edges of the image, which no copy writes.
  SL_DEVICE void clear_margins() const {
    const int before = (first_column() + CHUNK_PIXELS - 1) / CHUNK_PIXELS, after = end_column() / CHUNK_PIXELS;
    const int chunks = before + Cfg::ROW_CHUNKS - after;  // those that are partly margin may count twice
    for (int i = thread_id() % 4; i < chunks; i += 4) {
      const Shared to = memory + chunk_at(i < before ? i : after + i - before) * 16;
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
    const long long image_bytes = PI == 1 ? 0 : static_cast<long long>(row) * p.h;
    SL_UNROLL
    for (int i = 0; i < Along::STEPS; ++i) {
      const int at = column + i * Along::AT_ONCE;
      const bool there = at < end;
      Shared to =
          keep(memory + (group * (Cfg::GROUP_CHUNKS * 16) + coming_slot * UNIT_BYTES + mine.row * ROW_BYTES +
                         chunk_at(over<CHUNK_PIXELS>(at)) * 16 + (rest<CHUNK_PIXELS>(at) ^ flip) * PIXEL_BYTES));
      const unsigned char* x = keep(
          reinterpret_cast<const unsigned char*>(first + static_cast<I>(i * Along::AT_ONCE) * static_cast<I>(p.c)));
      SL_UNROLL_BY(UNIT == 1 ? PI : 1)
      for (int image = 0; image < PI; ++image) {
        const bool here = there && (PI == 1 || image < coming.images);
        SL_UNROLL
        for (int r = 0; r < UNIT; r += Along::ROWS) {
          if (r + Along::ROWS > UNIT && r + mine.row >= UNIT) break;
          if (SKIP > 0 && r < SKIP && r < skip) continue;
          const unsigned char* from = x + static_cast<long long>(row) * r;
          if (here) {
            copy_pixel(to + r * ROW_BYTES, reinterpret_cast<const Bits<Cfg>*>(from),
                       inside(h0 + r, static_cast<int>(p.h)), k);
          }
        }
        x += image_bytes;
        to = to + Cfg::IMAGE_CHUNKS * 16;
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
};

}  // namespace sl
