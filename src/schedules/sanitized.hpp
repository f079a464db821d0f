// Which schedules passed the sanitizers on a GPU: what a process that must go on may try there (docs/architecture.md,
// invariant 1). A kernel that faults takes the CUDA context with it, and with that every tensor of the program.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "core/result.hpp"
#include "device/device_info.hpp"

namespace sl {

struct Schedule;

/// One build of a schedule that passed.
struct SanitizedBuild {
  std::string schedule;
  Digest digest;  ///< Schedule::digest(): its name, its kernel's source and headers
};

/// One run of `scripts/test-gpu`: what it was made with, and what passed all of it.
struct SanitizerRun {
  std::string gpu, driver, compiler, commit;
  std::vector<std::string> tools;
  std::vector<SanitizedBuild> passed;
};

/// The list (docs/file-formats.md). Immutable once it is shared.
class Sanitized {
 public:
  /// What a run must have been looked at by to count.
  static constexpr std::string_view tools[] = {"memcheck", "racecheck", "initcheck"};

  static Result<Sanitized> from_json(std::string_view json, std::string_view origin);

  bool has(std::string_view schedule, const Digest&) const;
  const std::string& origin() const { return origin_; }
  const std::vector<SanitizerRun>& runs() const { return runs_; }

 private:
  std::string origin_;
  std::vector<SanitizerRun> runs_;
  std::set<std::pair<std::string, Digest>, std::less<>> builds_;
};

/// The shipped list where `user` is empty; null, which every schedule passes, where it is "all"; else the file of that
/// name, instead of the shipped one.
Result<std::shared_ptr<const Sanitized>> find_sanitized(const std::string& user);

/// Whether a process may try the schedule on the device. The host device has redzones and sanitizers of its own, and a
/// null list is passed by every schedule.
bool may_try(const Schedule&, const DeviceInfo&, const Sanitized*);
/// Why not, where it may not.
std::string untested_reason(const Schedule&, const Sanitized&);

}  // namespace sl
