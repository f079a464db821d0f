#include "store/posix_io.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <system_error>

namespace sl {

Fd::~Fd() { (void)close(); }

int Fd::close() {
  if (fd_ < 0) return 0;
  // Never repeated on EINTR: on Linux the descriptor is gone either way.
  return ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR ? 0 : errno;
}

Fd open_at(int directory, const char* name, int flags, unsigned mode, int& error) {
  for (;;) {
    const int fd = ::openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd >= 0) {
      error = 0;
      return Fd(fd);
    }
    error = errno;
    if (error != EINTR) return Fd();
  }
}

int read_exactly(int fd, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::read(fd, at, bytes);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (got == 0) return EIO;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return 0;
}

int write_fully(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (put == 0) return EIO;  // no progress and no reason given: do not spin
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

int sync_fd(int fd) {
  while (::fsync(fd) != 0) {
    if (errno == EINTR) continue;
    return errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP ? 0 : errno;
  }
  return 0;
}

std::string random_hex() {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof value, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof value)) {
    // Early boot or an old sandbox. O_EXCL makes a collision an error that is retried, so this need only differ.
    static std::atomic<std::uint64_t> counter{0};
    value = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) ^
            (static_cast<std::uint64_t>(::getpid()) << 40) ^ (counter.fetch_add(1) << 32);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string error_text(int error) { return std::generic_category().message(error); }

}  // namespace sl
