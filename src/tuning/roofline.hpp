// The least time that a problem takes on a machine: the bytes it must move, or the arithmetic it must do.
#pragma once

#include "core/conv_problem.hpp"

namespace sl {

/// Multiply-adds a second, measured (not from a data sheet). 0 = unknown: no floor from it.
struct Peaks {
  double fma = 0;  ///< fp32 on the ordinary units
  double mma = 0;  ///< of mma.sync m16n8k16 on 16-bit inputs with fp32 sums
};

/// Multiply-adds on taps that lie inside the input: padding costs nothing.
double inside_macs(const ConvProblem&);

/// Multiply-adds that a matrix unit spends at least, structural zeros included, over kernel rows that lie inside the
/// input: the smaller of the Toeplitz mapping (8 ceil((s + 7) / 8) an output, row and channel of the group, stride and
/// dilation widening the band) and the block-diagonal one (8 an output and tap for each 8 channels of the group).
double matrix_macs(const ConvProblem&);

/// Microseconds of arithmetic: inside_macs over the fp32 peak; for 16-bit data the smaller of that and matrix_macs over
/// the matrix peak. 0 where the peaks are unknown.
double arithmetic_floor_us(const ConvProblem&, const Peaks&);

}  // namespace sl
