// Schedule: one way to compute a convolution. A stateless constant made of pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/digest.hpp"
#include "device/device_info.hpp"
#include "jit/compiler.hpp"
#include "reference/reference.hpp"
#include "schedules/sanitized.hpp"

namespace sl {

/// One point of a schedule's configuration space: named integers in a fixed order, "tile=4,threads=128".
struct Config {
  std::vector<std::pair<std::string, int>> knobs;
  int get(std::string_view name) const;  ///< requires that the knob exists
  std::string to_string() const;
  static std::optional<Config> parse(std::string_view);
  friend bool operator==(const Config&, const Config&) = default;
};

/// nullopt = can run; else the reason, naming the field and its value.
using Refusal = std::optional<std::string>;

struct Schedule {
  std::string_view name;
  std::string_view source;  ///< file in kernels/
  int min_capability = 0;
  bool size_generic = false;  ///< a base schedule: one binary serves every h, w (and always n)
  bool promises_no_spill = true;
  Arithmetic arithmetic = Arithmetic::fma;
  Refusal (*can_run)(const ConvProblem&, const DeviceInfo&);
  /// Non-empty where can_run; pruned by a model; the first is the schedule's own choice.
  std::vector<Config> (*configs)(const ConvProblem&, const DeviceInfo&);
  /// nullopt = this schedule can run the problem with the configuration (every knob there, no other, values legal): for
  /// configurations that came from a file. Requires can_run.
  Refusal (*fits)(const ConvProblem&, const Config&);
  /// What is compiled in (never n; the base schedules' never h, w, p, q either).
  KernelSpec (*kernel)(const ConvProblem&, const Config&);
  Geometry (*geometry)(const ConvProblem&, const Config&);
  /// Fills everything but the five pointers.
  void (*params)(const ConvProblem&, const Config&, SlParams&);

  /// Digest of source, headers and name: a decision made with another digest is a miss.
  Digest digest() const;
};

/// Every schedule, in order of preference where nothing else decides.
std::span<const Schedule* const> all_schedules();
const Schedule* find_schedule(std::string_view name);
/// The base that can run a problem: dw_flat for depthwise, grp_plane for grouped; nullptr where neither can.
const Schedule* base_schedule(const ConvProblem&, const DeviceInfo&);

/// A candidate = a schedule and a configuration of it that can run the problem on the device.
struct Candidate {
  const Schedule* schedule = nullptr;
  Config config;
};
/// Whether some candidate is the schedule's.
bool has_schedule(std::span<const Candidate>, const Schedule*);
struct ScheduleRefusal {
  std::string schedule, reason;
};
struct CandidateSet {
  std::vector<Candidate> candidates;
  std::vector<ScheduleRefusal> refusals;
  /// Where schedules were refused for not having passed the sanitizers: the candidates with theirs, as a child process
  /// tries them. Else empty.
  std::vector<Candidate> with_untested;
  std::size_t for_other_batches = 0;  ///< so many of the last are other batches' first choices: compiled with the first
  Digest digest() const;              ///< provenance of a decision: which candidates were there
  Digest digest_with_untested() const;  ///< the same in a child process
  bool empty() const { return candidates.empty() && with_untested.empty(); }
};
/// `only` empty = every schedule; else these names. Includes the capability check. `passed`: what may be tried on a GPU
/// (may_try()); null = everything.
CandidateSet candidates(const ConvProblem&, const DeviceInfo&, std::span<const std::string> only,
                        std::span<const std::string> disabled, const Sanitized* passed = nullptr);

SlFastDiv fast_div(std::int64_t divisor);  ///< requires 1 <= divisor < 2^31
/// Sizes, pads, activation parameters from the problem; work, aux and div zeroed.
SlParams common_params(const ConvProblem&);

}  // namespace sl
