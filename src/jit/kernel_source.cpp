// The embedded kernel sources and the digest of one with everything it includes.
#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>

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

void collect(std::string_view path, std::set<std::string_view>& seen) {
  if (!seen.insert(path).second) return;
  for (const std::string_view include : quoted_includes(kernel_source(path))) collect(include, seen);
}

Digest compute_digest(std::string_view source) {
  std::set<std::string_view> paths;
  collect(source, paths);
  KeyBuilder key;
  key.add("source", source);
  for (const std::string_view path : paths) key.add(path, kernel_code(kernel_source(path)));
  return key.finish();
}

}  // namespace

std::string_view kernel_source(std::string_view path) {
  for (const EmbeddedFile& file : embedded_kernel_source())
    if (file.path == path) return file.content;
  return {};
}

std::string kernel_code(std::string_view text) {
  std::string code;
  code.reserve(text.size());
  bool blank = false;  // seen since the last character of this line
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_token(text, at);
    const char c = text[at];
    const bool comment = end > at && c == '/';
    if (comment || c == ' ' || c == '\t' || c == '\r') {
      blank = true;
    } else if (c == '\n') {
      blank = false;
      if (!code.empty() && code.back() != '\n') code += '\n';
    } else {
      if (blank && !code.empty() && code.back() != '\n') code += ' ';
      blank = false;
      code += end > at ? text.substr(at, end - at) : text.substr(at, 1);
    }
    at = end > at ? end : at + 1;
  }
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
    std::map<std::string, Digest, std::less<>> digests;
  };
  static Memo& memo = *new Memo;
  if (kernel_source(source).empty()) return compute_digest(source);  // unknown names are not remembered: bounded
  const std::lock_guard lock(memo.mutex);
  if (const auto found = memo.digests.find(source); found != memo.digests.end()) return found->second;
  return memo.digests.emplace(std::string(source), compute_digest(source)).first->second;
}

}  // namespace sl
