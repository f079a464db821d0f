// Where messages go. Silent by default; a library never writes to stderr of its own accord.
#pragma once

#include <functional>
#include <string_view>

namespace sl {

enum class LogLevel : int { debug = 0, info = 1, warning = 2, error = 3 };

/// May be called from any thread, tuning threads included; must not call back into the library.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// A sink with a threshold, and a memory of what was said, so that one cause warns once.
class Log {
 public:
  explicit Log(LogSink sink = {}, LogLevel threshold = LogLevel::info);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void write(LogLevel, std::string_view message) const;
  /// Writes a warning the first time `cause` is seen by this Log (bounded memory: 256 causes).
  void warn_once(std::string_view cause, std::string_view message) const;

 private:
  struct State;
  State* state_;
};

}  // namespace sl
