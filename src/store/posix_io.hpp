// The few POSIX calls the store is made of, with interruption and short transfers handled. Errors are errno values,
// 0 = success; nothing here throws or logs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace sl {

/// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  bool ok() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  /// Closes now and returns what close said: on NFS a failed write may show only here.
  int close();

 private:
  int fd_ = -1;
};

/// openat with O_CLOEXEC | O_NOFOLLOW added, repeated on EINTR.
Fd open_at(int directory, const char* name, int flags, unsigned mode, int& error);

/// Reads exactly `bytes`. EIO where the file ends before.
int read_exactly(int fd, void* to, std::size_t bytes);

/// Writes everything.
int write_fully(int fd, std::string_view bytes);

/// fsync; a file system that cannot do it for this kind of file counts as success (the checksum is the last word).
int sync_fd(int fd);

/// 64 random bits as hex, for the names of temporaries; never shared state, so forked children differ.
std::string random_hex();

std::string error_text(int error);

}  // namespace sl
