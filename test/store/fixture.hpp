// A private directory, a store in it, and what it said.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "core/digest.hpp"
#include "store/file_store.hpp"

namespace sl::test {

/// Collects messages; thread-safe.
struct Messages {
  std::mutex mutex;
  std::vector<std::string> warnings;
  LogSink sink() {
    return [this](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex);
      if (level >= LogLevel::warning) warnings.emplace_back(text);
    };
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return warnings.size();
  }
  std::string last() {
    const std::lock_guard lock(mutex);
    return warnings.empty() ? std::string() : warnings.back();
  }
};

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-store-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    base = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(base, ignored);
  }

  FileStore open(std::uint64_t max_bytes = 1ULL << 30, std::uint32_t kind = 1) {
    return open_at("store", max_bytes, kind);
  }
  FileStore open_at(const std::filesystem::path& below, std::uint64_t max_bytes = 1ULL << 30, std::uint32_t kind = 1) {
    return FileStore(StoreOptions{base / below, kind, max_bytes}, log);
  }
  std::filesystem::path file_of(const Digest& key) const {
    return base / "store" / key.hex().substr(0, 2) / (key.hex() + ".entry");
  }
  std::size_t temporaries() const {
    std::error_code error;
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(base / "store" / "tmp", error)) {
      (void)entry;
      ++count;
    }
    return count;
  }

  std::filesystem::path base;
  Messages messages;
  Log log{messages.sink()};
};

inline Digest key_of(int i) { return digest_text("key " + std::to_string(i)); }

/// An entry whose bytes follow from its number, so that a reader can tell a right one from any other.
inline StoreEntry entry_of(int i, std::size_t bytes = 300) {
  StoreEntry entry;
  entry.meta = "{\"number\":" + std::to_string(i) + "}";
  entry.payload.resize(bytes);
  std::uint32_t state = static_cast<std::uint32_t>(i) * 2654435761U + 1U;
  for (char& c : entry.payload) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24);
  }
  return entry;
}

inline bool same(const StoreEntry& a, const StoreEntry& b) { return a.meta == b.meta && a.payload == b.payload; }

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// Overwrites in place: the file keeps its inode, owner and mode.
inline void spill(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace sl::test
