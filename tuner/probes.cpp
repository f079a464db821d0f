#include "tuner/probes.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "jit/binary_cache.hpp"
#include "tuning/timing.hpp"

namespace sl::tool {
namespace {

constexpr int threads = 256;

Result<std::shared_ptr<const Kernel>> load_probe(Session& session, const std::string& name,
                                                 std::vector<std::pair<std::string, std::int64_t>> constants) {
  KernelSpec spec;
  spec.schedule = "probe_" + name;
  spec.source = "probe/peaks.cuh";
  spec.constants = std::move(constants);
  spec.threads = threads;
  const auto binary = session.probes->get({&spec, 1}, session.device->info(), 1)[0];
  if (!binary.ok()) return Error(binary.error());
  return session.device->load(**binary, 0);
}

/// Work of one launch: macs = multiply-adds a thread and round.
struct Probe {
  const char* name;
  std::vector<std::pair<std::string, std::int64_t>> constants;
  double macs;
};

Result<double> macs_per_second(Session& session, Stream stream, const Probe& probe) {
  Device& device = *session.device;
  const bool host = device.info().backend == "host";
  const std::int64_t blocks = host ? 1 : 8 * static_cast<std::int64_t>(std::max(1, device.info().sm_count));
  const long long rounds = host ? 1 : 256;
  SL_ASSIGN(const auto kernel, load_probe(session, probe.name, probe.constants));
  SL_ASSIGN(const auto out, device.allocate(static_cast<std::size_t>(blocks) * threads * sizeof(float)));
  SlParams params{};
  params.y = out->data();
  params.aux[0] = rounds;
  const Workload work = [&](int, Stream on) {
    return device.launch(*kernel, {.grid = blocks, .block = threads, .dynamic_smem = 0}, params, on);
  };
  TimingOptions timing;
  timing.rounds = 9;
  const Samples samples = time_interleaved(device, stream, {work}, 1, timing)[0];
  if (!samples.error.empty()) return Error{Code::device, std::string(probe.name) + " probe: " + samples.error};
  return probe.macs * static_cast<double>(rounds) * static_cast<double>(blocks) * threads /
         (samples.percentile(0.0) * 1e-6);
}

}  // namespace

Result<CopyKernel> CopyKernel::load(Session& session) {
  CopyKernel copier;
  SL_ASSIGN(copier.kernel_, load_probe(session, "copy", {}));
  return copier;
}

Status CopyKernel::launch(Device& device, const Workspace::CopySpan& span, Stream stream) const {
  const auto low_bits = reinterpret_cast<std::uintptr_t>(span.to) | reinterpret_cast<std::uintptr_t>(span.from);
  if (low_bits % 16 != 0 || span.bytes < 16) return Error{Code::invalid, "not whole 16-byte words"};
  SlParams params{};
  params.x = span.from;
  params.y = span.to;
  params.work = static_cast<long long>(span.bytes / 16);  // the last few bytes do not show
  return device.launch(*kernel_, {.grid = (params.work + threads - 1) / threads, .block = threads, .dynamic_smem = 0},
                       params, stream);
}

Result<Peaks> measure_peaks(Session& session) {
  SL_ASSIGN(const Stream stream, session.device->create_stream());
  const StreamOwner owner{*session.device, stream};
  Peaks peaks;
  SL_ASSIGN(peaks.fma, macs_per_second(session, stream, {"fma", {}, 16.0 * 16}));
  if (session.device->info().capability >= 80) {
    // 16 x 8 x 16 multiply-adds by 32 lanes = 64 a lane.
    const Probe mma{"mma", {{"DTYPE", static_cast<std::int64_t>(DType::f16)}}, 8.0 * 4 * 64};
    SL_ASSIGN(peaks.mma, macs_per_second(session, stream, mma));
  }
  return peaks;
}

}  // namespace sl::tool
