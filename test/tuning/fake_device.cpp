#include "tuning/fake_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "reference/reference.hpp"
#include "store/file_store.hpp"

namespace sl::test {

class FakeBuffer final : public Buffer {
 public:
  FakeBuffer(FakeDevice& device, std::size_t bytes) : device_(device), bytes_(bytes), memory_(new std::byte[bytes]) {
    device_.allocated_[memory_.get()] = bytes;
    device_.live_bytes += bytes;
    device_.peak_bytes = std::max(device_.peak_bytes, device_.live_bytes);
    ++device_.live_buffers;
    ++device_.allocations;
  }
  ~FakeBuffer() override {
    const std::lock_guard lock(device_.mutex_);
    device_.allocated_.erase(memory_.get());
    device_.live_bytes -= bytes_;
    --device_.live_buffers;
  }
  void* data() const override { return memory_.get(); }
  std::size_t size() const override { return bytes_; }

 private:
  FakeDevice& device_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
};

class FakeKernel final : public Kernel {
 public:
  FakeKernel(FakeDevice& device, int v) : variant(v), device_(device) { ++device_.live_kernels; }
  ~FakeKernel() override {
    const std::lock_guard lock(device_.mutex_);
    --device_.live_kernels;
  }
  const int variant;

 private:
  FakeDevice& device_;
};

class FakeRecording final : public Recording {
 public:
  FakeRecording(FakeDevice& device, Replay work) : device_(device), work_(std::move(work)) {
    ++device_.live_recordings;
  }
  ~FakeRecording() override {
    const std::lock_guard lock(device_.mutex_);
    --device_.live_recordings;
  }
  Result<double> replay() override {
    const std::lock_guard lock(device_.mutex_);
    const int count = device_.replay_count_[work_.kernel]++;
    device_.replays.push_back(work_);
    double us = device_.copy_us;
    if (work_.kernel != "copy") {
      const Behaviour behaviour = device_.behaviour(std::atoi(work_.kernel.c_str() + 1));
      if (!behaviour.replay_error.empty()) return Error{Code::device, behaviour.replay_error};
      us = behaviour.us ? behaviour.us(count) : 10;
    }
    const double total = device_.overhead_us + us * static_cast<double>(work_.outputs.size());
    device_.clock_ms += total * 1e-3;
    return total;
  }

