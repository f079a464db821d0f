#include "tuner/print.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "tuner/exit_code.hpp"

namespace sl::tool {
namespace {

bool set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool colourful() {
  const char* term = std::getenv("TERM");
  static const bool answer =
      ::isatty(STDOUT_FILENO) != 0 && !set("NO_COLOR") && term != nullptr && std::string_view(term) != "dumb";
  return answer;
}

bool live() {
  static const bool answer = ::isatty(STDERR_FILENO) != 0;
  return answer;
}

// One mutex over stderr: the library's threads log while the main thread reports progress.
std::mutex stderr_mutex;
bool status_shown = false;

// A compiler's log comes after the message's first line: indented, so that every line that starts with "sluice: " is a
// message of its own.
std::string indented(std::string_view message) {
  std::string text;
  for (const char c : message.substr(0, message.find_last_not_of('\n') + 1)) {
    text += c;
    if (c == '\n') text += "    ";
  }
  return text;
}

void write_line(std::string_view prefix, std::string_view message) {
  const std::lock_guard lock(stderr_mutex);
  if (std::exchange(status_shown, false)) std::fputs("\r\033[K", stderr);
  std::fprintf(stderr, "sluice: %.*s%s\n", static_cast<int>(prefix.size()), prefix.data(), indented(message).c_str());
}

bool numeric(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell[0] == '-');
}

}  // namespace

std::string printable(std::string text) {
  for (char& c : text) {
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)) c = '?';
  }
  return text;
}

std::string styled(Style style, std::string_view text) {
  const char* code = nullptr;
  switch (style) {
    case Style::plain:
      break;
    case Style::strong:
      code = "\033[1m";
      break;
    case Style::faint:
      code = "\033[2m";
      break;
    case Style::good:
      code = "\033[32m";
      break;
    case Style::bad:
      code = "\033[31m";
      break;
  }
  if (code == nullptr || !colourful()) return std::string(text);
  return std::string(code).append(text).append("\033[0m");
}

void complain(std::string_view message) { write_line("", message); }
void warn(std::string_view message) { write_line("warning: ", message); }

int fail(const Error& error) {
  complain(error.message);
  return exit_code(error.code);
}

void progress(std::string_view text) {
  if (!live()) return;
  const std::lock_guard lock(stderr_mutex);
  if (std::exchange(status_shown, !text.empty())) std::fputs("\r\033[K", stderr);
  // A line longer than the terminal would wrap and could not be taken back.
  if (!text.empty())
    std::fprintf(stderr, "sluice: %.*s", static_cast<int>(std::min<std::size_t>(text.size(), 70)), text.data());
  std::fflush(stderr);
}

LogSink stderr_sink(bool verbose) {
  return [verbose](LogLevel level, std::string_view message) {
    if (level == LogLevel::warning) return warn(message);
    if (level == LogLevel::error || verbose) return complain(message);
    if (level == LogLevel::info) progress(message.substr(0, message.find('\n')));
  };
}

Grid::Grid(std::vector<std::string> heads) : columns_(heads.size()) { rows_.push_back(std::move(heads)); }

void Grid::row(std::vector<std::string> cells) {
  cells.resize(columns_);
  rows_.push_back(std::move(cells));
}

std::string Grid::text(std::string_view indent) const {
  std::vector<std::size_t> width(columns_, 0);
  std::vector<bool> right(columns_, true);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < columns_; ++c) {
      width[c] = std::max(width[c], rows_[r][c].size());
      if (r > 0 && !rows_[r][c].empty() && !numeric(rows_[r][c])) right[c] = false;
    }
  }
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (r == 0 && std::all_of(rows_[0].begin(), rows_[0].end(), [](const auto& head) { return head.empty(); }))
      continue;
    std::string line(indent);
    for (std::size_t c = 0; c < columns_; ++c) {
      const std::string padding(width[c] - rows_[r][c].size(), ' ');
      line += right[c] ? padding + rows_[r][c] : rows_[r][c] + padding;
      if (c + 1 < columns_) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += (r == 0 ? styled(Style::faint, line) : line) + "\n";
  }
  return out;
}

std::string field(std::string_view label, std::string_view value) {
  constexpr std::size_t width = 11;
  std::string padded(label);
  padded.resize(std::max(width, label.size() + 1), ' ');
  return styled(Style::faint, padded).append(value).append("\n");
}

std::string number(double value) {
  char text[32];
  const double magnitude = std::fabs(value);
  const int decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 || magnitude == 0 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string duration(double microseconds) {
  if (microseconds < 1e3) return number(microseconds) + " us";
  return microseconds < 1e6 ? number(microseconds / 1e3) + " ms" : number(microseconds / 1e6) + " s";
}

std::string size(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) value /= 1024, ++unit;
  return unit == 0 ? std::to_string(bytes) + " B" : number(value) + " " + units[unit];
}

}  // namespace sl::tool
