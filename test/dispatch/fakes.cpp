#include "dispatch/fakes.hpp"

#include <gtest/gtest.h>

namespace sl::test {

CountingDevice::CountingDevice() {
  info_.name = "fake H200";
  info_.capability = 90;
  info_.sm_count = 132;
  info_.l2_bytes = 60 << 20;
  info_.smem_optin = 232448;
  info_.smem_per_sm = 233472;
  info_.memory_bytes = 1LL << 37;
}

Status CountingDevice::forbidden() {
  if (capture) ++violations;
  return {};
}

Status CountingDevice::launch(const Kernel& kernel, const Geometry&, const SlParams& params, Stream) noexcept {
  if (!launch_error.empty()) return Error{Code::device, launch_error};
  launched.fetch_add(1, std::memory_order_relaxed);
  last_kernel.store(&kernel, std::memory_order_relaxed);
  last_y.store(params.y, std::memory_order_relaxed);
  last_n.store(params.n, std::memory_order_relaxed);
  return {};
}

Result<std::shared_ptr<const Kernel>> CountingDevice::load(const Binary& binary, int) {
  if (capture) ++violations;
  if (!load_error.empty()) return Error{Code::device, load_error};
  ++loads;
  return std::shared_ptr<const Kernel>(std::make_shared<FakeKernel>(binary.entry));
}

Result<std::unique_ptr<Buffer>> CountingDevice::allocate(std::size_t) {
  if (capture) ++violations;
  return Error{Code::out_of_memory, "a counting device has no memory"};
}

Result<Stream> CountingDevice::create_stream() {
  if (capture) ++violations;
  return Stream{this};
}

Result<std::unique_ptr<Recording>> CountingDevice::record(Stream, const std::function<Status(Stream)>&) {
  if (capture) ++violations;
  return Error{Code::device, "a counting device records nothing"};
}

void EmptyCompiler::compile(std::span<const KernelSpec> specs, const std::string& arch, int, const Done& done) {
  if (before) before();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const KernelSpec& spec = specs[i];
    if (!error.empty() && remaining_errors.fetch_sub(1) > 0) {
      done(i, Error{Code::compile, error});
      continue;
    }
    ++compiled;
    Binary binary;
    binary.code = "code of " + spec.canonical();
    binary.entry = spec.entry();
    binary.arch = arch;
    binary.compiler = "empty 1";
    done(i, std::move(binary));
  }
}

TuneResult ScriptedTuner::take(const CandidateSet& set, std::size_t index) {
  TuneResult result = fail(set, "timed");
  result.decision.reason.clear();
  result.winner = static_cast<int>(index);
  result.decision.schedule = set.candidates[index].schedule->name;
  result.decision.config = set.candidates[index].config.to_string();
  result.decision.origin = Origin::tuned;
  return result;
}

TuneResult ScriptedTuner::fail(const CandidateSet& set, const std::string& outcome) {
  TuneResult result;
  result.decision.reason = "scripted failure";
  for (const Candidate& candidate : set.candidates) {
    CandidateRecord& row = result.decision.candidates.emplace_back();
    row.schedule = candidate.schedule->name;
    row.config = candidate.config.to_string();
    row.outcome = outcome;
  }
  return result;
}

std::size_t ScriptedTuner::usual(const CandidateSet& set) {
  return std::min<std::size_t>(1, set.candidates.size() - 1);
}

TuneFunction ScriptedTuner::function() {
  return [this](Device& device, BinaryCache& binaries, const ConvProblem& problem, const CandidateSet& set,
                const TuneOptions&, const Log&) {
    ++calls;
    if (before) before();
    if (compiles) {
      std::vector<KernelSpec> specs;
      for (const Candidate& one : set.candidates) specs.push_back(one.schedule->kernel(problem, one.config));
      binaries.get(specs, device.info(), 1);
    }
    return answer ? answer(set) : take(set, usual(set));
  };
}

Rig::Rig(std::filesystem::path root)
    : log(
          [this](LogLevel level, std::string_view message) {
            const std::lock_guard lock(mutex);
            if (level >= LogLevel::warning) logged.emplace_back(message);
          },
          LogLevel::debug),
      routing(std::make_shared<RoutingTable>(RoutingTable::take_everything("test"))),
      stores(std::move(root)) {
  options.tuner = tuner.function();
}

Dispatcher& Rig::make() {
  const auto store = [&](const char* folder, std::uint32_t kind) {
    StoreOptions store_options;
    if (!stores.empty()) store_options.directory = stores / folder;
    store_options.kind = kind;
    return std::make_shared<FileStore>(std::move(store_options), log);
  };
  dispatcher.reset();
  binaries = std::make_shared<BinaryCache>(compiler, store("binaries", 1), log);
  dispatcher = std::make_unique<Dispatcher>(device, binaries, std::make_shared<DecisionStore>(store("decisions", 2)),
                                            routing, table, environment, options, log);
  return *dispatcher;
}

std::vector<std::string> Rig::warnings() {
  const std::lock_guard lock(mutex);
  return logged;
}

ConvProblem depthwise(std::int64_t n) {
  ConvProblem problem;
  problem.n = n;
  problem.c = problem.k = problem.groups = 32;
  problem.h = problem.p = 14;
  problem.w = problem.q = 12;
  problem.r = problem.s = 3;
  problem.pad_top = problem.pad_left = 1;
  problem.dtype = DType::f16;
  problem.layout = Layout::nhwc;
  return problem;
}

Tensors any_tensors() {
  static char memory[4] = {};
  return {&memory[0], &memory[1], nullptr, nullptr, &memory[2]};
}

std::shared_ptr<const RoutingTable> keep_everything() {
  // A table whose one rule never holds: the default of every table is keep.
  auto table = RoutingTable::from_json(R"({"schema": 1, "device": "any", "rules": []})", "test:keep");
  if (!table.ok()) throw std::runtime_error(table.error().message);
  return std::make_shared<const RoutingTable>(*std::move(table));
}

}  // namespace sl::test
