#include "tuner/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/json_reader.hpp"
#include "store/output_file.hpp"

namespace sl::tool {
Result<PartFile> PartFile::hold(const std::filesystem::path& path) {
  while (true) {
    // Non-blocking: a pipe of that name must not hold the program up.
    Fd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    struct stat info = {};
    if (!file.ok() || ::fstat(file.get(), &info) != 0) return cannot_write(path, error_text(errno));
    if (!S_ISREG(info.st_mode)) return Error{Code::environment, path.string() + ": is not a regular file; remove it"};
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return Error{Code::environment,
                   path.string() + ": another process is writing it; wait for its end, or name another --out"};
    }
    // Whoever held it a moment ago may have taken it away when it was done.
    if (::fstat(file.get(), &info) == 0 && info.st_nlink > 0) return PartFile(path, std::move(file));
  }
}

PartFile::~PartFile() {
  struct stat info = {};
  if (file_.ok() && ::fstat(file_.get(), &info) == 0 && info.st_size == 0 && info.st_nlink > 0) remove();
}

Result<std::string> PartFile::text() const { return read_text_file(path_.string()); }

bool PartFile::empty() const {
  struct stat info = {};
  return ::fstat(file_.get(), &info) == 0 && info.st_size == 0;
}

Status PartFile::append(const std::string& text) {
  int error = write_fully(file_.get(), text);
  if (error == 0) error = sync_fd(file_.get());
  return error == 0 ? Status() : cannot_write(path_, error_text(error));
}

Status PartFile::clear() {
  return ::ftruncate(file_.get(), 0) == 0 ? Status() : cannot_write(path_, error_text(errno));
}

void PartFile::remove() { ::unlink(path_.c_str()); }

}  // namespace sl::tool
