#include "schedules/host_runner.hpp"

#include <algorithm>

namespace sl::test {
namespace {

constexpr std::size_t fence = 256;     // bytes on either side
constexpr std::byte fence_byte{0xFF};  // as an element: NaN in every dtype

Environment environment() {
  Result<Environment> read = read_environment();
  return read ? *read : Environment{};
}

/// Device memory for one tensor with fences, the tensor at an address of exactly the given alignment.
class Fenced {
 public:
  static Result<Fenced> make(Device& device, std::span<const std::byte> content, std::size_t align) {
    Fenced fenced;
    fenced.size_ = content.size();
    fenced.offset_ = fence + align;  // 16, 8, 4 or 2 beyond a multiple of 32: no better aligned than asked for
    fenced.image_.assign(2 * fence + 32 + content.size(), fence_byte);
    std::copy(content.begin(), content.end(), fenced.image_.begin() + static_cast<std::ptrdiff_t>(fenced.offset_));
    SL_ASSIGN(fenced.buffer_, device.allocate(fenced.image_.size()));
    SL_TRY(device.copy_in(fenced.buffer_->data(), fenced.image_.data(), fenced.image_.size(), nullptr));
    return fenced;
  }

  void* data() const { return static_cast<std::byte*>(buffer_->data()) + offset_; }

  /// The content; an error where a fence was written.
  Result<std::vector<std::byte>> read(Device& device) {
    SL_TRY(device.copy_out(image_.data(), buffer_->data(), image_.size(), nullptr));
    for (std::size_t i = 0; i < image_.size(); ++i) {
      const bool inside = i >= offset_ && i < offset_ + size_;
      if (!inside && image_[i] != fence_byte) {
        return Error{Code::wrong_result, "wrote outside y, at byte " +
                                             std::to_string(static_cast<std::ptrdiff_t>(i - offset_)) + " of " +
                                             std::to_string(size_)};
      }
    }
    const auto begin = image_.begin() + static_cast<std::ptrdiff_t>(offset_);
    return std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(size_));
  }

 private:
  std::unique_ptr<Buffer> buffer_;
  std::vector<std::byte> image_;
  std::size_t size_ = 0, offset_ = 0;
};

}  // namespace

KernelSpec Job::spec() const {
  KernelSpec spec = schedule->kernel(problem, config);
  for (auto& [name, value] : spec.constants) {
    for (const auto& [other, replacement] : instead) {
      if (name == other) value = replacement;
    }
  }
  return spec;
}

std::string Job::what() const {
  std::string text = std::string(schedule->name) + " " + config.to_string() + " on " + problem.to_string() + " seed " +
                     std::to_string(seed) + (in_place ? " in place" : "");
  for (const auto& [name, value] : instead) text += " with " + name + " = " + std::to_string(value);
  return text;
}

HostRunner::HostRunner()
    : device_(open_host_device({.capability = 90, .threads = 1, .seed = 0})),
      cache_(make_host_compiler(environment(), log_), std::make_shared<FileStore>(StoreOptions{}, log_), log_) {}

Status HostRunner::compile(std::span<const Job> jobs) {
  std::vector<KernelSpec> specs;
  for (const Job& job : jobs) specs.push_back(job.spec());
  const auto binaries = cache_.get(specs, info(), 0);
  held_.clear();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!binaries[i]) return Error{binaries[i].error().code, jobs[i].what() + ": " + binaries[i].error().message};
    held_.emplace(specs[i].entry(), *binaries[i]);
  }
  return {};
}

Result<std::vector<std::byte>> HostRunner::run(const Job& job, const HostData& data, std::uint64_t thread_order) {
  const ConvProblem& problem = job.problem;
  const auto held = held_.find(job.spec().entry());
  if (held == held_.end()) return Error{Code::invalid, "not among the jobs that were compiled last"};
  const std::shared_ptr<Device> device =
      thread_order == 0 ? device_ : open_host_device({.capability = 90, .threads = 1, .seed = thread_order});
  const Geometry geometry = job.schedule->geometry(problem, job.config);
  SL_ASSIGN(const std::shared_ptr<const Kernel> kernel, device->load(*held->second, geometry.dynamic_smem));

  const auto align = static_cast<std::size_t>(problem.align);
  const std::vector<std::byte> poison(static_cast<std::size_t>(problem.y_elements()) * size_of(problem.dtype),
                                      fence_byte);
  SL_ASSIGN(Fenced x, Fenced::make(*device, data.x, align));
  SL_ASSIGN(Fenced w, Fenced::make(*device, data.w, align));
  SL_ASSIGN(Fenced bias, Fenced::make(*device, data.bias, 4));
  SL_ASSIGN(Fenced z, Fenced::make(*device, data.z, align));
  SL_ASSIGN(Fenced y, Fenced::make(*device, job.in_place ? data.z : poison, align));

  SlParams params{};
  job.schedule->params(problem, job.config, params);
  params.x = x.data();
  params.weight = w.data();
  params.bias = problem.bias == Bias::none ? nullptr : bias.data();
  params.z = !problem.residual ? nullptr : job.in_place ? y.data() : z.data();
  params.y = y.data();
  if (geometry.grid > 0) {
    SL_TRY(device->launch(*kernel, geometry, params, nullptr));
    SL_TRY(device->synchronize(nullptr));
  }
  return y.read(*device);
}

bool host_compiler_present(std::string* why_not) {
  const Log log;
  const CompilerIdentity identity = make_host_compiler(environment(), log)->identity();
  *why_not = identity.why_not;
  return identity.available;
}

}  // namespace sl::test
