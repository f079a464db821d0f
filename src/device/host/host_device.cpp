#include "device/host/host_device.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include "device/host/redzone.hpp"
#include "jit/backends.hpp"

namespace sl {
namespace {

constexpr int default_smem = 48 * 1024;  // dynamic shared memory beyond it must be asked for when the kernel is loaded
constexpr int max_block = 1024;

// Two mappings a fiber stack, 1024 fibers a runner, 65530 mappings a process: more runners could run out of them.
constexpr int max_default_threads = 16;

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

/// An H200's block limits on this machine's memory. The L2 size is small on purpose: buffers are rotated until they
/// leave it, and times on this device say nothing about a GPU.
DeviceInfo describe(int capability) {
  DeviceInfo info;
  info.name = "host";
  info.backend = "host";
  info.capability = capability;
  info.sm_count = cores();
  info.l2_bytes = 1 << 20;
  info.smem_optin = 232448;
  info.smem_per_sm = 233472;
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0) {
    info.memory_bytes = static_cast<std::int64_t>(memory.totalram) * static_cast<std::int64_t>(memory.mem_unit);
  }
  return info;
}

class HostBuffer final : public Buffer {
 public:
  HostBuffer(RedzonedBlock block, std::shared_ptr<const LogSink> sink)
      : block_(std::move(block)), sink_(std::move(sink)) {}
  ~HostBuffer() override {
    const auto offset = block_.broken();
    if (!offset || !*sink_) return;
    try {
      (*sink_)(LogLevel::error, "host device: a buffer of " + std::to_string(block_.size()) + " bytes was " +
                                    describe_break(*offset, block_.size()));
    } catch (...) {  // NOLINT a sink is foreign code
    }
  }
  void* data() const override { return block_.data(); }
  std::size_t size() const override { return block_.size(); }

 private:
  RedzonedBlock block_;
  std::shared_ptr<const LogSink> sink_;
};

Error not_a_stream() { return Error{Code::invalid, "the stream is none of the host device's"}; }

Error out_of_memory(std::size_t bytes) {
  return Error{Code::out_of_memory, "host device: no memory for " + std::to_string(bytes) + " bytes"};
}

Status check_pointers(const void* a, const void* b, std::size_t bytes, const char* what) {
  if (bytes != 0 && (a == nullptr || b == nullptr)) {
    return Error{Code::invalid, std::string(what) + " of " + std::to_string(bytes) + " bytes with a null pointer"};
  }
  return {};
}

}  // namespace

/// The blocks of one launch, taken in order by whoever has time.
class HostDevice::LaunchJob final : public PoolJob {
 public:
  LaunchJob(HostDevice& device, const HostLaunch& launch) : device_(device), launch_(launch) {}

  void participate() noexcept override {
    try {
      std::unique_ptr<BlockRunner> runner = device_.take_runner();
      while (!failed_.load(std::memory_order_relaxed)) {
        const std::int64_t block = next_.fetch_add(1, std::memory_order_relaxed);
        if (block >= launch_.geometry.grid) break;
        if (Status status = runner->run(launch_, block); !status) fail(block, std::move(status).error());
      }
      device_.give_back(std::move(runner));
    } catch (const std::exception& e) {
      fail(0, Error{Code::out_of_memory, "kernel " + *launch_.kernel_name + " on the host device: " + e.what()});
    }
  }
  Status take_status() { return std::move(status_); }

 private:
  /// Blocks are handed out in order and each handed out runs to its end, so the lowest failing block, whose error is
  /// kept, is the same every time.
  void fail(std::int64_t block, Error error) {
    const std::lock_guard lock(mutex_);
    if (status_.ok() || block < failed_block_) {
      status_ = std::move(error);
      failed_block_ = block;
    }
    failed_.store(true, std::memory_order_relaxed);
  }

  HostDevice& device_;
  const HostLaunch& launch_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  Status status_;
  std::int64_t failed_block_ = 0;
};

HostDevice::HostDevice(int capability, int threads, std::uint64_t seed, LogSink sink)
    : info_(describe(capability)),
      seed_(seed),
      sink_(std::make_shared<const LogSink>(std::move(sink))),
      pool_(threads > 0 ? threads : std::min(cores(), max_default_threads)) {}

HostDevice::~HostDevice() = default;

std::unique_ptr<BlockRunner> HostDevice::take_runner() {
  {
    const std::lock_guard lock(runners_mutex_);
    if (!runners_.empty()) {
      std::unique_ptr<BlockRunner> runner = std::move(runners_.back());
      runners_.pop_back();
      return runner;
    }
  }
  return std::make_unique<BlockRunner>();
}

