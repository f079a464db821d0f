#include "schedule_cases.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "gpu_fixture.hpp"
#include "support/check.hpp"
#include "tuning/workspace.hpp"

namespace sl::test {
namespace {

constexpr std::size_t batch = 256;  // kernels compiled at once: enough for many cores, small in memory

/// Infinities and NaNs in x, at places of every residue modulo 8 in both directions; no weight is zero, so that each
/// must show in every window that holds it.
HostData with_non_finite(const ConvProblem& p, HostData data) {
  for (std::int64_t i = 0; i < p.w_elements(); ++i) {
    if (load_element(p.dtype, data.w.data(), i) == 0.0) store_element(p.dtype, data.w.data(), i, 0.5);
  }
  const std::int64_t step = std::max<std::int64_t>(1, p.x_elements() / 8) | 1;
  for (std::int64_t i = 0, at = step / 2; i < 8 && at < p.x_elements(); ++i, at += step) {
    const double value =
        i % 2 == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    store_element(p.dtype, data.x.data(), at, value);
  }
  return data;
}

/// What is not finite in x reaches the outputs whose windows hold it, and no other.
void check_locality(const ScheduleCase& test, const Kernel& kernel, std::uint64_t seed, Stream stream) {
  Device& device = *machine().device;
  WorkspaceOptions options;
  options.seed = seed;
  options.max_sets = 1;
  const auto workspace = Workspace::create(device, stream, test.problem, options);
  ASSERT_OK(workspace);
  Workspace& work = **workspace;
  const HostData dirty = with_non_finite(test.problem, work.host_data());
  SlParams params = common_params(test.problem);
  test.schedule->params(test.problem, test.config, params);
  params = work.bind(params, 0);
  ASSERT_OK(device.copy_in(const_cast<void*>(params.x), dirty.x.data(), dirty.x.size(), stream));
  ASSERT_OK(device.copy_in(const_cast<void*>(params.weight), dirty.w.data(), dirty.w.size(), stream));
  ASSERT_OK(work.poison(0));
  ASSERT_OK(device.launch(kernel, test.schedule->geometry(test.problem, test.config), params, stream));
  ASSERT_OK(work.check_redzones(0));
  const auto y = work.read_y(0);
  ASSERT_OK(y);
  const Run run{test.problem, seed, Fill::random, test.schedule->arithmetic, test.name() + ", x not finite"};
  EXPECT_TRUE(output_is_right(run, dirty, *y));
}

void check_case(const ScheduleCase& test, const Binary& binary, std::uint64_t seed, Stream stream) {
  Device& device = *machine().device;
  EXPECT_TRUE(binary.spill_bytes == 0 || !test.schedule->promises_no_spill)
      << binary.spill_bytes << " bytes spilled with " << binary.registers << " registers";
  const Geometry geometry = test.schedule->geometry(test.problem, test.config);
  const auto kernel = device.load(binary, geometry.dynamic_smem);
  ASSERT_OK(kernel);
  SlParams params = common_params(test.problem);
  test.schedule->params(test.problem, test.config, params);
  for (const Fill fill : {Fill::random, Fill::integer}) {
    WorkspaceOptions options;
    options.seed = seed;
    options.max_sets = 1;
    options.fill = fill;
    const auto workspace = Workspace::create(device, stream, test.problem, options);
    ASSERT_OK(workspace);
    Workspace& work = **workspace;
    const Run run{test.problem, seed, fill, test.schedule->arithmetic, test.name()};
    std::vector<std::byte> first;
    for (int again = 0; again < 2; ++again) {
      ASSERT_OK(work.poison(0));
      ASSERT_OK(device.launch(**kernel, geometry, work.bind(params, 0), stream));
      ASSERT_OK(work.check_redzones(0));
      const auto y = work.read_y(0);
      ASSERT_OK(y);
      if (again == 0) {
        EXPECT_TRUE(output_is_right(run, work.host_data(), *y));
        first = *y;
      } else {
        EXPECT_TRUE(same_output(run, first, *y)) << "the same plan, run twice";
      }
    }
  }
  check_locality(test, **kernel, seed, stream);
}

}  // namespace

std::string ScheduleCase::name() const {
  return std::string(schedule->name) + " " + config.to_string() + " on " + problem.to_string();
}

std::vector<ScheduleCase> cases_of(const Schedule& schedule, std::span<const ConvProblem> problems,
                                   const DeviceInfo& device, std::size_t max_configs) {
  std::vector<ScheduleCase> cases;
  for (const ConvProblem& problem : problems) {
    if (problem.empty() || schedule.can_run(problem, device).has_value()) continue;
    auto configs = schedule.configs(problem, device);
    if (configs.size() > max_configs) configs.resize(max_configs);
    for (Config& config : configs) cases.push_back({problem, &schedule, std::move(config)});
  }
  return cases;
}

std::size_t check_cases(std::span<const ScheduleCase> cases, std::uint64_t seed) {
  const OwnStream stream(*machine().device);
  std::size_t ran = 0;
  for (std::size_t begin = 0; begin < cases.size(); begin += batch) {
    const auto part = cases.subspan(begin, std::min(batch, cases.size() - begin));
    std::vector<KernelSpec> specs;
    for (const ScheduleCase& test : part) specs.push_back(test.schedule->kernel(test.problem, test.config));
    const auto binaries = machine().cache->get(specs, machine().device->info(), 16);
    for (std::size_t i = 0; i < part.size(); ++i) {
      SCOPED_TRACE(part[i].name() + " seed " + std::to_string(seed));
      if (!binaries[i].ok()) {
        ADD_FAILURE() << binaries[i].error().message;
        continue;
      }
      check_case(part[i], **binaries[i], seed, stream);
      ++ran;
      // A fault kills the context: what follows would only repeat it.
      if (const Status alive = machine().device->synchronize(stream); !alive.ok()) {
        ADD_FAILURE() << alive.error().message;
        return ran;
      }
    }
  }
  return ran;
}

}  // namespace sl::test
