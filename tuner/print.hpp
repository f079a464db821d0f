// Text for people: messages on stderr, aligned tables on stdout, colour and progress only on a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "core/result.hpp"

namespace sl::tool {

enum class Style { plain, strong, faint, good, bad };

/// `text` in a style where stdout is a terminal and neither NO_COLOR nor TERM=dumb forbids it; else `text`.
std::string styled(Style, std::string_view text);

/// "sluice: <message>" on stderr.
void complain(std::string_view message);
/// "sluice: warning: <message>" on stderr.
void warn(std::string_view message);

/// `text` without control characters but newlines: what stands in files is anyone's, and a terminal obeys them.
std::string printable(std::string text);

/// Prints the error and returns its exit code.
int fail(const Error&);

/// A line on stderr that the next one replaces; nothing where stderr is not a terminal. An empty text removes it.
void progress(std::string_view text);

/// Warnings and errors of the library go to stderr; what is below is progress, or lines of their own where `verbose`.
LogSink stderr_sink(bool verbose);

/// Columns padded to their widest cell, two spaces apart; numbers (cells that start with a digit or '-') to the right.
class Grid {
 public:
  explicit Grid(std::vector<std::string> heads);
  void row(std::vector<std::string> cells);
  /// Each line starts with `indent`. Heads are printed where they are not all empty.
  std::string text(std::string_view indent = "") const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t columns_;
};

/// "label     value", labels padded to one width.
std::string field(std::string_view label, std::string_view value);

/// 0.004, 1.23, 45.6, 789: three significant digits.
std::string number(double value);
/// "12.3 us", "4.56 ms".
std::string duration(double microseconds);
/// "3.2 MiB".
std::string size(std::uint64_t bytes);

}  // namespace sl::tool