void HostDevice::give_back(std::unique_ptr<BlockRunner> runner) {
  const std::lock_guard lock(runners_mutex_);
  if (std::cmp_less(runners_.size(), pool_.threads())) runners_.push_back(std::move(runner));
}

Status HostDevice::check_geometry(const HostKernel& kernel, const Geometry& geometry) const {
  const auto refuse = [&](const std::string& what) {
    return Error{Code::invalid, "launch of " + kernel.name() + ": " + what};
  };
  if (geometry.grid < 1 || geometry.grid > std::numeric_limits<std::int32_t>::max())
    return refuse("grid " + std::to_string(geometry.grid) + " must be 1 to 2147483647");
  const int most = std::min(kernel.max_threads(), max_block);
  if (geometry.block < 1 || geometry.block > most)
    return refuse("block " + std::to_string(geometry.block) + " must be 1 to " + std::to_string(most) +
                  ", the kernel's launch bound");
  const int smem = std::max(default_smem, kernel.dynamic_smem());
  if (geometry.dynamic_smem < 0 || geometry.dynamic_smem > smem)
    return refuse("dynamic_smem " + std::to_string(geometry.dynamic_smem) + " must be 0 to " + std::to_string(smem) +
                  ", what the kernel was loaded for");
  return {};
}

Status HostDevice::run(const HostKernel& kernel, const Geometry& geometry, const SlParams& params) {
  const HostLaunch launch{kernel.entry(), &kernel.name(), kernel.id(), &params, geometry, seed_, info_.smem_optin};
  LaunchJob job(*this, launch);
  if (geometry.grid == 1) {
    job.participate();
  } else {
    pool_.run(job);
  }
  return job.take_status();
}

/// Runs a call now, in its stream's turn, or notes it down where the stream records.
template <class Call>
Status HostDevice::enqueue(Stream handle, const Call& call) {
  if (handle == nullptr) return call();
  const std::shared_ptr<HostStream> stream = streams_.find(handle);
  if (stream == nullptr) return not_a_stream();
  const std::lock_guard lock(stream->mutex);
  if (!stream->recording) return call();
  stream->recorded.emplace_back(call);
  return {};
}

/// The same for what must be complete on return, which a recording cannot hold.
template <class Call>
Status HostDevice::complete(Stream handle, const char* what, const Call& call) {
  if (handle == nullptr) return call();
  const std::shared_ptr<HostStream> stream = streams_.find(handle);
  if (stream == nullptr) return not_a_stream();
  const std::lock_guard lock(stream->mutex);
  if (stream->recording) return Error{Code::invalid, std::string(what) + " on a stream that is recording"};
  return call();
}

Status HostDevice::launch(const Kernel& base, const Geometry& geometry, const SlParams& params,
                          Stream stream) noexcept {
  try {
    const auto* kernel = dynamic_cast<const HostKernel*>(&base);
    if (kernel == nullptr) return Error{Code::invalid, "the kernel was not loaded by the host device"};
    SL_TRY(check_geometry(*kernel, geometry));
    if (stream == nullptr) return run(*kernel, geometry, params);
    return enqueue(
        stream, [this, held = kernel->shared_from_this(), geometry, params] { return run(*held, geometry, params); });
  } catch (const std::exception& e) {
    return Error{Code::out_of_memory, e.what()};
  }
}

bool HostDevice::capturing(Stream handle) noexcept {
  if (handle == nullptr) return false;
  const std::shared_ptr<HostStream> stream = streams_.find(handle);
  if (stream == nullptr) return false;
  const std::lock_guard lock(stream->mutex);
  return stream->recording;
}

Result<std::shared_ptr<const Kernel>> HostDevice::load(const Binary& binary, int dynamic_smem) {
  if (binary.format != Binary::Format::shared_object) {
    return Error{Code::invalid, "kernel " + binary.entry + " is built for " + binary.arch +
                                    "; the host device loads shared objects of the host compiler only"};
  }
  if (dynamic_smem < 0 || dynamic_smem > info_.smem_optin) {
    return Error{Code::invalid, "kernel " + binary.entry + ": dynamic_smem " + std::to_string(dynamic_smem) +
                                    " must be 0 to " + std::to_string(info_.smem_optin)};
  }
  std::shared_ptr<const HostLibrary> library;
  {
    const Digest digest = digest_text(binary.code);
    const std::lock_guard lock(libraries_mutex_);
    library = libraries_[digest].lock();
    if (library == nullptr) {
      std::erase_if(libraries_, [](const auto& entry) { return entry.second.expired(); });
      auto opened = HostLibrary::open(binary.code);
      if (!opened) return Error{opened.error().code, binary.entry + ": " + opened.error().message};
      library = *opened;
      libraries_[digest] = library;
    }
  }
  void* const entry = library->symbol(binary.entry);
  void* const info = library->symbol(binary.entry + "_info");
  if (entry == nullptr || info == nullptr)
    return Error{Code::device, "the shared object holds no kernel " + binary.entry};
  return std::shared_ptr<const Kernel>(
      std::make_shared<HostKernel>(library, binary.entry, reinterpret_cast<SlHostEntry>(entry),
                                   static_cast<const SlHostKernelInfo*>(info)->max_threads, dynamic_smem));
}

