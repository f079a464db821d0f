// What commands over many calls share: which calls, which of them are this shard's, and how long they will take.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "tuner/options.hpp"
#include "tuner/suite.hpp"

namespace sl::tool {

/// The calls of the options' suites in every combination asked for; --sample draws from them, --shard takes its part.
Result<std::vector<ConvProblem>> calls_of(const Options&);

/// What --batch, --dt and --tag say, and what is made where they say nothing.
Result<SuiteDefaults> defaults_of(const Options&);

/// Part `index` (from 1) of `count`: every count-th call.
struct Shard {
  std::size_t index = 1, count = 1;
};
/// "2/8"; empty = the whole.
Result<Shard> parse_shard(const std::string&);

/// Progress of many steps of one kind, on a terminal only.
class LongWork {
 public:
  /// budget in seconds; 0 = none.
  LongWork(std::size_t count, double budget) : count_(count), budget_(budget) {}
  bool out_of_budget() const;
  void step(const std::string& what) { at(done_ + 1, what); }  ///< the next one begins
  void at(std::size_t place, const std::string& what);         ///< the one of this place, from 1, begins
  double left() const { return budget_ - seconds(); }          ///< of a budget, in seconds

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const;
  std::size_t count_, done_ = 0;
  double budget_;
  Clock::time_point started_ = Clock::now();
};

}  // namespace sl::tool
