#include "tuning/timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace sl {
namespace {

constexpr int max_calls = 2000;            // nodes of one graph: beyond that instantiation costs more than it settles
constexpr double cold_slack_us = 20;       // a first replay holds launch overhead, not only the kernel
constexpr double warm_up_replays = 3;      // device time before the first sample, in replays of target_us
constexpr double growth_limit = 256;       // of calls from one calibration replay to the next
constexpr double close_enough = 0.25;      // of target_us
constexpr int calibration_recordings = 3;  // one call, then a guess from it, then a guess from that

struct Runner {
  const Workload* work = nullptr;
  Samples* out = nullptr;
  std::unique_ptr<Recording> recording;
  int calls = 0;
  bool alive = true;

  void fail(std::string why) {
    out->us.clear();
    out->error = std::move(why);
    drop();
  }
  void abandon(double us) {
    out->us = {us};
    out->abandoned = true;
    drop();
  }
  void drop() {
    alive = false;
    recording.reset();
  }
};

class Interleaver {
 public:
  Interleaver(Device& device, Stream stream, const std::vector<Workload>& work, int sets, const TimingOptions& options,
              std::vector<Samples>& out)
      : device_(device), stream_(stream), sets_(std::max(1, sets)), options_(options) {
    runners_.resize(work.size());
    for (std::size_t i = 0; i < work.size(); ++i) {
      runners_[i].work = &work[i];
      runners_[i].out = &out[i];
    }
  }

  void run() {
    bool any = false;
    for (Runner& runner : runners_) {
      if (any && !certain(runner) && expired()) {
        runner.fail(std::string(skipped_budget));
        continue;
      }
      any |= calibrate(runner);
    }
    warm_up();
    double before = spent_us();
    first_round();
    double round_us = spent_us() - before;  // the next will take as long, at most
    for (int round = 1; round < options_.rounds && !expired(round_us); ++round) {
      before = spent_us();
      for (Runner& runner : runners_) {
        if (runner.alive) sample(runner);
      }
      round_us = spent_us() - before;
    }
  }

 private:
  double spent_us() const { return std::chrono::duration<double, std::micro>(options_.now() - start_).count(); }

  bool expired(double upcoming_us = 0) const {
    return options_.deadline_us > 0 && spent_us() + upcoming_us > options_.deadline_us;
  }

  /// Measured once whatever the deadline says.
  bool certain(const Runner& runner) const { return &runner - runners_.data() < options_.certain; }

  void announce(const Runner& runner) const {
    if (options_.before) options_.before(static_cast<std::size_t>(&runner - runners_.data()));
  }

  Status record(Runner& runner, int calls) {
    announce(runner);
    runner.recording.reset();
    SL_ASSIGN(runner.recording, device_.record(stream_, [&](Stream stream) -> Status {
      for (int call = 0; call < calls; ++call) SL_TRY((*runner.work)(call % sets_, stream));
      return {};
    }));
    runner.calls = calls;
    return {};
  }

  /// Time of one call, or a negative number when the runner failed.
  double replay(Runner& runner) {
    announce(runner);
    const Result<double> total = runner.recording->replay();
    if (!total.ok()) {
      runner.fail(total.error().message);
      return -1;
    }
    if (!(*total >= 0)) {
      runner.fail("the device reported an elapsed time of " + std::to_string(*total) + " us");
      return -1;
    }
    device_us_ += *total;
    return *total / runner.calls;
  }

  bool too_slow(double us, double best, double slack = 0) const {
    return options_.abandon_factor > 0 && us > options_.abandon_factor * best + slack;
  }

  /// Finds how many calls make a replay last about target_us. False when the runner failed; an abandoned one counts.
  bool calibrate(Runner& runner) {
    int calls = 1;
    for (int attempt = 0; attempt < calibration_recordings; ++attempt) {
      if (const Status made = record(runner, calls); !made.ok()) {
        runner.fail(made.error().message);
        return false;
      }
      const double us = replay(runner);
      if (us < 0) return false;
      double& best = attempt == 0 ? best_cold_ : best_warm_;
      if (too_slow(us, best, attempt == 0 ? cold_slack_us : 0)) {
        runner.abandon(us);
        return true;
      }
      best = std::min(best, us);
      const double want = options_.target_us / std::max(us, 1e-3);
      if (want * close_enough <= calls || calls >= max_calls) return true;
      calls = next_calls(calls, want);
    }
    return true;
  }

  /// Whole rotations where the target allows one, so that every set weighs the same.
  int next_calls(int calls, double want) const {
    const double grown = std::min({want, calls * growth_limit, static_cast<double>(max_calls)});
    const int whole = std::max(1, static_cast<int>(std::ceil(grown)));
    return whole >= sets_ ? (whole + sets_ - 1) / sets_ * sets_ : whole;
  }

  /// An idle clock ramps up over the first replays; whoever came first would look slow.
  void warm_up() {
    while (device_us_ < warm_up_replays * options_.target_us && !expired()) {
      const auto first = std::find_if(runners_.begin(), runners_.end(), [](const Runner& r) { return r.alive; });
      if (first == runners_.end()) return;
      const double before = device_us_;
      if (replay(*first) >= 0 && device_us_ <= before) return;  // a clock that stands still would spin here for ever
    }
  }

