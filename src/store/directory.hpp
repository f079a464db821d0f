// Directories that may be trusted: owned by this user, writable by nobody else, not symbolic links. Everything below is
// reached through their descriptors, so that what was checked is what is used.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <string>

#include "store/posix_io.hpp"

namespace sl {

struct Directory {
  Fd fd;
  int error = 0;        ///< errno; ENOENT = absent; EPERM where the check of owner, mode or type failed
  std::string problem;  ///< why there is no descriptor, with the path; empty where there is one
  bool ok() const { return fd.ok(); }
};

enum class Create : bool { no, yes };

/// Opens a path; Create::yes makes it and its parents (0700) where absent. EEXIST from another process is success.
Directory open_directory(const std::filesystem::path&, Create);
/// The same for a child of an open directory; `parent` is only for messages.
Directory open_child(const Directory& at, const std::filesystem::path& parent, const std::string& name, Create);

/// Why a file (an entry) with this stat must not be believed; empty if it may.
std::string distrust(const struct stat&);

/// Unlinks only what is still the listed file: one that was replaced or used since then stays.
bool unlink_unchanged(const Directory&, const std::string& name, const struct stat& listed);
bool same_time(const timespec&, const timespec&);

/// Calls `each` with every name but "." and "..". Returns errno.
int for_each_name(const Directory&, const std::function<void(const char*)>& each);

}  // namespace sl
