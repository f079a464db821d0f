// The bytes of one entry file, apart from any file: encode, and check every field before it is believed.
// The grammar stands in file_store.hpp; docs/file-formats.md tells it with offsets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/digest.hpp"

namespace sl {

struct StoreEntry;

inline constexpr std::size_t entry_header_bytes = 64;
/// Raised whenever the meaning of a byte changes; files of any other version are misses.
inline constexpr std::uint32_t entry_version = 1;
/// No honest entry is near this; a header that claims more is not believed, so it never drives an allocation.
inline constexpr std::uint64_t entry_max_bytes = 1ULL << 30;

/// Why a file is not an entry.
enum class EntryFault : std::uint8_t { none, size, magic, version, kind, key, checksum };

struct EntryHeader {
  std::uint64_t meta_bytes = 0, payload_bytes = 0;
  Digest checksum;
};

struct EntryCheck {
  EntryFault fault = EntryFault::none;
  std::string text;  ///< what was found and what would be right; empty where fault is none
  EntryHeader header;
  bool ok() const { return fault == EntryFault::none; }
};

using EntryHeaderBytes = std::array<char, entry_header_bytes>;

/// The whole file: header, meta, payload.
std::string encode_entry(std::uint32_t kind, const Digest& key, const StoreEntry&);

/// Checks everything in the header that can be checked without the body: sizes against `file_bytes` first.
EntryCheck check_header(const EntryHeaderBytes&, std::uint64_t file_bytes, std::uint32_t kind, const Digest& key);

/// Whether the checksum in the header is that of the header and `body` (meta and payload, as they stand in the file).
bool checksum_matches(const EntryHeaderBytes&, std::string_view body);

/// The file's name for a key, and back; names of any other form are not entries.
std::string entry_file_name(const Digest& key);
bool parse_entry_file_name(std::string_view name, Digest& key);
/// The sub-directory an entry lives in: the first two hex digits.
std::string entry_fan_out(const Digest& key);

}  // namespace sl
