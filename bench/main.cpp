// sluice_bench: Google Benchmark over the dispatch path and the kernels. `--help` lists its own flags; Google
// Benchmark's (--benchmark_filter, --benchmark_out, ...) work as ever.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "bench/benchmarks.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/suite.hpp"

namespace sl::bench {
namespace {

struct Arguments {
  std::string device;
  std::vector<std::string> suites;
  std::vector<std::int64_t> batches = {1};
  std::vector<std::string> dtypes = {"f16"}, layouts = {"nhwc"};
  int rounds = 15;
  bool list = false;
};

Result<std::vector<ConvProblem>> load(const Arguments& arguments) {
  tool::SuiteDefaults defaults;
  defaults.batches = arguments.batches;
  defaults.dtypes.clear();
  for (const auto& text : arguments.dtypes) defaults.dtypes.push_back(*parse_dtype(text));
  defaults.layouts.clear();
  for (const auto& text : arguments.layouts) defaults.layouts.push_back(*parse_layout(text));
  std::vector<ConvProblem> all;
  for (const auto& path : arguments.suites) {
    SL_ASSIGN(const auto problems, tool::load_suite(path, defaults));
    all.insert(all.end(), problems.begin(), problems.end());
  }
  return all;
}

Status run(const Arguments& arguments, const std::vector<ConvProblem>& problems) {
  const Log log(tool::stderr_sink(false), LogLevel::warning);
  SL_ASSIGN(const auto environment, read_environment());
  tool::SessionOptions options;
  options.device = arguments.device;
  options.force = true;
  SL_ASSIGN(const auto session, tool::open_session(environment, options, log));
  SL_ASSIGN(const auto subject, Subject::create(*session, log));
  benchmark::AddCustomContext("device", session->device->info().name);
  benchmark::AddCustomContext("driver", session->device->driver());
  benchmark::AddCustomContext("compiler", session->compiler->identity().path);
  Bench bench{log, *session, *subject, arguments.rounds};
  register_launches(bench);
  register_slow_paths(bench);
  register_kernels(bench, problems);
  benchmark::RunSpecifiedBenchmarks();
  return {};
}

int start(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Benchmarks of Sluice's dispatch path and kernels"};
  app.footer("Every other flag is Google Benchmark's: --benchmark_filter=kernel/, --benchmark_out=FILE, ...");
  app.add_option("--device", arguments.device, "cuda, cuda:N or host");
  app.add_option("--suite", arguments.suites, "Suites of calls, configs/suites/*.json")->check(CLI::ExistingFile);
  app.add_option("--batch", arguments.batches, "Batch sizes, where a suite does not say")->delimiter(',');
  app.add_option("--dt", arguments.dtypes, "Data types, where a suite does not say")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  app.add_option("--tag", arguments.layouts, "Layouts, where a suite does not say")
      ->delimiter(',')
      ->check(CLI::IsMember({"nchw", "nhwc"}));
  app.add_option("--rounds", arguments.rounds, "Timed replays of a kernel")->check(CLI::Range(1, 10000));
  app.add_flag("--list", arguments.list, "Print the suites' calls and stop");
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);

  const auto problems = load(arguments);
  if (!problems.ok()) return tool::fail(problems.error());
  if (arguments.list) {
    for (const auto& problem : problems.value()) std::printf("%s\n", problem.to_string().c_str());
    return tool::exit_done;
  }
  if (arguments.device.empty()) return tool::fail({Code::invalid, "--device is required: cuda, cuda:N or host"});
  auto rest = app.remaining();
  std::vector<char*> left = {argv[0]};
  for (auto& argument : rest) left.push_back(argument.data());
  int count = static_cast<int>(left.size());
  benchmark::Initialize(&count, left.data());
  if (benchmark::ReportUnrecognizedArguments(count, left.data())) return tool::exit_usage;
  const auto status = run(arguments, problems.value());
  return status.ok() ? tool::exit_done : tool::fail(status.error());
}

}  // namespace
}  // namespace sl::bench

int main(int argc, char** argv) {
  try {
    return sl::bench::start(argc, argv);
  } catch (const std::exception& error) {
    sl::tool::complain(error.what());
    return sl::tool::exit_environment;
  }
}
