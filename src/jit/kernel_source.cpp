// The embedded kernel sources and the digest of one with everything it includes.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/digest.hpp"
#include "core/embedded.hpp"
#include "jit/compiler.hpp"

namespace sl {
namespace {

/// Paths in `#include "..."` lines, conditional ones too: a digest that covers too much costs a compile, one that
/// covers too little runs a stale kernel.
std::vector<std::string_view> quoted_includes(std::string_view text) {
  constexpr std::string_view blank = " \t";
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto skip_blank = [&] { line.remove_prefix(std::min(line.find_first_not_of(blank), line.size())); };
    skip_blank();
    if (!line.starts_with('#')) continue;
    line.remove_prefix(1);
    skip_blank();
    if (!line.starts_with("include")) continue;
    line.remove_prefix(7);
    skip_blank();
    if (!line.starts_with('"')) continue;
    line.remove_prefix(1);
    const std::size_t quote = line.find('"');
    if (quote != std::string_view::npos) found.push_back(line.substr(0, quote));
  }
  return found;
}

/// Where the token that begins at `at` ends, if it is one in which blanks and slashes mean nothing of their own: a
/// comment or a literal. Else `at`.
std::size_t end_of_token(std::string_view text, std::size_t at) {
  const auto after = [&](std::string_view mark, std::size_t from) {
    const std::size_t found = text.find(mark, from);
    return found == std::string_view::npos ? text.size() : found + mark.size();
  };
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) return after("*/", at + 2);
  const char quote = text[at];
  const bool separator = quote == '\'' && at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0;
  if ((quote != '"' && quote != '\'') || separator) return at;
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != quote && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

/// What a character is where no comment or literal is under way. `special`: one may begin.
enum class CharKind : std::uint8_t { plain, blank, newline, special };
constexpr auto char_kinds = [] {
  std::array<CharKind, 256> kinds{};
  for (const char c : std::string_view(" \t\r")) kinds[static_cast<unsigned char>(c)] = CharKind::blank;
  for (const char c : std::string_view("/\"'")) kinds[static_cast<unsigned char>(c)] = CharKind::special;
  kinds['\n'] = CharKind::newline;
  return kinds;
}();

/// Of a file what digests need, kept once it is known: most schedules include the same headers.
struct Parsed {
  std::vector<std::string_view> includes;
  std::string code;
};
using ParsedFiles = std::map<std::string, Parsed, std::less<>>;

void collect(std::string_view path, ParsedFiles& files, std::map<std::string_view, const Parsed*>& seen) {
  auto known = files.find(path);
  if (known == files.end()) {
    const std::string_view text = kernel_source(path);
    known = files.emplace(path, Parsed{quoted_includes(text), kernel_code(text)}).first;
  }
  if (!seen.emplace(path, &known->second).second) return;
  for (const std::string_view include : known->second.includes) collect(include, files, seen);
}

Digest compute_digest(std::string_view source, ParsedFiles& files) {
  std::map<std::string_view, const Parsed*> seen;
  collect(source, files, seen);
  KeyBuilder key;
  key.add("source", source);
  for (const auto& [path, file] : seen) key.add(path, file->code);
  return key.finish();
}

}  // namespace

std::string_view kernel_source(std::string_view path) {
  for (const EmbeddedFile& file : embedded_kernel_source())
    if (file.path == path) return file.content;
  return {};
}

// The digests of a first call's schedules go over some hundred thousand characters, and no processor guesses what comes
// after one of them: so nothing here branches on it but for the few that may begin a comment or a literal.
std::string kernel_code(std::string_view text) {
  std::string code(text.size(), '\0');
  char* out = code.data();  // never ahead of what was read
  bool blank = false;       // seen since the last character of this line
  bool in_line = false;     // this line has a character
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const CharKind kind = char_kinds[static_cast<unsigned char>(c)];
    if (kind != CharKind::special) [[likely]] {
      const bool plain = kind == CharKind::plain, is_blank = kind == CharKind::blank;
      *out = ' ';
      out += static_cast<int>(plain & blank & in_line);
      *out = c;
      out += static_cast<int>(plain | (!is_blank & in_line));
      in_line = plain | (is_blank & in_line);
      blank = is_blank;
      ++at;
      continue;
    }
    const std::size_t token = end_of_token(text, at);
    const std::size_t end = std::max(at + 1, token);
    if (token > at && c == '/') {
      blank = true;
    } else {
      if (blank && in_line) *out++ = ' ';
      out = std::copy(text.begin() + at, text.begin() + end, out);
      blank = false;
      in_line = true;
    }
    at = end;
  }
  code.resize(static_cast<std::size_t>(out - code.data()));
  return code;
}

std::vector<std::string_view> kernel_source_paths() {
  std::vector<std::string_view> paths;
  for (const EmbeddedFile& file : embedded_kernel_source()) paths.push_back(file.path);
  return paths;
}

Digest kernel_source_digest(std::string_view source) {
  // Embedded text never changes, so a digest is computed once a process. Leaked: other threads may outlive statics.
  struct Memo {
    std::mutex mutex;
    ParsedFiles files;
    std::map<std::string, Digest, std::less<>> digests;
  };
  static Memo& memo = *new Memo;
  if (kernel_source(source).empty()) {  // unknown names are not remembered: bounded
    ParsedFiles none;
    return compute_digest(source, none);
  }
  const std::lock_guard lock(memo.mutex);
  if (const auto found = memo.digests.find(source); found != memo.digests.end()) return found->second;
  return memo.digests.emplace(std::string(source), compute_digest(source, memo.files)).first->second;
}

}  // namespace sl
