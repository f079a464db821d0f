#include "tuner/measure.hpp"

#include <algorithm>

#include "reference/reference.hpp"
#include "schedules/schedule.hpp"
#include "tuner/probes.hpp"
#include "tuning/timing.hpp"
#include "tuning/workspace.hpp"

namespace sl::tool {
namespace {

// About a second of the double reference on one core.
constexpr std::int64_t reference_macs = 200'000'000;

std::int64_t outputs_to_check(const ConvProblem& problem, std::int64_t asked) {
  if (asked >= 0) return asked;
  return std::max<std::int64_t>(10'000, reference_macs / (problem.taps() * problem.channels_per_group()));
}

Tensors tensors_of(const SlParams& p) { return {p.x, p.weight, p.bias, p.z, p.y}; }

std::optional<Spread> spread_of(const Samples& samples) {
  if (samples.us.empty()) return std::nullopt;
  return Spread{samples.median(), samples.percentile(0.1), samples.percentile(0.9)};
}

Status check(Session& session, const Plan& plan, Workspace& workspace, Stream stream, const MeasureOptions& options,
             Measurement& out) {
  SL_TRY(workspace.poison(0));
  SL_TRY(session.dispatcher->run(plan, tensors_of(workspace.bind(plan.entry.params, 0)), stream));
  SL_TRY(session.device->synchronize(stream));
  SL_TRY(workspace.check_redzones(0));
  SL_ASSIGN(const auto y, workspace.read_y(0));
  BoundOptions bound;
  bound.exact = options.fill == Fill::integer;
  if (const Schedule* schedule = find_schedule(plan.decision.schedule)) bound.arithmetic = schedule->arithmetic;
  const auto checked =
      check_output(plan.problem, workspace.host_data().view(), y, bound, outputs_to_check(plan.problem, options.check));
  out.checked = checked.checked;
  out.wrong = checked.wrong;
  out.error_over_bound = checked.error_over_bound;
  out.first_wrong = checked.first_wrong;
  return {};
}

Status time(Session& session, const Plan& plan, Workspace& workspace, Stream stream, int rounds, Measurement& out) {
  TimingOptions timing;
  timing.rounds = rounds;
  timing.abandon_factor = 0;
  // Straight to the device, so that the launch counter tells calls, not replays.
  const Workload call = [&](int set, Stream on) {
    return session.device->launch(*plan.entry.kernel, plan.entry.geometry, workspace.bind(plan.entry.params, set), on);
  };
  const Workload copy = [&](int set, Stream on) { return workspace.copy_same_bytes(set, on); };
  std::vector<Workload> work = {call, copy};
  const auto copier = CopyKernel::load(session);  // without a compiler the driver's copy is what there is
  if (copier.ok()) {
    work.emplace_back(
        [&](int set, Stream on) { return copier->launch(*session.device, workspace.same_bytes(set), on); });
  }
  const auto samples = time_interleaved(*session.device, stream, work, workspace.sets(), timing);
  if (!samples[0].error.empty()) return Error{Code::device, "timing the call: " + samples[0].error};
  out.time = spread_of(samples[0]);
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const auto one = spread_of(samples[i]);
    if (one && (!out.copy || one->median < out.copy->median)) out.copy = one;
  }
  return {};
}

}  // namespace

Result<Measurement> measure(Session& session, const Plan& plan, const MeasureOptions& options) {
  Measurement out;
  out.outputs = plan.problem.y_elements();
  if (plan.problem.empty()) return out;
  SL_ASSIGN(const Stream stream, session.device->create_stream());
  const StreamOwner owner{*session.device, stream};

  WorkspaceOptions scratch;
  scratch.seed = options.seed;
  scratch.fill = options.fill;
  // The budget guards other people's memory while tuning; what this call itself needs was asked for.
  const auto own = static_cast<std::uint64_t>(plan.problem.min_bytes());
  scratch.max_bytes = std::max<std::uint64_t>(session.environment.tune_scratch_bytes, 2 * own + (64ULL << 20));
  SL_ASSIGN(const auto workspace, Workspace::create(*session.device, stream, plan.problem, scratch));
  SL_TRY(check(session, plan, *workspace, stream, options, out));
  if (options.rounds > 0) SL_TRY(time(session, plan, *workspace, stream, options.rounds, out));
  return out;
}

}  // namespace sl::tool
