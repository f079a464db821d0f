// The problems that every room's tests share: small, awkward, named.
#pragma once

#include <string>
#include <vector>

#include "core/conv_problem.hpp"

namespace sl::test {

/// A row of the table: f32, nchw, oihw, no bias, no epilogue, aligned to 16. At most 20000 outputs and 300000
/// multiply-adds, so that the host device and a Debug reference run all of it.
struct NamedProblem {
  const char* name;
  const char* why;  ///< the reported failure it follows (project#number), or what it is there for
  ConvProblem problem;
};

/// Sorted by kind; names are unique. All are valid.
const std::vector<NamedProblem>& test_problems();

/// By name; fails loudly (std::out_of_range) on an unknown one: a test's own mistake.
const ConvProblem& test_problem(const std::string& name);

/// Every dtype x layout x weight layout x bias x align in {16, size_of(dtype)}: 64 forms of a row, for few rows.
std::vector<ConvProblem> all_variants(const ConvProblem& row);

/// Six forms of a row, one for each dtype x layout; weight layout, bias, align, activation and residual rotate with
/// `turn`, so that a table walked with turn = 0, 1, 2, ... meets every pair of them.
std::vector<ConvProblem> spread_variants(const ConvProblem& row, std::size_t turn);

/// ConvProblem `row` with an activation and the parameters it is usually given (clip 0 6, leaky slope 0.1).
ConvProblem with_activation(ConvProblem row, Activation activation);

}  // namespace sl::test
