// What the schedules of common/toeplitz.cuh share: the shape of a plane's matrix and its tables, and what all of them
// take.
#pragma once

#include "schedules/common.hpp"

namespace sl::toeplitz {

constexpr std::int64_t rows_of_a = 16;  ///< images

/// How many chunks of 8 elements a plane meets, wherever it begins.
std::int64_t chunks_of(std::int64_t plane);
/// From image to image in 32-bit words: whole chunks, what the last one holds beyond the planes, and an odd number of
/// them, so that matrix loads meet no bank twice.
std::int64_t pitch_of(std::int64_t elements);
/// Elements of a table, and of those before the first tap.
std::int64_t length_of(const ConvProblem&);
std::int64_t low_of(const ConvProblem&);
/// Registers of a thread, `parts` warps a channel, 16 x `groups` images at once: above all the chunks of input that a
/// part of the tiles keeps, two each.
std::int64_t registers_of(const ConvProblem&, std::int64_t parts, std::int64_t groups);
/// What no schedule of these takes, whatever the configuration.
Refusal not_small_planes(const ConvProblem&);
/// All that common/toeplitz.cuh compiles in.
Constants constants(const ConvProblem&, std::int64_t channels, std::int64_t groups, std::int64_t parts);

}  // namespace sl::toeplitz
