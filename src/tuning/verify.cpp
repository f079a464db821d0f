#include "tuning/verify.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

namespace sl {
namespace {

constexpr std::int64_t reference_macs = 20'000'000;  // of one candidate: some 30 ms of double arithmetic on one core
constexpr std::int64_t fewest_outputs = 256;         // whatever a large kernel costs

/// As many sampled outputs as asked for, fewer where each costs many multiply-adds.
std::int64_t sample_size(const ConvProblem& problem, std::int64_t asked) {
  const std::int64_t per_output = problem.taps() * problem.channels_per_group();
  const std::int64_t affordable = std::max(fewest_outputs, reference_macs / per_output);
  return std::max<std::int64_t>(1, std::min(asked, affordable));
}

Error labelled(std::string_view label, const Error& error) {
  return {error.code, std::string(label) + ": " + error.message};
}

Error wrong(std::string message) { return {Code::wrong_result, "wrong: " + std::move(message)}; }

}  // namespace

Verifier::Verifier(Device& device, Stream stream, Workspace& workspace, const ConvProblem& problem,
                   const VerifyOptions& options)
    : device_(device),
      stream_(stream),
      workspace_(workspace),
      problem_(problem),
      options_(options),
      bound_(problem, workspace.host_data(), workspace.x_max()) {}

Result<double> Verifier::verify(const Launchable& candidate) { return verify(launch(candidate), candidate.arithmetic); }

Result<double> Verifier::verify(const Workload& call, Arithmetic arithmetic) {
  SL_TRY(run(call, y_));
  SL_TRY(check_finite());
  const CheckResult check = check_output(problem_, workspace_.host_data().view(), y_, {arithmetic, false},
                                         sample_size(problem_, options_.outputs));
  if (!check.ok()) {
    return wrong(std::to_string(check.wrong) + " of " + std::to_string(check.checked) + " sampled outputs; " +
                 check.first_wrong);
  }
  if (base_.empty()) {
    base_ = y_;
    base_arithmetic_ = arithmetic;
  } else {
    SL_TRY(compare_with_base(arithmetic));
  }
  return check.error_over_bound;
}

Status Verifier::verify_repeats(const Launchable& candidate) {
  const bool first_ever = base_.empty();
  if (Result<double> first = verify(candidate); !first.ok()) return std::move(first).error();
  std::vector<std::byte> again;
  SL_TRY(run(launch(candidate), again));
  const auto [ours, theirs] = std::mismatch(y_.begin(), y_.end(), again.begin(), again.end());
  if (ours == y_.end() && theirs == again.end()) return {};
  if (first_ever) base_.clear();  // it is no measure for others
  const auto index = (ours - y_.begin()) / static_cast<std::ptrdiff_t>(size_of(problem_.dtype));
  return wrong("two runs on the same data differ, first at " + output_name(problem_, index));
}

Workload Verifier::launch(const Launchable& candidate) const {
  return [this, &candidate](int set, Stream on) {
    return device_.launch(*candidate.kernel, candidate.geometry, workspace_.bind(candidate.params, set), on);
  };
}

Status Verifier::run(const Workload& call, std::vector<std::byte>& y) {
  SL_TRY(workspace_.poison(0));
  Status status = call(0, stream_);
  if (status.ok()) status = device_.synchronize(stream_);
  if (!status.ok()) return labelled("launch", status.error());
  if (const Status fenced = workspace_.check_redzones(0); !fenced.ok()) {
    return labelled(fenced.error().code == Code::wrong_result ? "wrong" : "launch", fenced.error());
  }
  if (const Status read = workspace_.read_y(0, y); !read.ok()) return labelled("launch", read.error());
  return {};
}

Status Verifier::check_finite() const {
  const NanScan scan = scan_nan(problem_.dtype, y_, options_.threads);
  if (scan.nans == 0) return {};
  return wrong(std::to_string(scan.nans) + " outputs are NaN, " + std::to_string(scan.poisoned) +
               " of them never written; the first is " + output_name(problem_, scan.first));
}

Status Verifier::compare_with_base(Arithmetic arithmetic) const {
  const Difference difference =
      compare_outputs(problem_, bound_, base_, base_arithmetic_, y_, arithmetic, options_.threads);
  if (difference.count == 0) return {};
  std::ostringstream text;
  text << difference.count << " outputs differ from the first verified candidate's; "
       << output_name(problem_, difference.index) << " = " << difference.got << ", want " << difference.want
       << ", allowed " << difference.allowed;
  return wrong(text.str());
}

}  // namespace sl
