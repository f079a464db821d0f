// Suites: lists of calls that real networks make (configs/suites/*.json).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"

namespace sl::tool {

/// Every combination that an entry leaves open is made; what `..._win` says is made whatever the entry says.
struct SuiteDefaults {
  std::vector<std::int64_t> batches = {1};
  std::vector<DType> dtypes = {DType::f16};
  std::vector<Layout> layouts = {Layout::nhwc};
  bool batches_win = false, dtypes_win = false;
};

/// A suite is a JSON array, or a descriptor a line. An entry of an array is a descriptor with key=value tokens
/// ("g16ic16ih14oc16oh14kh3ph1 dt=f16 tag=nhwc"), or an object: c, h, w, k, groups, kh, kw, stride, pad, dil (pairs;
/// dilation 1 = dense), and optionally N (batches) and dt (types, "fp16" or "f16"). Other keys are for readers. The
/// message names the file, the entry and the field.
Result<std::vector<ConvProblem>> load_suite(const std::filesystem::path&, const SuiteDefaults& = {});

}  // namespace sl::tool
