// What the schedules of common/plane_strip.cuh share: how planes are cut into strips, and what all of them take.
#pragma once

#include "schedules/common.hpp"

namespace sl::plane_strip {

constexpr std::int64_t narrow = 16, wide = 128;  ///< columns of a plane: a thread's alone, and of several
constexpr std::int64_t register_budget = 225;

std::int64_t size(const ConvProblem&);  ///< bytes of an element
/// Bytes of one copy of weights: a block's planes begin at any multiple of what its planes and all have in common.
int weight_bytes(const ConvProblem&, std::int64_t planes);
/// Whether a thread that has a plane to itself may write output rows where its input rows were. (Not where the words it
/// reads are also another plane's.)
bool in_place(const ConvProblem&, const Config&);
/// Registers a thread needs; an upper bound in practice, set against ptxas (nvrtc_space_test).
std::int64_t registers_of(const ConvProblem&, std::int64_t tiles);
/// What none of these schedules takes, whatever the configuration.
Refusal not_small_planes(const ConvProblem&);
/// All that common/plane_strip.cuh compiles in; reads the knobs planes, strips and tiles.
Constants constants(const ConvProblem&, const Config&);

/// A configuration's planes, and the rows and columns of a thread.
struct Try {
  int planes;
  std::int64_t rows, cols;
};
/// The best of those measured, by size, stride and bytes an element.
std::vector<Try> tries_of(const ConvProblem&);

}  // namespace sl::plane_strip