Result<std::unique_ptr<Buffer>> HostDevice::allocate(std::size_t bytes) {
  // Linux promises memory it does not have; what can never fit is refused like a GPU does.
  if (info_.memory_bytes > 0 && bytes > static_cast<std::size_t>(info_.memory_bytes)) return out_of_memory(bytes);
  RedzonedBlock block(bytes);
  if (block.data() == nullptr) return out_of_memory(bytes);
  return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(std::move(block), sink_));
}

Result<MemoryUse> HostDevice::memory() {
  struct sysinfo memory {};
  if (sysinfo(&memory) != 0) return Error{Code::device, "sysinfo failed"};
  const std::size_t unit = memory.mem_unit;
  return MemoryUse{(memory.freeram + memory.bufferram) * unit, memory.totalram * unit};
}

Result<Stream> HostDevice::create_stream() { return streams_.create(); }
void HostDevice::destroy_stream(Stream stream) noexcept { streams_.destroy(stream); }

Status HostDevice::synchronize(Stream stream) {
  return complete(stream, "synchronize", [] { return Status{}; });
}

Status HostDevice::copy_in(void* device, const void* host, std::size_t bytes, Stream stream) {
  SL_TRY(check_pointers(device, host, bytes, "copy_in"));
  return complete(stream, "copy_in", [=] {
    if (bytes != 0) std::memcpy(device, host, bytes);
    return Status{};
  });
}

Status HostDevice::copy_out(void* host, const void* device, std::size_t bytes, Stream stream) {
  SL_TRY(check_pointers(host, device, bytes, "copy_out"));
  return complete(stream, "copy_out", [=] {
    if (bytes != 0) std::memcpy(host, device, bytes);
    return Status{};
  });
}

Status HostDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  SL_TRY(check_pointers(to, from, bytes, "copy"));
  return enqueue(stream, [=] {
    if (bytes != 0) std::memmove(to, from, bytes);
    return Status{};
  });
}

Status HostDevice::fill(void* device, unsigned char byte, std::size_t bytes, Stream stream) {
  SL_TRY(check_pointers(device, device, bytes, "fill"));
  return enqueue(stream, [=] {
    if (bytes != 0) std::memset(device, byte, bytes);
    return Status{};
  });
}

Result<std::unique_ptr<Recording>> HostDevice::record(Stream handle, const std::function<Status(Stream)>& body) {
  Stream const own = handle == nullptr ? streams_.create() : nullptr;  // nothing can be recorded on stream null
  Stream const target = own != nullptr ? own : handle;
  const std::shared_ptr<HostStream> stream = streams_.find(target);
  if (stream == nullptr) return not_a_stream();
  {
    const std::lock_guard lock(stream->mutex);
    if (stream->recording) return Error{Code::invalid, "the stream is recording already"};
    stream->recording = true;
  }
  Status status;
  try {
    status = body(target);
  } catch (const std::exception& e) {
    status = Error{Code::internal, std::string("while recording: ") + e.what()};
  }
  std::vector<std::function<Status()>> calls;
  {
    const std::lock_guard lock(stream->mutex);
    stream->recording = false;
    calls.swap(stream->recorded);
  }
  if (own != nullptr) streams_.destroy(own);
  if (!status) return std::move(status).error();
  return std::unique_ptr<Recording>(std::make_unique<HostRecording>(stream, std::move(calls)));
}

Status HostDevice::call(Stream stream, const std::function<Status(Stream)>& body) {
  return enqueue(stream, [stream, body] { return body(stream); });
}

std::shared_ptr<Device> open_host_device(HostDeviceOptions options) {
  return std::make_shared<HostDevice>(options.capability, options.threads, options.seed, std::move(options.log));
}

}  // namespace sl
