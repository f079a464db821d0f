#include "dispatch/kernel_pool.hpp"

#include <span>
#include <utility>

namespace sl {
namespace {

// Below this a kernel needs no opt-in, so one loaded kernel serves every size of dynamic shared memory.
constexpr int default_smem_limit = 48 * 1024;
constexpr std::int64_t max_grid = (std::int64_t{1} << 31) - 1;

}  // namespace

Result<LaunchShape> launch_shape(const ConvProblem& problem, const Candidate& candidate, const DeviceInfo& device) {
  const Schedule& schedule = *candidate.schedule;
  const auto refuse = [&](std::string why) {
    return Error{Code::unsupported, std::string(schedule.name) + " [" + candidate.config.to_string() + "] cannot run " +
                                        problem.to_string() + ": " + std::move(why)};
  };
  if (Refusal refusal = schedule.can_run(problem, device)) return refuse(std::move(*refusal));
  if (Refusal refusal = schedule.fits(problem, candidate.config)) return refuse(std::move(*refusal));
  LaunchShape shape{schedule.kernel(problem, candidate.config), schedule.geometry(problem, candidate.config),
                    common_params(problem)};
  schedule.params(problem, candidate.config, shape.params);
  if (shape.geometry.grid < 1 || shape.geometry.grid > max_grid) {
    return refuse("its grid of " + std::to_string(shape.geometry.grid) + " blocks is not within 1 to " +
                  std::to_string(max_grid));
  }
  return shape;
}

std::string KernelPool::key(const LaunchShape& shape) {
  const int opt_in = shape.geometry.dynamic_smem > default_smem_limit ? shape.geometry.dynamic_smem : 0;
  return shape.spec.canonical() + "|smem=" + std::to_string(opt_in);
}

const LoadedKernel* KernelPool::loaded(const LaunchShape& shape) const {
  const std::string wanted = key(shape);
  const std::lock_guard lock(mutex_);
  const auto it = kernels_.find(wanted);
  return it == kernels_.end() ? nullptr : &it->second;
}

Result<const LoadedKernel*> KernelPool::get(const LaunchShape& shape) {
  if (const LoadedKernel* known = loaded(shape)) return known;
  auto binaries = binaries_.get(std::span(&shape.spec, 1), device_.info(), 1);
  if (binaries.size() != 1) return Error{Code::internal, "no answer for " + shape.spec.entry()};
  SL_ASSIGN(const std::shared_ptr<const Binary> binary, std::move(binaries.front()));

  const std::lock_guard loading(loading_);
  if (const LoadedKernel* known = loaded(shape)) return known;
  SL_ASSIGN(std::shared_ptr<const Kernel> kernel, device_.load(*binary, shape.geometry.dynamic_smem));
  const std::lock_guard lock(mutex_);
  const auto it = kernels_.emplace(key(shape), LoadedKernel{std::move(kernel), binary->compiler, binary->arch}).first;
  return &it->second;
}

std::size_t KernelPool::size() const {
  const std::lock_guard lock(mutex_);
  return kernels_.size();
}

}  // namespace sl
