// What file_store.cpp (get, put) and file_store_upkeep.cpp (list, prune, clear) share.
#pragma once

#include <atomic>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "store/directory.hpp"
#include "store/entry_format.hpp"
#include "store/file_store.hpp"

namespace sl {

/// Temporaries live here, on the entries' file system but never among them.
inline constexpr const char* temporaries_name = "tmp";
/// A use stamp is renewed, and a temporary counts as left behind, after this long.
inline constexpr std::time_t stamp_seconds = 3600;

/// What reading one entry file came to.
struct ReadOutcome {
  int error = 0;        ///< errno, where the file could not be read
  EntryFault fault{};   ///< where it was read and is not an entry
  std::string problem;  ///< empty = `entry` is good
  StoreEntry entry;
  struct stat info {};
};

/// Whether reading counts as use.
enum class Stamp : bool { leave, renew };

/// One file in an entry directory, as it was when listed.
struct ListedFile {
  std::string directory, name;
  struct stat info {};
};

struct FileStore::Impl {
  Impl(StoreOptions given, const Log& where) : options(std::move(given)), log(where) {}

  StoreOptions options;
  const Log& log;

  /// Bytes of all entries as last scanned, plus what was put since; -1 = not scanned yet. Other processes' entries show
  /// at the next scan, which comes after an eighth of the cap was put.
  std::atomic<std::int64_t> total{-1};
  std::atomic<std::uint64_t> put_since_scan{0};
  std::mutex pruning;  ///< one pruner in a process; others skip it

  Directory open_root(Create create) const { return open_directory(options.directory, create); }
  /// One warning for each cause: "not used" for a directory, "skipped" for a file.
  void warn(const std::string& cause, const std::string& message) const;

  // file_store.cpp
  ReadOutcome read_file(const Directory&, const std::string& name, const Digest& key, Stamp) const;
  ReadOutcome read(const Digest& key) const;
  Status put_once(const Digest& key, const std::string& image, int& error);
  Status put_failed(const char* step, const std::string& problem, int error) const;

  // file_store_upkeep.cpp
  /// Every entry; temporaries older than an hour (all, where `every_temporary`) are removed and their bytes added to
  /// `freed`.
  std::vector<ListedFile> scan(const Directory& root, bool every_temporary, std::uint64_t& freed) const;
  /// Deletes the least recently used until `target` bytes are left; never `keep`, never a file that changed since it
  /// was listed. Returns bytes freed.
  std::uint64_t delete_oldest(const Directory& root, std::vector<ListedFile>, std::uint64_t target,
                              const std::string& keep) const;
  void account(std::uint64_t bytes, const Digest& key);
};

}  // namespace sl
