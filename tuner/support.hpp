// Facts about this process and machine, for the support report.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace sl::tool {

/// Mapped shared libraries whose file name starts with one of `stems` ("libcuda.so"), each once, as full paths.
std::vector<std::string> mapped_libraries(const std::vector<std::string>& stems);

/// Every variable of the process's environment whose name starts with `prefix`, in order of name.
std::vector<std::pair<std::string, std::string>> variables_with_prefix(const std::string& prefix);

/// The folder that this program's file is in.
Result<std::filesystem::path> own_folder();

/// "Linux 6.1.0 x86_64".
std::string operating_system();
std::string libc_version();
/// Compiler, build type and sanitizers of this program.
std::string build_description();

}  // namespace sl::tool
