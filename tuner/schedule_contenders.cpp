#include "tuner/schedule_contenders.hpp"

#include <optional>
#include <utility>

#include "schedules/schedule.hpp"

namespace sl::tool {
namespace {

/// The configuration that tuning found fastest: one of this call's own, or one that it took from another batch's.
std::optional<Config> tuned_config(const Decision& decision, std::string_view schedule) {
  const CandidateRecord* best = nullptr;
  for (const CandidateRecord& one : decision.candidates) {
    if (one.schedule != schedule || !(one.median_us > 0)) continue;
    if (best == nullptr || one.median_us < best->median_us) best = &one;
  }
  return best == nullptr ? std::nullopt : Config::parse(best->config);
}

/// One candidate a schedule, in the list's order: as tuned, or the first where tuning did not time it.
std::vector<Candidate> one_of_each(const Session& session, const ConvProblem& problem, const Decision& decision) {
  std::vector<Candidate> chosen;
  for (Candidate& candidate : candidates(problem, session.device->info(), forced(session.environment),
                                         session.environment.disabled_schedules, session.options.sanitized.get())
                                  .candidates) {
    if (has_schedule(chosen, candidate.schedule)) continue;
    if (auto tuned = tuned_config(decision, candidate.schedule->name)) candidate.config = std::move(*tuned);
    chosen.push_back(std::move(candidate));
  }
  return chosen;
}

Result<std::shared_ptr<const Launchable>> launchable_of(Session& session, const ConvProblem& problem,
                                                        const Candidate& candidate) {
  const Schedule& schedule = *candidate.schedule;
  const KernelSpec spec = schedule.kernel(problem, candidate.config);
  const auto binary = session.binaries->get({&spec, 1}, session.device->info(), 1)[0];
  if (!binary.ok()) return Error{binary.error().code, "compile: " + binary.error().message};
  auto made = std::make_shared<Launchable>();
  made->geometry = schedule.geometry(problem, candidate.config);
  made->arithmetic = schedule.arithmetic;
  schedule.params(problem, candidate.config, made->params);
  auto kernel = session.device->load(**binary, made->geometry.dynamic_smem);
  if (!kernel.ok()) return Error{kernel.error().code, "load: " + kernel.error().message};
  made->kernel = std::move(kernel).value();
  return std::shared_ptr<const Launchable>(std::move(made));
}

}  // namespace

std::string contender_name(const ScheduleContender& one) { return "schedule " + one.schedule; }

std::vector<ScheduleContender> add_schedules(Session& session, Contest& contest, const Decision& decision, bool every) {
  const ConvProblem& problem = contest.problem();
  const Schedule* const base = base_schedule(problem, session.device->info());
  Verifier verifier(*session.device, contest.stream(), contest.workspace(), problem, {});
  std::vector<ScheduleContender> out;
  for (const Candidate& candidate : one_of_each(session, problem, decision)) {
    if (candidate.schedule->name == decision.schedule || (!every && candidate.schedule != base)) continue;
    ScheduleContender one{std::string(candidate.schedule->name), candidate.config.to_string(), {}, nullptr};
    auto made = launchable_of(session, problem, candidate);
    Status right = made.ok() ? Status{} : Status(made.error());
    if (made.ok()) {
      one.launchable = std::move(made).value();
      if (auto verified = verifier.verify(*one.launchable); !verified.ok()) right = std::move(verified).error();
    }
    if (right.ok()) {
      contest.add(contender_name(one), [&session, &contest, launchable = one.launchable](int set, Stream on) {
        return session.device->launch(*launchable->kernel, launchable->geometry,
                                      contest.workspace().bind(launchable->params, set), on);
      });
    } else {
      one.error = right.error().message;
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace sl::tool
