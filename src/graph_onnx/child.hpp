// Running someone else's code on a file that comes from anywhere: in a child process, so that its crash is an error
// value.
#pragma once

#include <functional>
#include <string>

#include "core/result.hpp"

namespace sl::graph {

/// Forks; the child runs `work` with its stderr closed, core dumps off, at most a minute of CPU time and 4 GiB more
/// memory than the parent has, and what it writes into its argument is the result. Work that returns false, throws or
/// dies is Code::invalid with what it said.
Result<std::string> in_child(const std::function<bool(std::string&)>& work);

}  // namespace sl::graph