 private:
  FakeDevice& device_;
  Replay work_;
};

FakeDevice::FakeDevice(const ConvProblem& problem) : problem_(problem) {
  info_.name = "Fake device";
  info_.backend = "host";
  info_.capability = 90;
  info_.sm_count = 1;
  info_.l2_bytes = 64 * 1024;
}

FakeDevice::~FakeDevice() = default;

std::function<std::chrono::steady_clock::time_point()> FakeDevice::clock() {
  return [this] {
    using std::chrono::steady_clock;
    const std::chrono::duration<double, std::milli> since(clock_ms);
    return steady_clock::time_point(std::chrono::duration_cast<steady_clock::duration>(since));
  };
}

std::vector<std::string> FakeDevice::replay_order() const {
  std::vector<std::string> names;
  for (const Replay& replay : replays) names.push_back(replay.kernel);
  return names;
}

std::size_t FakeDevice::y_bytes(const SlParams& params) const {
  ConvProblem problem = problem_;
  problem.n = params.n;
  return static_cast<std::size_t>(problem.y_elements()) * size_of(problem.dtype);
}

void FakeDevice::compute(const SlParams& params) const {
  ConvProblem problem = problem_;
  problem.n = params.n;
  const auto span = [](const void* data, std::int64_t elements, DType dtype) {
    return std::span(static_cast<const std::byte*>(data),
                     data == nullptr ? 0 : static_cast<std::size_t>(elements) * size_of(dtype));
  };
  const HostTensors tensors{span(params.x, problem.x_elements(), problem.dtype),
                            span(params.weight, problem.w_elements(), problem.dtype),
                            span(params.bias, problem.k, problem.bias == Bias::f32 ? DType::f32 : problem.dtype),
                            span(params.z, problem.y_elements(), problem.dtype)};
  const std::vector<std::byte> y = reference_output(problem, tensors);
  std::memcpy(params.y, y.data(), y.size());
}

Behaviour FakeDevice::behaviour(int variant) const {
  const auto found = behaviours.find(variant);
  return found == behaviours.end() ? Behaviour{} : found->second;
}

void FakeDevice::check_range(const char* what, const void* from, std::size_t bytes) {
  const auto* const first = static_cast<const std::byte*>(from);
  auto after = allocated_.upper_bound(first);
  if (after != allocated_.begin()) {
    const auto& [base, size] = *--after;
    if (first + bytes <= base + size) return;
  }
  violations.push_back(std::string(what) + " of " + std::to_string(bytes) + " bytes outside the allocations");
}

Status FakeDevice::launch(const Kernel& kernel, const Geometry& geometry, const SlParams& params,
                          Stream stream) noexcept {
  const int variant = static_cast<const FakeKernel&>(kernel).variant;
  Behaviour behaviour;
  {
    const std::lock_guard lock(mutex_);
    check_range("y", params.y, y_bytes(params));
    if (geometry.grid <= 0) violations.emplace_back("empty grid");
    behaviour = this->behaviour(variant);
    if (const auto found = recording_.find(stream); found != recording_.end()) {
      if (!behaviour.record_error.empty()) return Error{Code::out_of_memory, behaviour.record_error};
      found->second->kernel = "v" + std::to_string(variant);
      found->second->outputs.push_back(params.y);
      return {};
    }
    ++launches;
    clock_ms += launch_ms;
  }
  if (behaviour.launch) return behaviour.launch(params);
  compute(params);
  return {};
}

Result<std::shared_ptr<const Kernel>> FakeDevice::load(const Binary& binary, int) {
  const std::lock_guard lock(mutex_);
  const int variant = std::atoi(binary.code.c_str());
  if (const Behaviour b = behaviour(variant); !b.load_error.empty()) return Error{Code::device, b.load_error};
  return std::shared_ptr<const Kernel>(std::make_shared<FakeKernel>(*this, variant));
}

Result<std::unique_ptr<Buffer>> FakeDevice::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (live_bytes + bytes > memory_limit) {
    ++failed_allocations;
    return Error{Code::out_of_memory, "fake device has no " + std::to_string(bytes) + " bytes"};
  }
  return std::unique_ptr<Buffer>(std::make_unique<FakeBuffer>(*this, bytes));
}

Result<Stream> FakeDevice::create_stream() {
  const std::lock_guard lock(mutex_);
  if (!stream_error.empty()) return Error{Code::device, stream_error};
  ++live_streams;
  return reinterpret_cast<Stream>(next_stream_++);  // NOLINT: an opaque handle
}

void FakeDevice::destroy_stream(Stream) noexcept {
  const std::lock_guard lock(mutex_);
  --live_streams;
}

Status FakeDevice::copy_in(void* device, const void* host, std::size_t bytes, Stream) {
  const std::lock_guard lock(mutex_);
  check_range("copy_in", device, bytes);
  transferred(bytes);
  std::memcpy(device, host, bytes);
  return {};
}

Status FakeDevice::copy_out(void* host, const void* device, std::size_t bytes, Stream) {
  const std::lock_guard lock(mutex_);
  check_range("copy_out", device, bytes);
  transferred(bytes);
  std::memcpy(host, device, bytes);
  return {};
}

Status FakeDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  check_range("copy to", to, bytes);
  check_range("copy from", from, bytes);
  if (const auto found = recording_.find(stream); found != recording_.end()) {
    found->second->kernel = "copy";
    found->second->outputs.push_back(to);
    return {};
  }
  std::memcpy(to, from, bytes);  // overlap would be a fault, which AddressSanitizer reports
  return {};
}

