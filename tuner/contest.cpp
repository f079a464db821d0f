#include "tuner/contest.hpp"

#include <algorithm>
#include <utility>

#include "reference/reference.hpp"
#include "schedules/schedule.hpp"

namespace sl::tool {
namespace {

// About a second of the double reference on one core.
constexpr std::int64_t reference_macs = 200'000'000;

std::int64_t outputs_to_check(const ConvProblem& problem, std::int64_t asked) {
  if (asked >= 0) return asked;
  return std::max<std::int64_t>(10'000, reference_macs / (problem.taps() * problem.channels_per_group()));
}

Tensors tensors_of(const SlParams& p) { return {p.x, p.weight, p.bias, p.z, p.y}; }

}  // namespace

Result<std::unique_ptr<Contest>> Contest::open(Session& session, const ConvProblem& problem,
                                               const MeasureOptions& options) {
  SL_ASSIGN(const Stream stream, session.device->create_stream());
  std::unique_ptr<Contest> contest(new Contest(session, problem, options, stream));
  WorkspaceOptions scratch;
  scratch.seed = options.seed;
  scratch.fill = options.fill;
  if (options.warm) scratch.max_sets = 1;
  // The budget guards other people's memory while tuning; what this call itself needs was asked for.
  const auto own = static_cast<std::uint64_t>(problem.min_bytes());
  scratch.max_bytes = std::max<std::uint64_t>(session.environment.tune_scratch_bytes, 2 * own + (64ULL << 20));
  SL_ASSIGN(contest->workspace_, Workspace::create(*session.device, stream, problem, scratch));
  return contest;
}

Status Contest::check(const Plan& plan, Measurement& out) {
  Device& device = *session_.device;
  SL_TRY(workspace_->poison(0));
  SL_TRY(session_.dispatcher->run(plan, tensors_of(workspace_->bind(plan.entry.params, 0)), stream()));
  SL_TRY(device.synchronize(stream()));
  SL_TRY(workspace_->check_redzones(0));
  SL_ASSIGN(const auto y, workspace_->read_y(0));
  BoundOptions bound;
  bound.exact = options_.fill == Fill::integer;
  if (const Schedule* schedule = find_schedule(plan.decision.schedule)) bound.arithmetic = schedule->arithmetic;
  const auto checked = check_output(plan.problem, workspace_->host_data().view(), y, bound,
                                    outputs_to_check(plan.problem, options_.check));
  out.checked = checked.checked;
  out.wrong = checked.wrong;
  out.error_over_bound = checked.error_over_bound;
  out.first_wrong = checked.first_wrong;
  return {};
}

void Contest::add(std::string name, Workload work) {
  names_.push_back(std::move(name));
  work_.push_back(std::move(work));
}

void Contest::add_plan(std::string name, const Plan& plan) {
  // Straight to the device, so that the launch counter tells calls, not replays.
  add(std::move(name), [this, &plan](int set, Stream on) {
    return session_.device->launch(*plan.entry.kernel, plan.entry.geometry, workspace_->bind(plan.entry.params, set),
                                   on);
  });
}

void Contest::add_copies() {
  add("copy", [this](int set, Stream on) { return workspace_->copy_same_bytes(set, on); });
  auto copier = CopyKernel::load(session_);
  if (!copier.ok()) return;  // without a compiler the driver's copy is what there is
  copier_ = std::move(copier).value();
  add("copy_kernel",
      [this](int set, Stream on) { return copier_->launch(*session_.device, workspace_->same_bytes(set), on); });
}

void Contest::run(int rounds) {
  TimingOptions timing;
  timing.rounds = rounds;
  timing.abandon_factor = 0;
  samples_ = time_interleaved(*session_.device, stream(), work_, workspace_->sets(), timing);
}

const Samples* Contest::find(const std::string& name) const {
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (names_[i] == name) return &samples_[i];
  }
  return nullptr;
}

const Samples* Contest::copy() const {
  const Samples* best = nullptr;
  for (const char* const name : {"copy", "copy_kernel"}) {
    const Samples* const one = find(name);
    if (one == nullptr || one->us.empty()) continue;
    if (best == nullptr || one->median() < best->median()) best = one;
  }
  return best;
}

}  // namespace sl::tool
