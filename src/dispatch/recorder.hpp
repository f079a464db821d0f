// SLUICE_RECORD: which calls a program makes, written down once each, as a suite that `sluice tune` reads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "core/conv_problem.hpp"
#include "core/log.hpp"
#include "dispatch/winners.hpp"
#include "store/posix_io.hpp"

namespace sl {

/// Appends a line, ConvProblem::to_string(), for each problem that is new: to this object, and to the file, which other
/// contexts and processes may append to at the same time. Two problems are one where they are equal, the exact batch
/// and the alignment class included: that is what a tuner is to be given.
///
/// Thread-safe. Nothing that goes wrong here reaches the caller: the first cause of each kind is one warning, and calls
/// go on. Asked on the slow path alone (Dispatcher::Impl::answer), so that a call that the plan table knows never gets
/// here.
class Recorder {
 public:
  /// Opens (or makes) the file; an empty path records nothing. A file that holds anything but a recording is left
  /// alone. `log` must outlive this.
  Recorder(const std::string& path, const Log& log);
  /// `problem` must be valid.
  void note(const ConvProblem& problem) noexcept;

  /// Bounds memory and the file: with so many lines in the file no more are added.
  static constexpr std::size_t most_lines = 1 << 16;
  static constexpr std::int64_t most_bytes = 64 << 20;

 private:
  bool open();
  bool catch_up();  ///< reads what was appended since the last time
  void take(std::string_view line);
  void append(const ConvProblem&);
  void warn(const std::string& why);

  std::string path_;
  const Log& log_;
  std::mutex mutex_;
  Fd file_;
  off_t read_ = 0;     ///< up to where the file's lines are in known_
  std::string cut_{};  ///< what stands after the last newline before read_
  bool foreign_ = false, judged_ = false;
  int patience_;  ///< tries to lock the file
  std::unordered_set<Digest, DigestHash> known_;
};

}  // namespace sl
