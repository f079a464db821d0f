// Along one axis, rows or columns: which tap joins an input of a window with an output.
//
//   tap_at(i, o, ...)      the tap with which output o of neighbouring outputs reads input i, counted from the first
//                          tap of the first output; -1 where none does
//   input_used(i, n, ...)  whether any of n neighbouring outputs reads input i
#pragma once

#include "common/platform.cuh"

namespace sl {

SL_DEVICE constexpr int tap_at(int i, int o, int stride, int dilation, int taps) {
  const int away = i - o * stride;
  return away >= 0 && away % dilation == 0 && away / dilation < taps ? away / dilation : -1;
}

SL_DEVICE constexpr bool input_used(int i, int outputs, int stride, int dilation, int taps) {
  for (int o = 0; o < outputs; ++o) {
    if (tap_at(i, o, stride, dilation, taps) >= 0) return true;
  }
  return false;
}

}  // namespace sl
