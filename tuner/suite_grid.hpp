// A suite that nobody's network made: calls spread over everything that the choice of a schedule depends on.
#pragma once

#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "tuner/suite.hpp"

namespace sl::tool {

/// Which values each property takes. What is empty here has its default.
struct GridOptions {
  std::size_t calls = 400;
  std::uint64_t seed = 1;
  std::vector<std::int64_t> batches;
  std::vector<DType> dtypes;
  std::vector<Layout> layouts;
};

struct GridSuite {
  std::vector<SuiteCall> calls;
  std::size_t pairs = 0;    ///< pairs of values of two properties that some legal call has
  std::size_t covered = 0;  ///< those that a drawn call has
};

/// First a pairwise cover: while a pair of values of two properties is in no call, a call with it is drawn. Then a fill
/// of what networks use most: of some calls that are drawn so, the one whose pairs are in the fewest calls. A call
/// moves at most 512 MiB and computes at most 2^36 multiply-adds, so that measuring it is short and its buffers fit
/// beside its rivals'. The same options give the same calls, on every machine.
Result<GridSuite> make_grid(const GridOptions&);

}  // namespace sl::tool
