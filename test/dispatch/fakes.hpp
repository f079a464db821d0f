// Test doubles for dispatch: a device that counts what is asked of it, a compiler that makes nothing, a tuner by
// script.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/dispatcher.hpp"
#include "store/file_store.hpp"

namespace sl::test {

struct FakeKernel final : Kernel {
  explicit FakeKernel(std::string name) : entry(std::move(name)) {}
  std::string entry;
};

/// Launches are counted and the last is kept; nothing is computed. Anything but a launch or a capture query while
/// `capture` is set is a violation.
class CountingDevice final : public Device {
 public:
  CountingDevice();
  std::atomic<bool> capture{false};
  std::atomic<int> loads{0}, violations{0};
  std::atomic<std::uint64_t> launched{0};
  std::atomic<const Kernel*> last_kernel{nullptr};
  std::atomic<void*> last_y{nullptr};
  std::atomic<long long> last_n{0};
  std::string load_error, launch_error;  ///< set before use

  const DeviceInfo& info() const override { return info_; }
  int ordinal() const override { return 0; }
  std::string driver() const override { return driver_; }
  Status launch(const Kernel&, const Geometry&, const SlParams&, Stream) noexcept override;
  bool capturing(Stream) noexcept override { return capture; }
  Result<std::shared_ptr<const Kernel>> load(const Binary&, int) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t) override;
  Result<MemoryUse> memory() override { return MemoryUse{1, 1}; }
  Result<Stream> create_stream() override;
  void destroy_stream(Stream) noexcept override {}
  Status synchronize(Stream) override { return forbidden(); }
  Status copy_in(void*, const void*, std::size_t, Stream) override { return forbidden(); }
  Status copy_out(void*, const void*, std::size_t, Stream) override { return forbidden(); }
  Status copy(void*, const void*, std::size_t, Stream) override { return forbidden(); }
  Status fill(void*, unsigned char, std::size_t, Stream) override { return forbidden(); }
  Result<std::unique_ptr<Recording>> record(Stream, const std::function<Status(Stream)>&) override;

  DeviceInfo info_;
  std::string driver_ = "fake driver 1";

 private:
  Status forbidden();
};

class EmptyCompiler final : public Compiler {
 public:
  std::string error;                           ///< what every compile fails with; empty = none fails
  std::atomic<int> remaining_errors{1 << 30};  ///< compiles that still fail with it
  std::atomic<int> compiled{0};
  std::function<void()> before;  ///< runs inside each compile

  CompilerIdentity identity() const override { return {true, "empty compiler", "/fake", ""}; }
  Result<std::string> arch_for(const DeviceInfo&) override { return std::string("sm_90"); }
  void compile(std::span<const KernelSpec>, const std::string&, int, const Done&) override;
  Result<std::string> version() override { return std::string("empty 1"); }
};

/// Tunes by taking a candidate: by default the last one, which the heuristic would not.
struct ScriptedTuner {
  std::atomic<int> calls{0};
  std::function<void()> before;  ///< runs inside each tuning
  bool compiles = false;         ///< all it is given, as the real one does
  std::function<TuneResult(const CandidateSet&)> answer;
  TuneFunction function();
  /// What wins where `answer` is not set: a candidate that neither a heuristic nor the base is, of any batch.
  static std::size_t usual(const CandidateSet&);
  static TuneResult take(const CandidateSet&, std::size_t index);
  static TuneResult fail(const CandidateSet&, const std::string& outcome);
};

/// Everything around one dispatcher. `make()` may be called again, for a second dispatcher over the same stores.
struct Rig {
  explicit Rig(std::filesystem::path stores = {});
  Dispatcher& make();
  Dispatcher& operator*() { return *dispatcher; }
  Dispatcher* operator->() { return dispatcher.get(); }
  std::vector<std::string> warnings();

  std::mutex mutex;
  std::vector<std::string> logged;  // with mutex
  Log log;
  std::shared_ptr<CountingDevice> device = std::make_shared<CountingDevice>();
  std::shared_ptr<EmptyCompiler> compiler = std::make_shared<EmptyCompiler>();
  std::shared_ptr<const RoutingTable> routing;
  std::shared_ptr<const DecisionTable> table;
  Environment environment;
  DispatcherOptions options;
  ScriptedTuner tuner;
  std::filesystem::path stores;
  std::shared_ptr<BinaryCache> binaries;
  std::unique_ptr<Dispatcher> dispatcher;
};

/// A depthwise 3x3 call that every schedule's table has.
ConvProblem depthwise(std::int64_t n = 1);
/// Tensors that are never read.
Tensors any_tensors();
/// A routing table that keeps everything.
std::shared_ptr<const RoutingTable> keep_everything();

}  // namespace sl::test
