#include "core/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sl {

std::string Digest::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t shift = 60 - 4 * i;
    text[i] = digits[(high >> shift) & 0xF];
    text[16 + i] = digits[(low >> shift) & 0xF];
  }
  return text;
}

Digest digest_bytes(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Digest digest_text(std::string_view text) { return digest_bytes(std::as_bytes(std::span(text))); }

// part := kind label_size ':' label value_size ':' value. The kind keeps the text "1" and the number 1 apart.
namespace {
void append_part(std::string& text, char kind, std::string_view label, std::string_view value) {
  text += kind;
  text += std::to_string(label.size());
  text += ':';
  text += label;
  text += std::to_string(value.size());
  text += ':';
  text += value;
}
}  // namespace

KeyBuilder& KeyBuilder::add(std::string_view label, std::string_view value) {
  append_part(text_, 't', label, value);
  return *this;
}

KeyBuilder& KeyBuilder::add(std::string_view label, std::int64_t value) {
  append_part(text_, 'i', label, std::to_string(value));
  return *this;
}

Digest KeyBuilder::finish() const { return digest_text(text_); }

}  // namespace sl