Status FakeDevice::fill(void* device, unsigned char byte, std::size_t bytes, Stream) {
  const std::lock_guard lock(mutex_);
  check_range("fill", device, bytes);
  std::memset(device, byte, bytes);
  return {};
}

Result<std::unique_ptr<Recording>> FakeDevice::record(Stream stream, const std::function<Status(Stream)>& body) {
  Replay work;
  {
    const std::lock_guard lock(mutex_);
    recording_[stream] = &work;
  }
  const Status status = body(stream);
  const std::lock_guard lock(mutex_);
  recording_.erase(stream);
  if (!status.ok()) return status.error();
  return std::unique_ptr<Recording>(std::make_unique<FakeRecording>(*this, std::move(work)));
}

void FakeCompiler::compile(std::span<const KernelSpec> specs, const std::string& arch, int, const Done& done) {
  if (on_compile) on_compile();
  const std::lock_guard lock(mutex);
  batches.push_back(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (before_each) before_each(i);
    const KernelSpec& spec = specs[i];
    const auto variant = static_cast<int>(spec.constants.front().second);
    const auto found = device_.behaviours.find(variant);
    if (found != device_.behaviours.end() && !found->second.compile_error.empty()) {
      done(i, Error{Code::compile, found->second.compile_error});
      continue;
    }
    Binary binary;
    binary.code = std::to_string(variant);
    binary.entry = spec.entry();
    binary.arch = arch;
    binary.compiler = "fake 1";
    binary.registers = 32 + variant;
    binary.static_smem = 16;
    done(i, std::move(binary));
  }
}

const Schedule& fake_schedule() {
  static const Schedule schedule = [] {  // member by member: a new member of Schedule concerns no test here
    Schedule made{};
    made.name = "fake";
    made.source = "common/params.h";
    made.can_run = [](const ConvProblem&, const DeviceInfo&) -> Refusal { return std::nullopt; };
    made.configs = [](const ConvProblem&, const DeviceInfo&) { return std::vector<Config>{{{{"v", 0}}}}; };
    made.kernel = [](const ConvProblem&, const Config& config) {
      KernelSpec spec;
      spec.schedule = "fake";
      spec.source = "common/params.h";
      spec.constants = {{"V", config.get("v")}};
      return spec;
    };
    made.geometry = [](const ConvProblem& problem, const Config&) { return Geometry{problem.y_elements(), 1, 64}; };
    made.params = [](const ConvProblem& problem, const Config&, SlParams& params) { params.n = problem.n; };
    return made;
  }();
  return schedule;
}

CandidateSet fake_candidates(int count) {
  CandidateSet set;
  for (int v = 0; v < count; ++v) set.candidates.push_back({&fake_schedule(), Config{{{"v", v}}}});
  set.refusals.push_back({"other", "r = 3, want 5"});
  return set;
}

ConvProblem FakeRig::small_problem() {
  ConvProblem problem;
  problem.n = 2;
  problem.c = problem.k = problem.groups = 4;
  problem.h = 9, problem.w = 7;
  problem.r = problem.s = 3;
  problem.pad_top = problem.pad_left = 1;
  problem.p = 9, problem.q = 7;
  problem.dtype = DType::f16;
  return problem;
}

FakeRig::FakeRig(const ConvProblem& p) : problem(p), device(p), compiler(std::make_shared<FakeCompiler>(device)) {
  cache = std::make_unique<BinaryCache>(compiler, std::make_shared<FileStore>(StoreOptions{}, log), log);
}

double jitter(std::uint64_t seed, int step, double sigma) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(step) * 0xd1342543de82ef95ULL;
  double sum = 0;  // of twelve uniform values: mean 6, variance 1
  for (int i = 0; i < 12; ++i) {
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    sum += static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  return 1 + sigma * (sum - 6);
}

}  // namespace sl::test
