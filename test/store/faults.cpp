#include "store/faults.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <map>

namespace sl::test {
namespace {

// Plain data: these functions run before and after everything else in the process.
struct Plan {
  const char* call = nullptr;
  int error = 0, times = 0, skip = 0, hits = 0;
};
thread_local Plan plan;
thread_local char plan_name[16];
constexpr int most_names = 8;
thread_local const char* counted[most_names];
thread_local int counts[most_names];

void count(const char* call) {
  for (int i = 0; i < most_names; ++i) {
    if (counted[i] == nullptr) counted[i] = call;
    if (std::strcmp(counted[i], call) == 0) {
      ++counts[i];
      return;
    }
  }
}

bool fails(const char* call) {
  count(call);
  if (plan.call == nullptr || std::strcmp(plan.call, call) != 0) return false;
  if (plan.skip > 0) {
    --plan.skip;
    return false;
  }
  if (plan.hits >= plan.times) return false;
  ++plan.hits;
  errno = plan.error;
  return true;
}

}  // namespace

Fault::Fault(std::string call, int error, int times, int skip) {
  std::strncpy(plan_name, call.c_str(), sizeof plan_name - 1);
  plan = {plan_name, error, times, skip, 0};
}
Fault::~Fault() { plan = {}; }
int Fault::hits() const { return plan.hits; }

int calls_of(const std::string& call) {
  for (int i = 0; i < most_names && counted[i] != nullptr; ++i)
    if (call == counted[i]) return counts[i];
  return 0;
}

}  // namespace sl::test

using sl::test::fails;

extern "C" {

int openat(int at, const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
  }
  return fails("openat") ? -1 : static_cast<int>(::syscall(SYS_openat, at, path, flags, mode));
}
int mkdirat(int at, const char* path, mode_t mode) __THROW {
  return fails("mkdirat") ? -1 : static_cast<int>(::syscall(SYS_mkdirat, at, path, mode));
}
ssize_t write(int fd, const void* from, size_t bytes) {
  if (fails("write")) {
    if (errno != 0) return -1;
    bytes = 1;
  }
  return ::syscall(SYS_write, fd, from, bytes);
}
ssize_t read(int fd, void* to, size_t bytes) { return fails("read") ? -1 : ::syscall(SYS_read, fd, to, bytes); }
int fsync(int fd) { return fails("fsync") ? -1 : static_cast<int>(::syscall(SYS_fsync, fd)); }
int renameat(int from_at, const char* from, int to_at, const char* to) __THROW {
  return fails("renameat") ? -1 : static_cast<int>(::syscall(SYS_renameat, from_at, from, to_at, to));
}
int unlinkat(int at, const char* path, int flags) __THROW {
  return fails("unlinkat") ? -1 : static_cast<int>(::syscall(SYS_unlinkat, at, path, flags));
}
ssize_t getrandom(void* to, size_t bytes, unsigned flags) {
  return fails("getrandom") ? -1 : ::syscall(SYS_getrandom, to, bytes, flags);
}

}  // extern "C"
