#include "tuning/tuning_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace sl {
namespace {

constexpr std::int64_t period = 1'048'573;
constexpr std::int64_t small_elements = 1 << 18;

/// SplitMix64 (Steele, Lea, Flood 2014): one multiply-xor chain a value, good enough for test data.
struct Random {
  std::uint64_t state;
  double uniform() {
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return static_cast<double>(z >> 40) * 0x1p-23 - 1.0;  // 24 bits: exact in f32
  }
};

std::vector<std::byte> periodic(DType dtype, std::int64_t elements, std::uint64_t seed) {
  const std::size_t size = size_of(dtype);
  std::vector<std::byte> out(static_cast<std::size_t>(elements) * size);
  const std::int64_t block = std::min(elements, period);
  Random random{seed};
  for (std::int64_t i = 0; i < block; ++i) store_element(dtype, out.data(), i, random.uniform());
  for (std::size_t done = static_cast<std::size_t>(block) * size; done < out.size();) {
    const std::size_t step = std::min(done, out.size() - done);
    std::memcpy(out.data() + done, out.data(), step);
    done += step;
  }
  return out;
}

double largest(DType dtype, const std::vector<std::byte>& values, std::int64_t elements) {
  double most = 0;
  for (std::int64_t i = 0; i < elements; ++i) most = std::max(most, std::fabs(load_element(dtype, values.data(), i)));
  return most;
}

}  // namespace

TuningData make_tuning_data(const ConvProblem& problem, std::uint64_t seed, Fill fill) {
  const std::int64_t x = problem.x_elements(), z = problem.residual ? problem.y_elements() : 0;
  if (fill == Fill::integer || x + z + problem.w_elements() <= small_elements) {
    HostData host = make_data(problem, seed, fill);
    const double most = largest(problem.dtype, host.x, x);
    return {std::move(host), most};
  }
  HostData host;
  host.x = periodic(problem.dtype, x, seed);
  host.w = periodic(problem.dtype, problem.w_elements(), seed ^ 0x5bf0'3635'd1c8'2e19ULL);
  if (problem.bias != Bias::none) {
    const DType type = problem.bias == Bias::f32 ? DType::f32 : problem.dtype;
    host.bias = periodic(type, problem.k, seed ^ 0xa0761d6478bd642fULL);
  }
  if (problem.residual) host.z = periodic(problem.dtype, z, seed ^ 0xe7037ed1a0b428dbULL);
  const double most = largest(problem.dtype, host.x, std::min(x, period));
  return {std::move(host), most};
}

}  // namespace sl
