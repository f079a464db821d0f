// What `sluice tune --isolate` and the child that does the work say to each other: the child hears on stdin what its
// predecessors died of, and says on stdout, a JSON object a line, what it is about to do.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "device/device.hpp"
#include "schedules/schedule.hpp"
#include "tuner/tune.hpp"
#include "tuning/tuner.hpp"

namespace sl::tool {

/// What a child is told. Problems are their canonical texts.
struct WorkerOrders {
  std::map<std::string, std::vector<LeftOut>> left_out;  ///< candidates of a problem that took a child with them
  /// Schedules that are not tried any more, by problem ("" = for none): the outcome says why.
  std::map<std::string, std::map<std::string, std::string>> given_up;
  std::map<std::string, std::string> skipped;  ///< problems that failed; why is said already
  std::string singly;                          ///< the problem whose candidates are compiled one by one

  std::string to_json() const;
  static Result<WorkerOrders> from_json(const std::string&);
};

/// The child's side. Not thread-safe: what it is told comes from the tuning thread.
class Worker {
 public:
  explicit Worker(WorkerOrders orders) : orders_(std::move(orders)) {}

  /// Before anything is done about a call.
  void begin(const ConvProblem&, std::size_t place) const;
  bool skips(const ConvProblem& problem) const { return orders_.skipped.contains(problem.to_string()); }
  /// Leaves out what must not be tried, and reports every step. `device` and `set` outlive the options' use.
  void prepare(TuneOptions&, const ConvProblem&, const CandidateSet& set, Device& device) const;
  /// Nothing of a candidate runs any more; ends the process where the device did not outlive the last.
  void over(Device&) const;
  void tuned() const;
  void failed(const ConvProblem&) const;
  void done(const TuneTally&, const std::string& out) const;

 private:
  WorkerOrders orders_;
};

}  // namespace sl::tool
