#include "routing/routing.hpp"

namespace sl {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::optional:
      return "OPTIONAL";
    case Verdict::required:
      return "REQUIRED";
    case Verdict::unsupported:
      break;
  }
  return "UNSUPPORTED";
}

Preflight preflight(const ConvProblem& problem, const DeviceInfo& device, Regular regular,
                    std::span<const std::string> only, std::span<const std::string> disabled, const Sanitized* passed) {
  Preflight result;
  result.set = candidates(problem, device, only, disabled, passed);
  if (!result.set.candidates.empty()) {
    result.verdict = regular == Regular::yes ? Verdict::optional : Verdict::required;
    return result;
  }
  result.verdict = Verdict::unsupported;
  result.reason = "no schedule can run " + problem.to_string() + " on " + device.name;
  for (const ScheduleRefusal& refusal : result.set.refusals)
    result.reason +=
        (&refusal == &result.set.refusals.front() ? ": " : "; ") + refusal.schedule + ": " + refusal.reason;
  return result;
}

}  // namespace sl
