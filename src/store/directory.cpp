#include "store/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace sl {
namespace fs = std::filesystem;
namespace {

constexpr unsigned private_directory = 0700;

Directory refuse(const fs::path& path, int error, const std::string& why) {
  Directory out;
  out.error = error;
  out.problem = path.string() + ": " + why;
  return out;
}

int make_directory(int at, const char* name) {
  return ::mkdirat(at, name, private_directory) == 0 || errno == EEXIST ? 0 : errno;
}

int make_with_parents(const fs::path& path) {
  const int first = make_directory(AT_FDCWD, path.c_str());
  if (first != ENOENT || !path.has_parent_path() || path.parent_path() == path) return first;
  if (const int error = make_with_parents(path.parent_path()); error != 0) return error;
  return make_directory(AT_FDCWD, path.c_str());
}

Directory open_checked(int at, const char* name, const fs::path& path) {
  Directory out;
  out.fd = open_at(at, name, O_RDONLY | O_DIRECTORY, 0, out.error);
  if (!out.fd.ok()) {
    struct stat link {};
    const bool is_link = (out.error == ENOTDIR || out.error == ELOOP) &&
                         ::fstatat(at, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode);
    if (is_link) return refuse(path, EPERM, "it is a symbolic link; name the directory itself");
    return refuse(path, out.error, error_text(out.error));
  }
  struct stat info {};
  if (::fstat(out.fd.get(), &info) != 0) return refuse(path, errno, error_text(errno));
  if (const std::string why = distrust(info); !why.empty()) return refuse(path, EPERM, why);
  return out;
}

}  // namespace

Directory open_directory(const fs::path& path, Create create) {
  Directory out = open_checked(AT_FDCWD, path.c_str(), path);
  if (out.ok() || out.error != ENOENT || create == Create::no) return out;
  if (const int error = make_with_parents(path); error != 0)
    return refuse(path, error, "cannot be created: " + error_text(error));
  return open_checked(AT_FDCWD, path.c_str(), path);
}

Directory open_child(const Directory& at, const fs::path& parent, const std::string& name, Create create) {
  Directory out = open_checked(at.fd.get(), name.c_str(), parent / name);
  if (out.ok() || out.error != ENOENT || create == Create::no) return out;
  if (const int error = make_directory(at.fd.get(), name.c_str()); error != 0)
    return refuse(parent / name, error, "cannot be created: " + error_text(error));
  (void)sync_fd(at.fd.get());  // the new name; a failure costs durability of a cache, nothing else
  return open_checked(at.fd.get(), name.c_str(), parent / name);
}

std::string distrust(const struct stat& info) {
  if (info.st_uid != ::geteuid())
    return "it is owned by user " + std::to_string(info.st_uid) + ", not by this process's user " +
           std::to_string(::geteuid());
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777U));
    return std::string("others may write to it (mode ") + mode + "); " + (S_ISDIR(info.st_mode) ? "0700" : "0600") +
           " would be right";
  }
  return {};
}

bool same_time(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

bool unlink_unchanged(const Directory& directory, const std::string& name, const struct stat& listed) {
  struct stat now {};
  if (::fstatat(directory.fd.get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (now.st_dev != listed.st_dev || now.st_ino != listed.st_ino || now.st_size != listed.st_size ||
      !same_time(now.st_mtim, listed.st_mtim) || !same_time(now.st_ctim, listed.st_ctim))
    return false;
  return ::unlinkat(directory.fd.get(), name.c_str(), 0) == 0;
}

int for_each_name(const Directory& directory, const std::function<void(const char*)>& each) {
  int error = 0;
  Fd own = open_at(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY, 0, error);  // its own offset
  if (!own.ok()) return error;
  const auto closer = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(closer)> names(::fdopendir(own.get()), closer);
  if (!names) return errno;
  (void)own.release();
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(names.get());
    if (entry == nullptr) return errno;
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) each(entry->d_name);
  }
}

}  // namespace sl
