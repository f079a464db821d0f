// A process of this program that another one starts, and the pipes between them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/result.hpp"
#include "store/posix_io.hpp"

namespace sl::tool {

struct Child {
  pid_t pid = 0;
  Fd report;  ///< the reading end of its stdout
};

/// This program with `words` as its arguments; `input`, where it is not null, is what it reads from stdin. The child
/// must call end_with() with this process's id, which its words tell it.
Result<Child> start_child(std::vector<std::string> words, const std::string* input = nullptr);
/// The status that waitpid() has for it, once it has ended.
int wait_for(const Child&);

/// For the child: it ends when `parent` does, however that ends, so that none goes on alone with a GPU. 0 = nobody's
/// child. An error where the parent is gone already.
Status end_with(int parent);

}  // namespace sl::tool
