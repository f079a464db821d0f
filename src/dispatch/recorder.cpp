#include "dispatch/recorder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

namespace sl {
namespace {

constexpr int most_tries = 200;  // a millisecond each

/// Held while the file is read to its end and a line is added, so that no line comes twice. A holder that does not let
/// go (a stopped process) costs one call a fifth of a second, the later ones nothing, and at worst a line twice.
class FileLock {
 public:
  FileLock(int fd, int tries) : fd_(fd) {
    for (int i = 0; i < tries && !held_; ++i) {
      held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
      if (!held_ && errno != EWOULDBLOCK && errno != EINTR) return;  // a file system without locks
      if (!held_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ~FileLock() {
    if (held_) ::flock(fd_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  int fd_;
  bool held_ = false;
};

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find('#'));
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

Recorder::Recorder(const std::string& path, const Log& log) : path_(path), log_(log), patience_(most_tries) {
  if (path_.empty()) return;
  if (!open()) file_ = Fd();
}

bool Recorder::open() {
  // Non-blocking: a pipe of that name must not hold the program up.
  file_ = Fd(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  struct stat info {};
  if (!file_.ok() || ::fstat(file_.get(), &info) != 0) {
    warn("cannot be opened for appending: " + error_text(errno));
    return false;
  }
  if (!S_ISREG(info.st_mode)) {
    warn("is not a regular file");
    return false;
  }
  if (!catch_up()) return false;
  if (!judged_) take(cut_);
  if (foreign_) warn("holds something else than a recording and is left as it is: name another file");
  return !foreign_;
}

void Recorder::warn(const std::string& why) {
  log_.warn_once("record " + why, "SLUICE_RECORD: " + path_ + " " + why + "; new calls are not recorded");
}

void Recorder::take(std::string_view line) {
  line = without_comment(line);
  if (line.empty()) return;
  const auto problem = parse(line);
  // The first line shows whether this is a recording at all; later ones may be cut short by a full disk.
  if (!judged_) foreign_ = !problem.ok();
  judged_ = true;
  if (problem.ok() && known_.size() < most_lines) known_.insert(problem->digest());
}

bool Recorder::catch_up() {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) {
    warn("cannot be read: " + error_text(errno));
    return false;
  }
  if (info.st_size < read_) {  // somebody emptied it: what it held is not there any more
    known_.clear();
    cut_.clear();
    read_ = 0;
  }
  if (info.st_size > most_bytes) {
    warn("has more than " + std::to_string(most_bytes >> 20) + " MiB");
    return false;
  }
  std::vector<char> buffer(static_cast<std::size_t>(std::min<off_t>(info.st_size - read_, 1 << 16)));
  while (read_ < info.st_size) {
    const ssize_t got = ::pread(file_.get(), buffer.data(), buffer.size(), read_);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      warn("cannot be read: " + (got < 0 ? error_text(errno) : "it shrinks"));
      return false;
    }
    read_ += got;
    std::string_view text(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      take(cut_.append(text.substr(0, end)));
      cut_.clear();
      text.remove_prefix(end + 1);
    }
    cut_.append(text);
  }
  return true;
}

void Recorder::append(const ConvProblem& problem) {
  const FileLock lock(file_.get(), patience_);
  patience_ = lock.held() ? most_tries : 1;
  if (!catch_up()) return;
  take(cut_);  // a last line that nobody ended
  const Digest digest = problem.digest();
  if (known_.contains(digest)) return;
  if (known_.size() >= most_lines) return warn("has " + std::to_string(most_lines) + " calls, the most there may be");
  // One write a line: O_APPEND puts it at the end in one piece, whoever else writes.
  const std::string line = (cut_.empty() ? "" : "\n") + problem.to_string() + "\n";
  ssize_t put = 0;
  do {
    put = ::write(file_.get(), line.data(), line.size());
  } while (put < 0 && errno == EINTR);
  if (put == static_cast<ssize_t>(line.size())) {
    known_.insert(digest);
    return;
  }
  const std::string why = put < 0 ? error_text(errno) : "no space is left";
  // A part of a line may read as another call: take it away, unless somebody else may have written behind it.
  if (put > 0 && lock.held()) static_cast<void>(::ftruncate(file_.get(), read_));
  warn("cannot be written: " + why);
}

void Recorder::note(const ConvProblem& problem) noexcept {
  if (!file_.ok()) return;
  try {
    const std::lock_guard guard(mutex_);
    if (!known_.contains(problem.digest())) append(problem);
  } catch (const std::exception&) {
    // Out of memory: the call matters more than its line.
  }
}

}  // namespace sl
