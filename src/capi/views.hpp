// Strided views: which are packed tensors of the stated layout.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

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

constexpr std::int64_t size_limit = std::int64_t{1} << 31;
constexpr std::int64_t batch_limit = std::int64_t{1} << 40;

/// Finds what is wrong with a tensor that read_view() cannot read; ok where nothing is.
Code unreadable(std::string_view name, const sluice_tensor&, Rank, std::int32_t dtype, Error&);

/// Whether all hold; every one is evaluated, so that the hot path does not branch on each.
template <class... Bools>
constexpr bool all(Bools... holds) {
  return (static_cast<int>(holds) & ...) != 0;
}

/// 1 <= size < size_limit, in one comparison.
inline bool legal(std::int64_t size) {
  return static_cast<std::uint64_t>(size) - 1 < static_cast<std::uint64_t>(size_limit) - 1;
}

/// n c h w of (n, c, h, w), or of (n, c, w).
inline std::array<std::int64_t, 4> spread(const std::int64_t* values, bool conv1d, std::int64_t rows) {
  return {values[0], values[1], conv1d ? rows : values[2], conv1d ? values[2] : values[3]};
}

/// Reads a tensor that must have this rank and `dtype`: ok, or invalid with `error` filled. Inline: the hot path reads
/// three of them.
inline Code read_view(const char* name, const sluice_tensor& tensor, Rank rank, std::int32_t dtype, View& view,
                      Error& error) {
  const bool readable = all(tensor.ndim == rank.ndim, tensor.dtype == dtype, tensor.dims != nullptr);
  if (readable) [[likely]] {
    const bool conv1d = rank.ndim == 3;
    view.dims = spread(tensor.dims, conv1d, 1);
    view.stated = tensor.strides != nullptr;
    if (view.stated) view.strides = spread(tensor.strides, conv1d, 0);
    const bool first = rank.batch ? static_cast<std::uint64_t>(view.dims[0]) < static_cast<std::uint64_t>(batch_limit)
                                  : legal(view.dims[0]);
    if (all(first, legal(view.dims[1]), legal(view.dims[2]), legal(view.dims[3]))) return Code::ok;
  }
  return unreadable(name, tensor, rank, dtype, error);
}

/// Whether the strides are those of a packed tensor: n, c, h, w with w fastest, or with c fastest where
/// `channels_last`. The stride of a dimension of size 1 addresses nothing, so any will do; so does any where a
/// dimension is 0.
bool packed(const View&, bool channels_last);

std::string dtype_text(std::int32_t dtype);  ///< "f16", or the number where it is none

}  // namespace sl::capi
