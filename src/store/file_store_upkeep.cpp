// Keeping a store bounded: list, prune, clear.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "store/file_store_impl.hpp"

namespace sl {
namespace {

bool is_fan_out_name(std::string_view name) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() == 2 && hex(name[0]) && hex(name[1]);
}

std::vector<std::string> names_in(const Directory& directory) {
  std::vector<std::string> names;
  (void)for_each_name(directory, [&names](const char* name) { names.emplace_back(name); });
  std::sort(names.begin(), names.end());
  return names;
}

std::filesystem::file_time_type to_file_time(const timespec& time) {
  using namespace std::chrono;
  const sys_time<nanoseconds> since_epoch{seconds(time.tv_sec) + nanoseconds(time.tv_nsec)};
  return time_point_cast<std::filesystem::file_time_type::duration>(file_clock::from_sys(since_epoch));
}

std::uint64_t remove_temporaries(const Directory& root, const std::filesystem::path& path, bool every) {
  const Directory temporaries = open_child(root, path, temporaries_name, Create::no);
  if (!temporaries.ok()) return 0;
  std::uint64_t freed = 0;
  const std::time_t now = std::time(nullptr);
  for (const std::string& name : names_in(temporaries)) {
    struct stat info {};
    if (::fstatat(temporaries.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
      continue;
    if (!every && now - info.st_mtim.tv_sec <= stamp_seconds) continue;  // somebody may still be writing it
    if (unlink_unchanged(temporaries, name, info)) freed += static_cast<std::uint64_t>(info.st_size);
  }
  return freed;
}

Result<std::uint64_t> refused(const Directory& root) {
  if (root.error == ENOENT) return std::uint64_t{0};
  return Error{Code::environment, "cache directory not used: " + root.problem};
}

}  // namespace

std::vector<ListedFile> FileStore::Impl::scan(const Directory& root, bool every_temporary, std::uint64_t& freed) const {
  freed += remove_temporaries(root, options.directory, every_temporary);
  std::vector<ListedFile> files;
  for (const std::string& name : names_in(root)) {
    if (!is_fan_out_name(name)) continue;
    const Directory fan_out = open_child(root, options.directory, name, Create::no);
    if (!fan_out.ok()) continue;
    for (const std::string& file : names_in(fan_out)) {
      ListedFile listed{name, file, {}};
      Digest key;
      if (parse_entry_file_name(file, key) &&
          ::fstatat(fan_out.fd.get(), file.c_str(), &listed.info, AT_SYMLINK_NOFOLLOW) == 0 &&
          !S_ISDIR(listed.info.st_mode))
        files.push_back(std::move(listed));
    }
  }
  return files;
}

std::uint64_t FileStore::Impl::delete_oldest(const Directory& root, std::vector<ListedFile> files, std::uint64_t target,
                                             const std::string& keep) const {
  std::sort(files.begin(), files.end(), [](const ListedFile& a, const ListedFile& b) {
    if (!same_time(a.info.st_mtim, b.info.st_mtim))
      return std::pair(a.info.st_mtim.tv_sec, a.info.st_mtim.tv_nsec) <
             std::pair(b.info.st_mtim.tv_sec, b.info.st_mtim.tv_nsec);
    return a.name < b.name;
  });
  std::uint64_t left = 0, freed = 0;
  for (const ListedFile& file : files) left += static_cast<std::uint64_t>(file.info.st_size);
  for (const ListedFile& file : files) {
    if (left <= target) break;
    if (file.name == keep) continue;
    const Directory fan_out = open_child(root, options.directory, file.directory, Create::no);
    if (!fan_out.ok() || !unlink_unchanged(fan_out, file.name, file.info)) continue;
    left -= static_cast<std::uint64_t>(file.info.st_size);
    freed += static_cast<std::uint64_t>(file.info.st_size);
  }
  return freed;
}

void FileStore::Impl::account(std::uint64_t bytes, const Digest& key) {
  const std::uint64_t since = put_since_scan.fetch_add(bytes) + bytes;
  const std::int64_t known = total.load();
  if (known >= 0) total.fetch_add(static_cast<std::int64_t>(bytes));
  const bool over = known >= 0 && static_cast<std::uint64_t>(known) + bytes > options.max_bytes;
  if (known >= 0 && !over && since <= options.max_bytes / 8) return;

  const std::unique_lock<std::mutex> lock(pruning, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const Directory root = open_root(Create::no);
  if (!root.ok()) return;
  put_since_scan.store(0);
  std::uint64_t ignored = 0, sum = 0, freed = 0;
  std::vector<ListedFile> files = scan(root, false, ignored);
  for (const ListedFile& file : files) sum += static_cast<std::uint64_t>(file.info.st_size);
  // A tenth below the cap, so that a full store does not prune at every put.
  if (sum > options.max_bytes)
    freed = delete_oldest(root, std::move(files), options.max_bytes - options.max_bytes / 10, entry_file_name(key));
  total.store(static_cast<std::int64_t>(sum - freed));
}

Status FileStore::readable() const {
  if (impl_->options.directory.empty()) return {};
  try {
    const Directory root = impl_->open_root(Create::no);
    if (root.ok() || root.error == ENOENT) return {};
    return Error{Code::environment, "cache directory not used: " + root.problem};
  } catch (const std::exception& e) {
    return Error{Code::environment, std::string("cache directory not used: ") + e.what()};
  }
}

std::vector<StoreListing> FileStore::list() const {
  std::vector<StoreListing> out;
  if (impl_->options.directory.empty()) return out;
  try {
    const Directory root = impl_->open_root(Create::no);
    if (!root.ok()) {
      if (root.error != ENOENT) impl_->warn("errno " + std::to_string(root.error), "cache not listed: " + root.problem);
      return out;
    }
    for (const std::string& name : names_in(root)) {
      if (!is_fan_out_name(name)) continue;
      const Directory fan_out = open_child(root, impl_->options.directory, name, Create::no);
      if (!fan_out.ok()) {
        if (fan_out.error == ENOENT) continue;  // cleared meanwhile
        StoreListing listing;
        listing.path = impl_->options.directory / name;
        listing.problem = "nothing in it is used: " + fan_out.problem;
        struct stat info {};
        if (::fstatat(root.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
          listing.used = to_file_time(info.st_mtim);
        out.push_back(std::move(listing));
        continue;
      }
      for (const std::string& file : names_in(fan_out)) {
        if (file.front() == '.') continue;  // NFS keeps deleted open files under such names
        StoreListing listing;
        listing.path = impl_->options.directory / name / file;
        struct stat info {};
        if (::fstatat(fan_out.fd.get(), file.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // pruned meanwhile
        listing.bytes = static_cast<std::uint64_t>(info.st_size);
        listing.used = to_file_time(info.st_mtim);
        if (!parse_entry_file_name(file, listing.key)) {
          listing.problem = "it is not named like an entry";
        } else if (entry_fan_out(listing.key) != name) {
          listing.problem = "it belongs into folder " + entry_fan_out(listing.key) + "; here it is never found";
        } else {
          ReadOutcome read = impl_->read_file(fan_out, file, listing.key, Stamp::leave);
          if (read.error == ENOENT) continue;
          listing.problem = std::move(read.problem);
          listing.valid = listing.problem.empty();
          listing.meta = std::move(read.entry.meta);
        }
        out.push_back(std::move(listing));
      }
    }
  } catch (const std::exception& e) {
    impl_->warn("list", std::string("cache listed in part: ") + e.what());
  }
  return out;
}

Result<std::uint64_t> FileStore::prune(std::uint64_t max_bytes) {
  if (impl_->options.directory.empty()) return std::uint64_t{0};
  try {
    const std::lock_guard<std::mutex> lock(impl_->pruning);
    const Directory root = impl_->open_root(Create::no);
    if (!root.ok()) return refused(root);
    std::uint64_t freed = 0;
    std::vector<ListedFile> files = impl_->scan(root, false, freed);
    freed += impl_->delete_oldest(root, std::move(files), max_bytes, {});
    impl_->total.store(-1);
    return freed;
  } catch (const std::exception& e) {
    return Error{Code::environment, std::string("cache pruned in part: ") + e.what()};
  }
}

Result<std::uint64_t> FileStore::clear() {
  if (impl_->options.directory.empty()) return std::uint64_t{0};
  try {
    const std::lock_guard<std::mutex> lock(impl_->pruning);
    const Directory root = impl_->open_root(Create::no);
    if (!root.ok()) return refused(root);
    std::uint64_t freed = 0;
    for (const ListedFile& file : impl_->scan(root, true, freed)) {
      const Directory fan_out = open_child(root, impl_->options.directory, file.directory, Create::no);
      if (fan_out.ok() && ::unlinkat(fan_out.fd.get(), file.name.c_str(), 0) == 0)
        freed += static_cast<std::uint64_t>(file.info.st_size);
    }
    impl_->total.store(-1);
    return freed;
  } catch (const std::exception& e) {
    return Error{Code::environment, std::string("cache cleared in part: ") + e.what()};
  }
}

}  // namespace sl
