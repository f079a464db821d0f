// 128-bit digests (XXH3) for keys and checksums. Not a defence against an attacker: the cache directory's owner check
// is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sl {

struct Digest {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
  std::string hex() const;  ///< 32 lower-case digits
};

/// For unordered containers: a digest's bits are as good as a hash's.
struct DigestHash {
  std::size_t operator()(const Digest& digest) const noexcept { return static_cast<std::size_t>(digest.low); }
};

Digest digest_bytes(std::span<const std::byte>);
Digest digest_text(std::string_view);

/// Builds a key from labelled parts; each part is length-prefixed, so parts never run together.
class KeyBuilder {
 public:
  KeyBuilder& add(std::string_view label, std::string_view value);
  KeyBuilder& add(std::string_view label, std::int64_t value);
  Digest finish() const;

 private:
  std::string text_;
};

}  // namespace sl
