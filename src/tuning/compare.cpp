#include "tuning/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>

namespace sl {
namespace {

constexpr std::int64_t large = 1 << 20;  // elements from which threads pay
constexpr std::int64_t stretch = 4096;   // elements compared by one memcmp

/// body(part, begin, end) over [0, count) in at most `threads` parts; the parts' results are the caller's to join.
template <class Part, class Body>
std::vector<Part> in_parts(std::int64_t count, int threads, const Body& body) {
  const std::int64_t parts = count < large ? 1 : std::clamp(threads, 1, 64);
  std::vector<Part> results(static_cast<std::size_t>(parts));
  std::vector<std::jthread> workers;
  const auto run = [&](std::int64_t part) {
    body(results[static_cast<std::size_t>(part)], count * part / parts, count * (part + 1) / parts);
  };
  for (std::int64_t part = 1; part < parts; ++part) {
    try {
      workers.emplace_back(run, part);
    } catch (const std::system_error&) {  // no thread to be had
      run(part);
    }
  }
  run(0);
  workers.clear();  // joins
  return results;
}

std::int64_t channel_of(const ConvProblem& problem, std::int64_t index) {
  return problem.layout == Layout::nhwc ? index % problem.k : index / (problem.p * problem.q) % problem.k;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504.0;
    case DType::bf16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<float>::max();
  }
}

/// An infinity is right where the true value is beyond the largest finite one by no more than the bound, so it is
/// compared as that value.
double finite(double value, double most) { return std::isinf(value) ? std::copysign(most, value) : value; }

template <class Word, Word exponent_mask>
void scan(std::span<const std::byte> bytes, NanScan& out, std::int64_t begin, std::int64_t end) {
  constexpr Word magnitude_mask = static_cast<Word>(~Word{0}) >> 1;
  constexpr std::int64_t block = 1024;
  for (std::int64_t from = begin; from < end; from += block) {
    const std::int64_t count = std::min(block, end - from);
    Word words[block];
    std::memcpy(words, bytes.data() + static_cast<std::size_t>(from) * sizeof(Word),
                static_cast<std::size_t>(count) * sizeof(Word));
    bool any = false;  // branch-free first: nearly every block has none
    for (std::int64_t i = 0; i < count; ++i) any |= static_cast<Word>(words[i] & magnitude_mask) > exponent_mask;
    if (!any) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      if (static_cast<Word>(words[i] & magnitude_mask) <= exponent_mask) continue;
      if (out.first < 0) out.first = from + i;
      ++out.nans;
      out.poisoned += words[i] == static_cast<Word>(~Word{0}) ? 1 : 0;
    }
  }
}

}  // namespace

OutputBound::OutputBound(const ConvProblem& problem, const HostData& data, double x_max)
    : problem_(problem), data_(&data), magnitude_(static_cast<std::size_t>(problem.k), 0.0) {
  const std::int64_t per_channel = problem.w_elements() / problem.k;  // both weight layouts have k outermost
  for (std::int64_t k = 0; k < problem.k; ++k) {
    double sum = 0;
    for (std::int64_t i = 0; i < per_channel; ++i) {
      sum += std::fabs(load_element(problem.dtype, data.w.data(), k * per_channel + i));
    }
    double& magnitude = magnitude_[static_cast<std::size_t>(k)];
    magnitude = x_max * sum;
    if (!data.bias.empty()) {
      const DType type = problem.bias == Bias::f32 ? DType::f32 : problem.dtype;
      magnitude += std::fabs(load_element(type, data.bias.data(), k));
    }
  }
  const auto terms = static_cast<double>(per_channel);
  additions_fma_ = terms + 3;
  additions_mma_ = 4 * terms + 3;  // T + 3s + 3 with s, the fused additions that hold a nonzero tap, at most T
  unit_ = problem.dtype == DType::f32 ? 0x1p-24 : problem.dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  tiny_ = (problem.dtype == DType::f32   ? 0x1p-149
           : problem.dtype == DType::f16 ? 0x1p-24
                                         : 0x1p-133) +
          terms * 0x1p-149;
  transcendental_ = false;
  lipschitz_ = 1;
  switch (problem.activation) {
    case Activation::leaky_relu:
      lipschitz_ = std::max(1.0, std::fabs(static_cast<double>(problem.alpha)));
      break;
    case Activation::silu:
      lipschitz_ = 1.10;
      transcendental_ = true;
      break;
    case Activation::gelu_erf:
    case Activation::gelu_tanh:
      lipschitz_ = 1.13;
      transcendental_ = true;
      break;
    case Activation::hard_swish:
      lipschitz_ = 1.5;
      break;
    default:
      break;
  }
}

