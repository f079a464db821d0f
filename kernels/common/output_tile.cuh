// Output tiles of a chunk, numbered along a row of tiles, then down the image, then from image to image.
#pragma once

#include "common/index.cuh"

namespace sl {

template <class Cfg>
struct OutputTile {
  Index<Cfg> n, row, column;  ///< of its first output
};

/// Tile `number` of HIGH rows x WIDE columns. div[1] = column tiles, div[2] = row tiles.
template <class Cfg, int HIGH, int WIDE>
SL_DEVICE OutputTile<Cfg> output_tile(Index<Cfg> number, const SlParams& p) {
  OutputTile<Cfg> at;
  at.column = take(number, p.div[1]) * WIDE;
  at.row = take(number, p.div[2]) * HIGH;
  at.n = number;
  return at;
}

}  // namespace sl
