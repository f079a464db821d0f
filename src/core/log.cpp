#include "core/log.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_set>

namespace sl {
namespace {

constexpr std::size_t max_causes = 256;

}  // namespace

struct Log::State {
  LogSink sink;
  LogLevel threshold;
  std::mutex mutex;
  std::unordered_set<std::string> causes;
};

Log::Log(LogSink sink, LogLevel threshold) : state_(new State{std::move(sink), threshold, {}, {}}) {}

Log::~Log() { delete state_; }

void Log::write(LogLevel level, std::string_view message) const {
  if (!state_->sink || level < state_->threshold) return;
  try {
    state_->sink(level, message);
  } catch (...) {  // NOLINT a sink is foreign code: what it throws must not change what the library does
  }
}

void Log::warn_once(std::string_view cause, std::string_view message) const {
  if (!state_->sink || LogLevel::warning < state_->threshold) return;
  bool last = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->causes.size() >= max_causes) return;  // unknown causes could flood, known ones were said
    if (!state_->causes.emplace(cause).second) return;
    last = state_->causes.size() == max_causes;
  }
  // Outside the lock: a slow sink must not hold up other threads.
  write(LogLevel::warning, message);
  if (last) write(LogLevel::warning, "256 different warnings were given; further ones are not shown");
}

}  // namespace sl
