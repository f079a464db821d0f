#include "tuner/bench_row.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tuner/contest.hpp"
#include "tuner/schedule_contenders.hpp"

namespace sl::tool {
namespace {

constexpr const char* ours = "sluice";

Timed timed(const Samples& samples) {
  const auto [low, high] = samples.median_interval();
  return {samples.median(), samples.percentile(0.1), samples.percentile(0.9), low, high};
}

/// What the winner's binary says of itself.
void describe(const Decision& decision, ResultsRow& row) {
  row.schedule = decision.schedule;
  row.config = decision.config;
  for (const auto& c : decision.candidates) {
    if (c.schedule == decision.schedule && c.config == decision.config) {
      row.registers = c.registers;
      row.smem = c.smem;
    }
  }
}

class Row {
 public:
  Row(Session& session, const ConvProblem& problem, const BenchOptions& options)
      : session_(session), options_(options) {
    row_.problem = problem;
  }

  ResultsRow make() && {
    prepare();
    if (const Status status = measure(); !status.ok() && row_.error.empty()) row_.error = status.error().message;
    return std::move(row_);
  }

 private:
  void prepare() {
    const auto before = std::chrono::steady_clock::now();
    const std::uint64_t compiled = session_.binaries->counters().compiles;
    auto plan = session_.dispatcher->prepare(row_.problem, nullptr, Regular::yes);
    row_.prepare_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
    row_.compiles = session_.binaries->counters().compiles - compiled;
    if (!plan.ok()) {
      row_.error = plan.error().message;
    } else if ((*plan)->entry.kind != PlanEntry::Kind::plan) {
      row_.error = "kept: " + (*plan)->decision.reason;
    } else {
      plan_ = std::move(plan).value();
      describe(plan_->decision, row_);
    }
  }

  Status measure() {
    if (row_.problem.empty() || (plan_ == nullptr && options_.rival == nullptr)) return {};
    SL_ASSIGN(const auto contest, Contest::open(session_, row_.problem, options_.how));
    if (plan_ != nullptr) {  // without a right result the rivals' times still say that the call is better kept
      if (const Status added = add_ours(*contest); !added.ok()) row_.error = added.error().message;
    }
    contest->add_copies();
    if (options_.rival != nullptr) add_rivals(*contest);
    contest->run(options_.how.rounds);
    row_.clock_mhz = session_.device->clock_mhz();
    read(*contest);
    return {};
  }

  Status add_ours(Contest& contest) {
    Measurement checked;
    SL_TRY(contest.check(*plan_, checked));
    row_.error_over_bound = checked.error_over_bound;
    if (checked.wrong > 0) {
      row_.error = "wrong: " + checked.first_wrong;
      return {};
    }
    contest.add_plan(ours, *plan_);
    schedules_ = add_schedules(session_, contest, plan_->decision, options_.every_schedule);
    return {};
  }

  /// The whole call fused into one graph; and, where the call is more than a convolution, the convolution alone: cuDNN
  /// fuses few of these, and what does less is a rival that flatters nobody.
  void add_rivals(Contest& contest) {
    row_.rivals.emplace();
    add_rival(contest, "cudnn", row_.problem);
    if (cudnn::has_epilogue(row_.problem)) add_rival(contest, "cudnn_conv", cudnn::bare(row_.problem));
  }

  void add_rival(Contest& contest, const char* name, const ConvProblem& problem) {
    RivalRow rival;
    rival.name = name;
    rival.every_engine = options_.cudnn.every_engine;
    rival.chosen =
        options_.rival->prepare(problem, row_.problem, contest.workspace(), contest.stream(), options_.cudnn);
    if (rival.chosen.work) contest.add(name, rival.chosen.work);
    row_.rivals->push_back(std::move(rival));
  }

  void read(const Contest& contest) {
    const Samples* const call = contest.find(ours);
    if (const Samples* const copy = contest.copy()) {
      row_.copy_us = copy->median();
      row_.floor_us = std::max(row_.copy_us, arithmetic_floor_us(row_.problem, options_.peaks));
    }
    if (call != nullptr && !call->us.empty() && row_.copy_us > 0) {
      row_.time = timed(*call);
    } else if (row_.error.empty()) {
      row_.error = call != nullptr && !call->error.empty() ? "timing the call: " + call->error : "no time";
    }
    for (const ScheduleContender& one : schedules_) {
      const Samples* const samples = contest.find(contender_name(one));
      if (samples != nullptr && !samples->us.empty()) row_.schedules.emplace_back(one.schedule, samples->median());
    }
    if (row_.rivals) read_rivals(contest, call);
  }

  void read_rivals(const Contest& contest, const Samples* call) {
    const Samples* best = nullptr;
    for (RivalRow& rival : *row_.rivals) {
      rival.chosen.work = {};  // it refers to the contest, which ends here
      const Samples* const samples = contest.find(rival.name);
      if (samples == nullptr) continue;
      if (samples->us.empty()) {
        rival.chosen.error = "timing: " + samples->error;
        continue;
      }
      rival.time = timed(*samples);
      if (best == nullptr || samples->median() < best->median()) best = samples;
    }
    if (best != nullptr && row_.error.empty() && call != nullptr) row_.verdict = name(compare_medians(*call, *best));
  }

  Session& session_;
  const BenchOptions& options_;
  ResultsRow row_;
  std::shared_ptr<const Plan> plan_;
  std::vector<ScheduleContender> schedules_;
};

}  // namespace

ResultsRow bench_row(Session& session, const ConvProblem& problem, const BenchOptions& options) {
  return Row(session, problem, options).make();
}

}  // namespace sl::tool
