// Makes system calls fail on demand: the test binary defines these functions itself, so the store calls the ones here.
#pragma once

#include <string>

namespace sl::test {

/// While it lives, the next `times` calls of `call` (openat, mkdirat, write, read, fsync, renameat, unlinkat,
/// getrandom) on this thread, after `skip` good ones, fail with `error`; for write, error 0 means a short write of one
/// byte.
class Fault {
 public:
  Fault(std::string call, int error, int times = 1000000, int skip = 0);
  ~Fault();
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  int hits() const;  ///< how many calls failed
};

/// Calls of `call` on this thread since the start of the test binary.
int calls_of(const std::string& call);

}  // namespace sl::test
