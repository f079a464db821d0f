#include "jit/host_kernels.hpp"

#include <gtest/gtest.h>

#include <map>

#include "jit/backends.hpp"

namespace sl::test {
namespace {

std::map<std::string, Binary>& compiled() {
  static std::map<std::string, Binary> binaries;
  return binaries;
}

}  // namespace

KernelSpec testing_kernel(const std::string& name, const std::string& file,
                          std::vector<std::pair<std::string, std::int64_t>> constants, int threads) {
  KernelSpec spec;
  spec.schedule = "testing_" + name;
  spec.source = "testing/" + file + ".cuh";
  spec.constants = std::move(constants);
  spec.threads = threads;
  return spec;
}

void prefetch(const std::vector<KernelSpec>& specs) {
  std::vector<KernelSpec> missing;
  for (const KernelSpec& spec : specs)
    if (!compiled().contains(spec.canonical())) missing.push_back(spec);
  if (missing.empty()) return;
  const Result<Environment> environment = read_environment();
  ASSERT_TRUE(environment.ok());
  const Log silent;
  const std::unique_ptr<Compiler> compiler = make_host_compiler(*environment, silent);
  std::vector<Result<Binary>> results = compiler->compile(missing, "host", 0);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    EXPECT_TRUE(results[i].ok()) << results[i].error().message;
    if (results[i].ok()) compiled()[missing[i].canonical()] = *results[i];
  }
}

Binary host_binary(const KernelSpec& spec) {
  prefetch({spec});
  return compiled()[spec.canonical()];
}

RunOutcome run_on_host(const KernelSpec& spec, const void* x, std::size_t x_bytes, std::size_t y_bytes,
                       RunOptions options) {
  RunOutcome outcome;
  const auto run = [&]() -> Status {
    const std::shared_ptr<Device> device = open_host_device({.threads = options.threads, .seed = options.seed});
    SL_ASSIGN(const auto kernel, device->load(host_binary(spec), options.dynamic_smem));
    SL_ASSIGN(const auto in, device->allocate(x_bytes));
    SL_ASSIGN(const auto out, device->allocate(y_bytes));
    SL_TRY(device->copy_in(in->data(), x, x_bytes, nullptr));
    SL_TRY(device->fill(out->data(), 0, y_bytes, nullptr));
    SlParams params{};
    params.x = in->data();
    params.y = out->data();
    params.work = options.work;
    params.aux[0] = options.aux0;
    const int block = options.block != 0 ? options.block : spec.threads;
    const Status launched = device->launch(*kernel, {options.grid, block, options.dynamic_smem}, params, nullptr);
    outcome.y.resize(y_bytes);
    SL_TRY(device->copy_out(outcome.y.data(), out->data(), y_bytes, nullptr));
    return launched;
  };
  outcome.status = run();
  return outcome;
}

}  // namespace sl::test