double OutputBound::at(std::int64_t index, double value, Arithmetic arithmetic) const {
  double magnitude = magnitude_[static_cast<std::size_t>(channel_of(problem_, index))];
  if (!data_->z.empty()) magnitude += std::fabs(load_element(problem_.dtype, data_->z.data(), index));
  const double error = (arithmetic == Arithmetic::mma ? additions_mma_ : additions_fma_) * 0x1p-24 * magnitude;
  // |a| <= S' and |phi(a)| <= |a| for the transcendental ones.
  const double evaluation = transcendental_ ? 8 * 0x1p-24 * magnitude : 0;
  // |phi(a)| <= |value| + B, hence the division.
  return (unit_ * std::fabs(value) + (1 + unit_) * (lipschitz_ * error + evaluation) + tiny_) / (1 - unit_);
}

Difference compare_outputs(const ConvProblem& problem, const OutputBound& bound, std::span<const std::byte> want,
                           Arithmetic want_by, std::span<const std::byte> got, Arithmetic got_by, int threads) {
  const std::size_t size = size_of(problem.dtype);
  const double most = largest_finite(problem.dtype);
  const auto compare = [&](Difference& out, std::int64_t begin, std::int64_t end) {
    for (std::int64_t from = begin; from < end; from += stretch) {
      const std::int64_t to = std::min(end, from + stretch);
      const std::size_t at = static_cast<std::size_t>(from) * size, bytes = static_cast<std::size_t>(to - from) * size;
      if (std::memcmp(want.data() + at, got.data() + at, bytes) == 0) continue;
      for (std::int64_t i = from; i < to; ++i) {
        const std::size_t here = static_cast<std::size_t>(i) * size;
        if (std::memcmp(want.data() + here, got.data() + here, size) == 0) continue;
        const double a = finite(load_element(problem.dtype, want.data(), i), most);
        const double b = finite(load_element(problem.dtype, got.data(), i), most);
        const double allowed = bound.at(i, a, want_by) + bound.at(i, b, got_by);
        if (std::fabs(a - b) <= allowed) continue;  // false for NaN
        if (out.count++ == 0) out = {1, i, b, a, allowed};
      }
    }
  };
  Difference total;
  for (const Difference& part : in_parts<Difference>(problem.y_elements(), threads, compare)) {
    if (total.index < 0 && part.index >= 0) {
      const std::int64_t before = total.count;
      total = part;
      total.count += before;
    } else {
      total.count += part.count;
    }
  }
  return total;
}

NanScan scan_nan(DType dtype, std::span<const std::byte> bytes, int threads) {
  const auto count = static_cast<std::int64_t>(bytes.size() / size_of(dtype));
  const auto body = [&](NanScan& out, std::int64_t begin, std::int64_t end) {
    switch (dtype) {
      case DType::f32:
        scan<std::uint32_t, 0x7f800000U>(bytes, out, begin, end);
        break;
      case DType::f16:
        scan<std::uint16_t, 0x7c00U>(bytes, out, begin, end);
        break;
      case DType::bf16:
        scan<std::uint16_t, 0x7f80U>(bytes, out, begin, end);
        break;
    }
  };
  NanScan total;
  for (const NanScan& part : in_parts<NanScan>(count, threads, body)) {
    if (total.first < 0) total.first = part.first;
    total.nans += part.nans;
    total.poisoned += part.poisoned;
  }
  return total;
}

std::string output_name(const ConvProblem& problem, std::int64_t index) {
  std::int64_t n = 0, k = 0, p = 0, q = 0;
  if (problem.layout == Layout::nhwc) {
    k = index % problem.k, index /= problem.k;
    q = index % problem.q, index /= problem.q;
    p = index % problem.p, n = index / problem.p;
  } else {
    q = index % problem.q, index /= problem.q;
    p = index % problem.p, index /= problem.p;
    k = index % problem.k, n = index / problem.k;
  }
  return "y[" + std::to_string(n) + "," + std::to_string(k) + "," + std::to_string(p) + "," + std::to_string(q) + "]";
}

}  // namespace sl
