#include "tuner/measure.hpp"

#include "tuner/contest.hpp"

namespace sl::tool {
namespace {

std::optional<Spread> spread_of(const Samples* samples) {
  if (samples == nullptr || samples->us.empty()) return std::nullopt;
  return Spread{samples->median(), samples->percentile(0.1), samples->percentile(0.9)};
}

}  // namespace

Result<Measurement> measure(Session& session, const Plan& plan, const MeasureOptions& options) {
  Measurement out;
  out.outputs = plan.problem.y_elements();
  if (plan.problem.empty()) return out;
  SL_ASSIGN(const auto contest, Contest::open(session, plan.problem, options));
  SL_TRY(contest->check(plan, out));
  if (options.rounds <= 0) return out;
  contest->add_plan("call", plan);
  contest->add_copies();
  contest->run(options.rounds);
  const Samples* const call = contest->find("call");
  if (!call->error.empty()) return Error{Code::device, "timing the call: " + call->error};
  out.time = spread_of(call);
  out.copy = spread_of(contest->copy());
  return out;
}

}  // namespace sl::tool
