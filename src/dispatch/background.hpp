// Policy `background`: one thread that tunes what was served by a base kernel, then swaps the winner in.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "dispatch/triage.hpp"

namespace sl {

/// A plan-table entry that waits for a winner.
struct Target {
  ConvProblem problem;
  Regular regular = Regular::yes;
};

/// Thread-safe. The thread starts with the first job.
class Background {
 public:
  struct Hooks {
    std::function<bool(const Digest&)> settled;  ///< is there a final winner already?
    std::function<void(const Triage&)> tune;     ///< must leave a final winner; must not throw
    std::function<void(const Triage&, const std::vector<Target>&)>
        publish;  ///< serve the targets with it; must not throw
  };
  explicit Background(Hooks hooks) : hooks_(std::move(hooks)) {}
  ~Background();  ///< drops what is queued, waits for what is running

  /// `watching`: the target will be published once its decision is made. `settled`: it is made. `full`: too much is
  /// queued; ask again with the next call and do not publish the base plan.
  enum class Watch { watching, settled, full };
  Watch watch(const Triage&, const Target&);
  void wait_idle();

 private:
  struct Job {
    std::shared_ptr<const Triage> triage;
    std::vector<Target> targets;
  };
  void work();

  static constexpr std::size_t max_jobs = 1024, max_targets = 1024;

  Hooks hooks_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::map<Digest, Job> jobs_;  // queued and running
  std::deque<Digest> queue_;
  bool busy_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace sl