  double sample(Runner& runner) {
    const double us = replay(runner);
    if (us >= 0) runner.out->us.push_back(us);
    return us;
  }

  void first_round() {
    bool any = false;
    double best = std::numeric_limits<double>::infinity();
    for (Runner& runner : runners_) {
      if (!runner.alive) continue;
      if (any && !certain(runner) && expired()) {
        runner.fail(std::string(skipped_budget));
        continue;
      }
      const double us = sample(runner);
      if (us < 0) continue;
      any = true;
      best = std::min(best, us);
    }
    for (Runner& runner : runners_) {
      if (runner.alive && too_slow(runner.out->us.front(), best)) runner.abandon(runner.out->us.front());
    }
  }

  Device& device_;
  Stream stream_;
  int sets_;
  const TimingOptions& options_;
  std::vector<Runner> runners_;
  std::chrono::steady_clock::time_point start_ = options_.now();
  double device_us_ = 0;
  double best_cold_ = std::numeric_limits<double>::infinity(), best_warm_ = std::numeric_limits<double>::infinity();
};

double relative_noise(const Samples& samples) {
  const double median = samples.median();
  if (!(median > 0)) return 0;
  if (samples.us.size() < 3) return 0.05;
  // Normal: sigma = (90th - 10th percentile) / 2.563; a median of n has 1.253 sigma / sqrt(n); a difference sqrt(2)
  // that.
  constexpr double three_errors = 3 * 1.4142 * 1.2533 / 2.5631;
  const double spread = (samples.percentile(0.9) - samples.percentile(0.1)) / median;
  return three_errors * spread / std::sqrt(static_cast<double>(samples.us.size()));
}

}  // namespace

double Samples::median() const { return percentile(0.5); }

double Samples::percentile(double p) const {
  if (us.empty()) return 0;
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  const double at = std::clamp(p, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::pair<double, double> Samples::median_interval() const {
  if (us.empty()) return {0, 0};
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  // The number of samples below the median is binomial(n, 1/2): its normal quantile, rounded outwards.
  const auto n = static_cast<double>(sorted.size());
  const double low = std::floor((n - 1.96 * std::sqrt(n)) / 2);
  const std::size_t skip = sorted.size() < 6 || low < 1 ? 0 : static_cast<std::size_t>(low) - 1;
  return {sorted[skip], sorted[sorted.size() - 1 - skip]};
}

std::string_view name(Comparison comparison) {
  switch (comparison) {
    case Comparison::faster:
      return "faster";
    case Comparison::same:
      return "same";
    case Comparison::slower:
      return "slower";
    case Comparison::ambiguous:
      break;
  }
  return "ambiguous";
}

Comparison compare_medians(const Samples& ours, const Samples& theirs, double equal) {
  const auto [our_low, our_high] = ours.median_interval();
  const auto [their_low, their_high] = theirs.median_interval();
  if (!(our_low > 0) || !(their_low > 0)) return Comparison::ambiguous;
  const double least = their_low / our_high, most = their_high / our_low;  // how many times as fast
  if (least >= 1 - equal && most <= 1 + equal) return Comparison::same;
  if (least > 1) return Comparison::faster;
  if (most < 1) return Comparison::slower;
  return Comparison::ambiguous;
}

std::vector<Samples> time_interleaved(Device& device, Stream stream, const std::vector<Workload>& work, int sets,
                                      const TimingOptions& options) {
  std::vector<Samples> out(work.size());
  Interleaver(device, stream, work, sets, options, out).run();
  return out;
}

double noise_floor(const std::vector<Samples>& all) {
  const Samples* incumbent = nullptr;
  const Samples* fastest = nullptr;
  for (const Samples& samples : all) {
    if (samples.us.empty() || samples.abandoned) continue;
    if (incumbent == nullptr) incumbent = &samples;
    if (fastest == nullptr || samples.median() < fastest->median()) fastest = &samples;
  }
  if (incumbent == nullptr) return 0.01;
  return std::clamp(std::max(relative_noise(*incumbent), relative_noise(*fastest)), 0.01, 0.5);
}

int fastest(const std::vector<Samples>& all, double margin) {
  for (const bool abandoned : {false, true}) {
    const auto eligible = [&](const Samples& samples) { return !samples.us.empty() && samples.abandoned == abandoned; };
    double best = std::numeric_limits<double>::infinity();
    for (const Samples& samples : all) {
      if (eligible(samples)) best = std::min(best, samples.median());
    }
    const double limit = best / (1 - std::clamp(margin, 0.0, 0.9));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (eligible(all[i]) && all[i].median() <= limit) return static_cast<int>(i);
    }
  }
  return -1;
}

int rotating_sets(const DeviceInfo& info, std::int64_t bytes_per_set, std::uint64_t scratch_bytes) {
  if (bytes_per_set <= 0) return 1;
  const auto bytes = static_cast<std::uint64_t>(bytes_per_set);
  const std::uint64_t cache = 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(0, info.l2_bytes));
  const std::uint64_t wanted = cache / bytes + (cache % bytes != 0 ? 1 : 0);
  return static_cast<int>(std::clamp<std::uint64_t>(std::min(wanted, scratch_bytes / bytes), 1, 64));
}

}  // namespace sl
