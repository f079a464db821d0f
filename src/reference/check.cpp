// The whole tensor: the reference's outputs, and a kernel's outputs held against them.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <mutex>

#include "reference/bound.hpp"
#include "reference/convolve.hpp"
#include "reference/parallel.hpp"
#include "reference/sample.hpp"

namespace sl {
namespace {

std::string describe(const ConvProblem& v, std::int64_t index, double got, const Verdict& verdict) {
  const Place o = place_of(v, index);
  char text[256];
  std::snprintf(text, sizeof(text), "y[%lld,%lld,%lld,%lld] = got %.9g, want %.9g, bound %.3g",
                static_cast<long long>(o.n), static_cast<long long>(o.k), static_cast<long long>(o.p),
                static_cast<long long>(o.q), got, verdict.want, verdict.allowed);
  return text;
}

std::int64_t cost_of_output(const ConvProblem& v) { return v.taps() * v.channels_per_group() + 16; }

// What the threads found, joined so that the outcome does not depend on their order.
struct Findings {
  std::mutex mutex;
  CheckResult result;
  std::int64_t first_index = -1;

  void join(const CheckResult& part, std::int64_t part_first) {
    const std::lock_guard lock(mutex);
    result.checked += part.checked;
    result.wrong += part.wrong;
    result.error_over_bound = std::max(result.error_over_bound, part.error_over_bound);
    if (part.wrong > 0 && (first_index < 0 || part_first < first_index)) {
      first_index = part_first;
      result.first_wrong = part.first_wrong;
    }
  }
};

CheckResult refused(const ConvProblem& v, const std::string& why) {
  CheckResult result;
  result.wrong = std::max<std::int64_t>(1, v.y_elements());
  result.error_over_bound = std::numeric_limits<double>::infinity();
  result.first_wrong = "nothing could be checked: " + why;
  return result;
}

}  // namespace

CheckResult check_output(const ConvProblem& v, const HostTensors& tensors, std::span<const std::byte> y,
                         BoundOptions options, std::int64_t max_outputs) {
  if (v.empty()) return {};
  if (const std::string why = wrong_sizes(v, tensors); !why.empty()) return refused(v, why);
  const std::int64_t total = v.y_elements();
  const std::size_t need = static_cast<std::size_t>(total) * size_of(v.dtype);
  if (y.size() < need) {
    return refused(v, "y holds " + std::to_string(y.size()) + " bytes, must hold " + std::to_string(need));
  }
  std::vector<std::int64_t> sample;
  if (max_outputs > 0 && max_outputs < total) sample = sample_outputs(v, max_outputs);
  const std::int64_t count = sample.empty() ? total : static_cast<std::int64_t>(sample.size());

  const Bound bound(v, options);
  Findings findings;
  parallel_blocks(count, cost_of_output(v), [&](std::int64_t begin, std::int64_t end) {
    CheckResult part;
    std::int64_t part_first = -1;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t index = sample.empty() ? i : sample[static_cast<std::size_t>(i)];
      const Place o = place_of(v, index);
      const double got = load_element(v.dtype, y.data(), y_offset(v, o.n, o.k, o.p, o.q));
      const Verdict verdict = bound.judge(pre_activation(v, tensors, o), got);
      ++part.checked;
      part.error_over_bound = std::max(part.error_over_bound, verdict.ratio);
      if (verdict.right) continue;
      if (part.wrong++ == 0) {
        part_first = index;
        part.first_wrong = describe(v, index, got, verdict);
      }
    }
    findings.join(part, part_first);
  });
  return findings.result;
}

std::vector<std::byte> reference_output(const ConvProblem& v, const HostTensors& tensors) {
  if (v.empty() || !wrong_sizes(v, tensors).empty()) return {};
  std::vector<std::byte> y(static_cast<std::size_t>(v.y_elements()) * size_of(v.dtype));
  parallel_blocks(v.y_elements(), cost_of_output(v), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Place o = place_of(v, i);
      store_element(v.dtype, y.data(), y_offset(v, o.n, o.k, o.p, o.q),
                    activate(v, pre_activation(v, tensors, o).value));
    }
  });
  return y;
}

}  // namespace sl
