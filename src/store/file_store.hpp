// One directory of small files, one entry a file, named by its key's digest. Safe without any lock: entries are written
// privately, fsynced and renamed into place; a damaged, foreign, older or newer file is a miss.
//
// Entry file grammar (little endian):
//   entry   := magic(8) version(u32) kind(u32) key(16) meta_size(u64) payload_size(u64) checksum(16) meta payload
//   checksum covers everything but itself. meta is UTF-8 JSON (provenance, human-readable); payload is raw bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/digest.hpp"
#include "core/log.hpp"
#include "core/result.hpp"

namespace sl {

struct StoreEntry {
  std::string meta;     ///< JSON object
  std::string payload;  ///< bytes
};

struct StoreListing {
  std::filesystem::path path;
  Digest key;
  std::uint64_t bytes = 0;
  std::filesystem::file_time_type used;  ///< last use stamp (mtime), drives pruning
  bool valid = false;
  std::string problem;  ///< why it is not valid; empty otherwise
  std::string meta;
};

struct StoreOptions {
  std::filesystem::path directory;       ///< empty = no store: every get is a miss, every put is a no-op
  std::uint32_t kind = 0;                ///< 1 binaries, 2 decisions: a file of another kind is foreign
  std::uint64_t max_bytes = 1ULL << 30;  ///< put prunes least recently used entries beyond this
};

/// Thread-safe; any number of processes may share the directory. Never throws.
class FileStore {
 public:
  /// Creates the directory (0700) lazily on the first put. A directory that is not owned by this user or is writable by
  /// others, read-only, full or absent degrades to "uncached" with one warning through `log` (which must outlive this).
  FileStore(StoreOptions, const Log& log);
  ~FileStore();

  /// nullopt = miss (absent, damaged, foreign, other version; damage warns once). Stamps the use time at most once an
  /// hour.
  std::optional<StoreEntry> get(const Digest& key) const;
  /// Publishes atomically. An error says why nothing was written; the caller goes on with what it has in memory.
  Status put(const Digest& key, const StoreEntry&);
  /// Same check as the first put makes, without writing an entry: for callers that demand a writable store.
  Status writable();

  /// Why list() cannot look: the directory is a link or a file, or others may write to it. An absent one is fine.
  Status readable() const;
  std::vector<StoreListing> list() const;                ///< reads and verifies every entry
  Result<std::uint64_t> prune(std::uint64_t max_bytes);  ///< returns bytes freed; removes stale temporaries too
  Result<std::uint64_t> clear();                         ///< removes entries and temporaries of this store only
  const StoreOptions& options() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// SLUICE_CACHE_DIR, else $XDG_CACHE_HOME/sluice, else ~/.cache/sluice, else empty. Stores live in its binaries/ and
/// decisions/.
std::filesystem::path default_cache_root(const char* sluice_cache_dir, const char* xdg_cache_home, const char* home);

}  // namespace sl
