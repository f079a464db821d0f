// The two forms of a suite file; suite.cpp tells them apart.
#pragma once

#include <string>

#include "tuner/suite.hpp"

namespace sl::tool {

/// `text` of `path`, a JSON array of descriptors and objects.
Result<Suite> suite_of_json(const std::string& text, const std::string& path, const SuiteDefaults&);
/// `text` of `path`: a descriptor a line, with benchdnn's flags.
Result<Suite> suite_of_lines(const std::string& text, const std::string& path, const SuiteDefaults&);
/// The whole of a file that need not be a regular one.
Result<std::string> suite_file(const std::string& path);

}  // namespace sl::tool
