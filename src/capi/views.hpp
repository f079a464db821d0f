// Strided views: which are packed tensors of the stated layout.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "sluice/sluice.h"

namespace sl::capi {

/// A view with four dimensions, in logical order; conv1d has rows of 1.
struct View {
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{0, 0, 0, 0};
  bool stated = false;  ///< false: strides NULL, packed by definition
};

/// What the dimensions of a tensor are: 3 or 4 of them; the first a batch (x, y, z), which may be 0 or large, or not
/// (w).
struct Rank {
  std::int32_t ndim = 4;
  bool batch = true;
};

/// Reads a tensor that must have this rank and `dtype`: ok, or invalid with `error` filled.
Code read_view(const char* name, const sluice_tensor&, Rank, std::int32_t dtype, View&, Error&);

/// Whether the strides are those of a packed tensor: n, c, h, w with w fastest, or with c fastest where
/// `channels_last`. The stride of a dimension of size 1 addresses nothing, so any will do; so does any where a
/// dimension is 0.
bool packed(const View&, bool channels_last);

std::string dtype_text(std::int32_t dtype);  ///< "f16", or the number where it is none

}  // namespace sl::capi
