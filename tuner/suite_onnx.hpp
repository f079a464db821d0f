// ONNX models as suites; part of sluice-rewrite alone.
#pragma once

#include <string>

#include "core/result.hpp"
#include "tuner/suite.hpp"

namespace sl::tool {

/// The convolutions of a model, whose network is the file's stem.
Result<Suite> read_onnx_suite(const std::string& path, const SuiteDefaults&);

}  // namespace sl::tool
