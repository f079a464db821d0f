// Test doubles for tuning: a device whose kernels are functions and whose clock is a script, and a compiler to match.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "jit/binary_cache.hpp"
#include "jit/compiler.hpp"
#include "schedules/schedule.hpp"

namespace sl::test {

/// What one variant (knob "v" of the fake schedule) does, from compiling to timing.
struct Behaviour {
  std::string compile_error, load_error, record_error, replay_error;
  /// Runs when the kernel is launched (not when a recording replays); null = the right answer.
  std::function<Status(const SlParams&)> launch;
  /// Duration of one call in the `replay`-th replay of this kernel, in microseconds; null = 10.
  std::function<double(int replay)> us;
};

/// One replay of a recording: which kernel ("v0", or "copy"), how many calls, and the y of each.
struct Replay {
  std::string kernel;
  std::vector<const void*> outputs;
};

/// Memory is counted, limited, and every transfer is checked against it. Thread-safe.
class FakeDevice final : public Device {
 public:
  explicit FakeDevice(const ConvProblem& problem);
  ~FakeDevice() override;

  // The script.
  std::map<int, Behaviour> behaviours;  ///< by variant; unlisted variants are right and take 10 us
  std::size_t memory_limit = 1ULL << 30;
  std::size_t reported_free = 1ULL << 40;
  std::string stream_error;
  double overhead_us = 0;  ///< of a replay, as a graph launch has
  double copy_us = 5;
  /// A clock that only the device's work moves: replays, and launches and transfers at these rates. For
  /// TimingOptions::now, and for a compiler that moves it too.
  double clock_ms = 0, launch_ms = 0, ms_per_mb = 0;
  std::function<std::chrono::steady_clock::time_point()> clock();

  // What happened.
  std::size_t live_bytes = 0, peak_bytes = 0, allocations = 0, failed_allocations = 0;
  int live_buffers = 0, live_streams = 0, live_recordings = 0, live_kernels = 0, launches = 0;
  std::vector<std::string> violations;  ///< transfers and outputs outside live allocations
  std::vector<Replay> replays;
  std::vector<std::string> replay_order() const;

  /// Writes the right result of the problem (n from params) to params.y.
  void compute(const SlParams& params) const;
  std::size_t y_bytes(const SlParams& params) const;

  const DeviceInfo& info() const override { return info_; }
  int ordinal() const override { return 0; }
  Status launch(const Kernel&, const Geometry&, const SlParams&, Stream) noexcept override;
  bool capturing(Stream) noexcept override { return false; }
  Result<std::shared_ptr<const Kernel>> load(const Binary&, int) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t) override;
  Result<MemoryUse> memory() override { return MemoryUse{reported_free, reported_free}; }
  Result<Stream> create_stream() override;
  void destroy_stream(Stream) noexcept override;
  Status synchronize(Stream) override { return {}; }
  Status copy_in(void*, const void*, std::size_t, Stream) override;
  Status copy_out(void*, const void*, std::size_t, Stream) override;
  Status copy(void*, const void*, std::size_t, Stream) override;
  Status fill(void*, unsigned char, std::size_t, Stream) override;
  Result<std::unique_ptr<Recording>> record(Stream, const std::function<Status(Stream)>&) override;
  std::string driver() const override { return "fake driver 1"; }

  DeviceInfo info_;

 private:
  friend class FakeBuffer;
  friend class FakeKernel;
  friend class FakeRecording;
  void transferred(std::size_t bytes) { clock_ms += ms_per_mb * static_cast<double>(bytes) * 1e-6; }
  void check_range(const char* what, const void*, std::size_t);  // with mutex_ held
  Behaviour behaviour(int variant) const;

  ConvProblem problem_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::size_t> allocated_;
  std::map<Stream, Replay*> recording_;
  std::map<std::string, int> replay_count_;
  std::uintptr_t next_stream_ = 1;
};

class FakeCompiler final : public Compiler {
 public:
  explicit FakeCompiler(const FakeDevice& device) : device_(device) {}
  CompilerIdentity identity() const override { return {true, "fake compiler", "/fake", ""}; }
  Result<std::string> arch_for(const DeviceInfo&) override { return std::string("fake_1"); }
  void compile(std::span<const KernelSpec>, const std::string&, int, const Done&) override;
  Result<std::string> version() override { return std::string("fake 1"); }

  std::function<void()> on_compile;              ///< runs once a batch, to take time
  std::function<void(std::size_t)> before_each;  ///< runs before each kernel of a batch is there
  std::mutex mutex;
  std::vector<std::size_t> batches;  ///< sizes

 private:
  const FakeDevice& device_;
};

/// The schedule all fake candidates belong to.
const Schedule& fake_schedule();
CandidateSet fake_candidates(int count);

/// A device, a compiler and a cache without a store around it.
struct FakeRig {
  explicit FakeRig(const ConvProblem& problem = small_problem());
  static ConvProblem small_problem();

  ConvProblem problem;
  FakeDevice device;
  Log log;
  std::shared_ptr<FakeCompiler> compiler;
  std::unique_ptr<BinaryCache> cache;
};

/// Random noise that is the same everywhere: a factor around 1, about normal, with standard deviation `sigma`.
double jitter(std::uint64_t seed, int step, double sigma);

}  // namespace sl::test
