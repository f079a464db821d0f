#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "jit/backends.hpp"
#include "jit/nvrtc.hpp"
#include "jit/nvrtc_search.hpp"

namespace sl {
namespace {

class NvrtcCompiler final : public Compiler {
 public:
  NvrtcCompiler(const Environment& environment) : environment_(environment) {}

  CompilerIdentity identity() const override;
  Result<std::string> arch_for(const DeviceInfo&) override;
  void compile(std::span<const KernelSpec> specs, const std::string& arch, int threads, const Done& done) override;
  Result<std::string> version() override;

 private:
  Result<const NvrtcLibrary*> library();

  const Environment environment_;
  mutable std::mutex mutex_;  // guards the two below; never held while compiling
  mutable CompilerIdentity identity_;
  std::optional<NvrtcLibrary> library_;
};

// Not found is asked again at the next call: a framework may have mapped its own since.
CompilerIdentity NvrtcCompiler::identity() const {
  const std::scoped_lock lock(mutex_);
  if (identity_.available) return identity_;
  const NvrtcLocation location = find_nvrtc(environment_);
  struct stat file {};
  if (!location.path.empty() && stat(location.path.c_str(), &file) == 0) {
    identity_.available = true;
    identity_.path = location.path;
    identity_.text = "nvrtc path=" + location.path + " size=" + std::to_string(file.st_size) +
                     " mtime=" + std::to_string(file.st_mtim.tv_sec) + "." + std::to_string(file.st_mtim.tv_nsec);
    identity_.why_not.clear();
  } else {
    identity_.why_not = "no NVRTC; looked for libnvrtc.so.12 or newer in: " + location.summary() +
                        ". Install the CUDA toolkit (or pip install nvidia-cuda-nvrtc), or set SLUICE_NVRTC";
  }
  return identity_;
}

Result<const NvrtcLibrary*> NvrtcCompiler::library() {
  const CompilerIdentity found = identity();
  if (!found.available) return Error{Code::environment, found.why_not};
  const std::scoped_lock lock(mutex_);
  if (!library_) {
    SL_ASSIGN(library_, open_nvrtc(found.path));
  }
  return &*library_;
}

Result<std::string> NvrtcCompiler::version() {
  SL_ASSIGN(const NvrtcLibrary* const nvrtc, library());
  return nvrtc->version_text();
}

Result<std::string> NvrtcCompiler::arch_for(const DeviceInfo& device) {
  if (device.backend != "cuda")
    return Error{Code::unsupported,
                 "NVRTC compiles for cuda devices, not for " + device.name + " (backend " + device.backend + ")"};
  SL_ASSIGN(const NvrtcLibrary* const nvrtc, library());
  return nvrtc_target(*nvrtc, device.capability);
}

void NvrtcCompiler::compile(std::span<const KernelSpec> specs, const std::string& arch, int threads, const Done& done) {
  const auto nvrtc = library();
  if (!nvrtc.ok()) {
    for (std::size_t i = 0; i < specs.size(); ++i) done(i, nvrtc.error());
    return;
  }
  const auto compile_one = [&](const KernelSpec& spec) -> Result<Binary> {
    try {
      return nvrtc_compile(**nvrtc, translation_unit({&spec, 1}), spec.entry(), arch);
    } catch (const std::exception& error) {  // no memory, most likely: so none is asked for
      return Error{Code::compile, error.what()};
    }
  };
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < specs.size(); i = next.fetch_add(1)) done(i, compile_one(specs[i]));
  };
  // This thread works too, so that a machine out of threads is only slower.
  std::vector<std::jthread> helpers;
  if (threads <= 0) threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  const auto wanted = std::min(specs.size(), static_cast<std::size_t>(threads));
  try {
    while (helpers.size() + 1 < wanted) helpers.emplace_back(work);
  } catch (const std::system_error&) {
  }
  work();
}

}  // namespace

std::unique_ptr<Compiler> make_nvrtc_compiler(const Environment& environment, const Log&) {
  return std::make_unique<NvrtcCompiler>(environment);
}

}  // namespace sl
