// The work of `sluice suite`, in `sluice` and in sluice-rewrite, which can read ONNX models.
#pragma once

#include <functional>
#include <string>

#include "core/result.hpp"
#include "tuner/options.hpp"
#include "tuner/suite.hpp"

namespace sl::tool {

/// By its name, as runtimes tell a model from other files.
bool is_onnx(const std::string& path);

using OnnxReader = std::function<Result<Suite>(const std::string& path, const SuiteDefaults&)>;

/// Joins the files of the options, or draws a grid, and writes the suite. `read_onnx` may be empty where no file is a
/// model. Returns the exit code.
Result<int> make_suite(const Options&, const OnnxReader& read_onnx);

}  // namespace sl::tool
