// Preflight and the routing table: may Sluice serve a call, and is it worth it. Pure functions of values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/log.hpp"
#include "core/result.hpp"
#include "device/device_info.hpp"
#include "schedules/schedule.hpp"

namespace sl {

/// Whether the caller's regular lowering can run the call; the caller states it.
enum class Regular : std::uint8_t { yes, no };

enum class Verdict : std::uint8_t { optional, required, unsupported };
std::string_view name(Verdict);  ///< "OPTIONAL", "REQUIRED", "UNSUPPORTED"

struct Preflight {
  Verdict verdict = Verdict::unsupported;
  std::string reason;  ///< for UNSUPPORTED: why no schedule can
  CandidateSet set;    ///< what only a child process may try does not count for the verdict
};
/// `passed`: as candidates() reads it.
Preflight preflight(const ConvProblem&, const DeviceInfo&, Regular, std::span<const std::string> only = {},
                    std::span<const std::string> disabled = {}, const Sanitized* passed = nullptr);

/// A condition on one feature of a problem (features.hpp lists them): a range or a set of numbers, or a set of names.
struct Threshold {
  std::string feature;
  std::optional<double> min, max;   ///< inclusive; of a number
  std::vector<double> values;       ///< of a number: one of these, instead of a range
  std::vector<std::string> any_of;  ///< of a name: dtype, layout, weight_layout, activation
};

struct Evidence {
  std::int64_t cases = 0;
  double min_speedup = 0, median_speedup = 0;
  std::string baseline;  ///< "cudnn 9.19"
  std::string versions;  ///< driver, toolkit, library commit
};

struct Rule {
  std::string name;
  bool take = false;
  std::vector<Threshold> when;         ///< all must hold
  std::vector<std::string> schedules;  ///< candidates in order of preference; empty = all
  std::optional<Evidence> evidence;    ///< required where take, except in a table for any device
  std::string note;                    ///< for people
};

struct Route {
  bool take = false;
  std::string rule;  ///< name of the rule, "default: keep", or "outside the measured range: keep"
  std::vector<std::string> schedules;
  std::string table;   ///< origin: path or "embedded:nvidia-h200"
  std::string reason;  ///< where no rule decided: which bound was missed, or that none matched
};

/// Rules for one device; first match wins, the default is keep. Outside the measured range (`measured`, conditions that
/// every call must meet before a rule is looked at) the answer is keep. Immutable after loading.
class RoutingTable {
 public:
  static Result<RoutingTable> from_json(std::string_view json, std::string_view origin);
  /// Pure. For a device that the table is not for: keep.
  Route decide(const ConvProblem&, const DeviceInfo&) const;
  std::string to_json() const;
  bool matches(const DeviceInfo&) const;  ///< by device name and capability as the file's "device" says
  /// "NVIDIA H200 (capability 90)", or "any device".
  std::string device_text() const;
  bool for_any_device() const { return any_device_; }
  const std::string& origin() const { return origin_; }
  const std::vector<Rule>& rules() const { return rules_; }
  const std::vector<Threshold>& measured() const { return measured_; }
  static RoutingTable take_everything(std::string origin);  ///< the host device's, and --force's

 private:
  std::string origin_, device_name_, note_;
  int capability_ = 0;
  bool any_device_ = false;
  std::vector<Threshold> measured_;
  std::vector<Rule> rules_;
};

/// User table (file, or a folder's *.json that matches) over the shipped one for the device over the conservative
/// default. A broken user table is an error, never silently skipped. `searched` lists every place looked at, in order,
/// with the outcome.
struct TableChoice {
  std::shared_ptr<const RoutingTable> table;
  std::vector<std::string> searched;
};
Result<TableChoice> find_routing_table(const DeviceInfo&, const std::string& user_path, const Log&);

/// The value of a numeric feature; NaN where there is none of that name.
double feature_value(const ConvProblem&, std::string_view feature);

}  // namespace sl
