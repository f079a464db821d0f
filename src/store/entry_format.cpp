#include "store/entry_format.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>

#include "store/file_store.hpp"

namespace sl {
namespace {

// Not text on purpose: the first byte has its high bit set and CR LF follows, so that a transfer in text mode shows.
constexpr std::string_view magic{"\x89SLC\r\n\x1a\n", 8};

constexpr std::string_view name_suffix = ".entry";

// Offsets of the header's fields.
constexpr std::size_t at_version = 8, at_kind = 12, at_key = 16, at_meta = 32, at_payload = 40, at_checksum = 48;
static_assert(at_checksum + 16 == entry_header_bytes);

static_assert(std::endian::native == std::endian::little, "the entry file is little endian and copied as it stands");

template <class T>
void put(EntryHeaderBytes& to, std::size_t at, T value) {
  std::memcpy(to.data() + at, &value, sizeof value);
}

template <class T>
T take(const EntryHeaderBytes& from, std::size_t at) {
  T value;
  std::memcpy(&value, from.data() + at, sizeof value);
  return value;
}

void put_digest(EntryHeaderBytes& to, std::size_t at, const Digest& digest) {
  put(to, at, digest.low);
  put(to, at + 8, digest.high);
}

Digest take_digest(const EntryHeaderBytes& from, std::size_t at) {
  return {take<std::uint64_t>(from, at + 8), take<std::uint64_t>(from, at)};
}

Digest checksum_of(const EntryHeaderBytes& header, std::string_view body) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, header.data(), at_checksum);
  XXH3_128bits_update(&state, body.data(), body.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.high64, hash.low64};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

EntryCheck fault(EntryFault kind, std::string text) { return {kind, std::move(text), {}}; }

}  // namespace

std::string encode_entry(std::uint32_t kind, const Digest& key, const StoreEntry& entry) {
  std::string body = entry.meta + entry.payload;
  EntryHeaderBytes header{};
  std::memcpy(header.data(), magic.data(), magic.size());
  put(header, at_version, entry_version);
  put(header, at_kind, kind);
  put_digest(header, at_key, key);
  put(header, at_meta, static_cast<std::uint64_t>(entry.meta.size()));
  put(header, at_payload, static_cast<std::uint64_t>(entry.payload.size()));
  put_digest(header, at_checksum, checksum_of(header, body));
  return std::string(header.data(), header.size()) + body;
}

EntryCheck check_header(const EntryHeaderBytes& bytes, std::uint64_t file_bytes, std::uint32_t kind,
                        const Digest& key) {
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return fault(EntryFault::magic, "it does not begin with the magic bytes of an entry file");
  // The version comes before the sizes: another version may lay the rest out differently.
  if (const auto version = take<std::uint32_t>(bytes, at_version); version != entry_version)
    return fault(EntryFault::version, "it has format version " + std::to_string(version) + ", this library reads " +
                                          std::to_string(entry_version));
  EntryCheck check;
  check.header.meta_bytes = take<std::uint64_t>(bytes, at_meta);
  check.header.payload_bytes = take<std::uint64_t>(bytes, at_payload);
  check.header.checksum = take_digest(bytes, at_checksum);
  const std::uint64_t body = file_bytes - entry_header_bytes;  // the caller has read a whole header
  if (file_bytes > entry_max_bytes || check.header.meta_bytes > body ||
      check.header.payload_bytes != body - check.header.meta_bytes)
    return fault(EntryFault::size, "its header says " + std::to_string(check.header.meta_bytes) + " + " +
                                       std::to_string(check.header.payload_bytes) + " bytes, the file holds " +
                                       std::to_string(body));
  if (check.header.payload_bytes == 0) return fault(EntryFault::size, "its payload is empty");
  if (const auto found = take<std::uint32_t>(bytes, at_kind); found != kind)
    return fault(EntryFault::kind,
                 "it is of kind " + std::to_string(found) + ", this store holds kind " + std::to_string(kind));
  if (const Digest found = take_digest(bytes, at_key); found != key)
    return fault(EntryFault::key, "it holds key " + found.hex() + ", its name says " + key.hex());
  return check;
}

bool checksum_matches(const EntryHeaderBytes& header, std::string_view body) {
  return checksum_of(header, body) == take_digest(header, at_checksum);
}

std::string entry_file_name(const Digest& key) { return key.hex() + std::string(name_suffix); }

bool parse_entry_file_name(std::string_view name, Digest& key) {
  if (name.size() != 32 + name_suffix.size() || !name.ends_with(name_suffix)) return false;
  std::uint64_t words[2] = {0, 0};
  for (std::size_t i = 0; i < 32; ++i) {
    const int digit = hex_digit(name[i]);
    if (digit < 0) return false;
    words[i / 16] = words[i / 16] << 4 | static_cast<std::uint64_t>(digit);
  }
  key = {words[0], words[1]};
  return true;
}

std::string entry_fan_out(const Digest& key) { return key.hex().substr(0, 2); }

}  // namespace sl
