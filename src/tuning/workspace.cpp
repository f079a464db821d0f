#include "tuning/workspace.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "tuning/timing.hpp"
#include "tuning/tuning_data.hpp"

namespace sl {
namespace {

constexpr std::size_t page = 256;             // what cuMemAlloc aligns to; tensors start on it unless skewed
constexpr unsigned char poison_byte = 0xff;   // all ones is a NaN in f32, f16 and bf16
constexpr unsigned char redzone_byte = 0xa5;  // no likely result in any of them

constexpr std::size_t up(std::size_t n) { return (n + page - 1) / page * page; }

/// Where things lie in one set's buffer (w and bias have a buffer of their own), from a base that `page` divides.
struct SetLayout {
  std::size_t x = 0, z = 0, front = 0, y = 0, back = 0, copy_target = 0, total = 0;
  std::size_t x_bytes = 0, z_bytes = 0, y_bytes = 0;
  std::size_t copy_bytes = 0, copy_source = 0;
};

/// The copy needs a source and a target of copy_bytes each that do not overlap and leave the inputs alone: from x (and
/// z behind it) into y where both are large enough, which is the usual case of equal sizes; else into room of its own.
SetLayout lay_out(const ConvProblem& problem, std::size_t skew) {
  const std::size_t size = size_of(problem.dtype);
  SetLayout at;
  at.x_bytes = static_cast<std::size_t>(problem.x_elements()) * size;
  at.y_bytes = static_cast<std::size_t>(problem.y_elements()) * size;
  at.z_bytes = problem.residual ? at.y_bytes : 0;
  at.x = skew;
  const std::size_t after_x = up(at.x + at.x_bytes);
  at.z = after_x + skew;
  at.front = at.z_bytes == 0 ? after_x : up(at.z + at.z_bytes);
  at.y = up(at.front + Workspace::redzone_bytes) + skew;
  at.back = at.y + at.y_bytes;
  at.total = up(at.back + Workspace::redzone_bytes);
  at.copy_bytes = (at.x_bytes + at.z_bytes + at.y_bytes) / 2;
  const bool from_inputs = at.x_bytes + at.z_bytes >= at.copy_bytes;
  at.copy_source = from_inputs ? at.x : at.y;
  if (from_inputs && at.y_bytes >= at.copy_bytes) {
    at.copy_target = at.y;
  } else {
    at.copy_target = at.total;
    at.total += up(at.copy_bytes);
  }
  return at;
}

std::byte* aligned(const Buffer& buffer) {
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  return static_cast<std::byte*>(buffer.data()) + ((address + page - 1) / page * page - address);
}

Error too_big(const ConvProblem& problem, std::uint64_t needed, std::uint64_t allowed) {
  return {Code::out_of_memory, problem.to_string() + ": tuning scratch needs " + std::to_string(needed) +
                                   " bytes, allowed are " + std::to_string(allowed) + " (SLUICE_TUNE_SCRATCH_MB)"};
}

}  // namespace

struct Workspace::Impl {
  Device& device;
  Stream stream;
  ConvProblem problem;
  SetLayout at;
  TuningData data;
  std::unique_ptr<Buffer> weights;
  std::byte *w = nullptr, *bias = nullptr;
  std::vector<std::unique_ptr<Buffer>> buffers;  // one a set
  std::vector<std::byte> redzone, expected;      // as read, as it should be

  Impl(Device& d, Stream s, const ConvProblem& p, const SetLayout& l) : device(d), stream(s), problem(p), at(l) {}

  std::byte* base(int set) const { return aligned(*buffers[static_cast<std::size_t>(set)]); }

  Status allocate(int sets) {
    while (static_cast<int>(buffers.size()) < sets) {
      SL_ASSIGN(auto buffer, device.allocate(at.total + page));
      buffers.push_back(std::move(buffer));
    }
    return {};
  }

  Status upload() {
    const HostData& host = data.host;
    SL_TRY(device.copy_in(w, host.w.data(), host.w.size(), stream));
    if (!host.bias.empty()) SL_TRY(device.copy_in(bias, host.bias.data(), host.bias.size(), stream));
    SL_TRY(device.copy_in(base(0) + at.x, host.x.data(), host.x.size(), stream));
    if (!host.z.empty()) SL_TRY(device.copy_in(base(0) + at.z, host.z.data(), host.z.size(), stream));
    for (std::size_t set = 1; set < buffers.size(); ++set) {
      std::byte* const to = aligned(*buffers[set]);
      SL_TRY(device.copy(to + at.x, base(0) + at.x, at.x_bytes, stream));
      if (at.z_bytes != 0) SL_TRY(device.copy(to + at.z, base(0) + at.z, at.z_bytes, stream));
    }
    return {};
  }

  /// `side` is "before" or "after"; distances count from the nearest byte of y, which is 1 away.
  Status check_redzone(const std::byte* from, std::size_t bytes, bool before) {
    redzone.resize(bytes);
    SL_TRY(device.copy_out(redzone.data(), from, bytes, stream));
    expected.resize(bytes, std::byte{redzone_byte});
    if (std::memcmp(redzone.data(), expected.data(), bytes) == 0) return {};
    std::size_t written = 0, nearest = bytes;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (redzone[i] == std::byte{redzone_byte}) continue;
      ++written;
      nearest = std::min(nearest, before ? bytes - i : i + 1);
    }
    return Error{Code::wrong_result, "wrote outside y: " + std::to_string(written) + " bytes " +
                                         (before ? "before its first" : "after its last") + " byte, the nearest " +
                                         std::to_string(nearest) + " away"};
  }
};

Workspace::Workspace() = default;

Workspace::~Workspace() {
  if (impl_) (void)impl_->device.synchronize(impl_->stream).ok();
}

Result<std::unique_ptr<Workspace>> Workspace::create(Device& device, Stream stream, const ConvProblem& problem,
                                                     const WorkspaceOptions& options) {
  const std::uint64_t size = size_of(problem.dtype);
  // Each count is below 2^62 (validate), so this sum of elements cannot wrap; bytes are looked at only once it is
  // small.
  const std::uint64_t elements = static_cast<std::uint64_t>(problem.x_elements()) +
                                 static_cast<std::uint64_t>(problem.y_elements()) +
                                 static_cast<std::uint64_t>(problem.w_elements());
  if (elements > options.max_bytes / size) {
    return too_big(problem, elements > ~0ULL / size ? ~0ULL : elements * size, options.max_bytes);
  }

  const std::size_t skew = problem.align < 16 ? static_cast<std::size_t>(problem.align) : 0;
  const SetLayout at = lay_out(problem, skew);
  const std::size_t w_bytes = static_cast<std::size_t>(problem.w_elements()) * size;
  const std::size_t bias_at = up(skew + w_bytes);
  const std::size_t fixed = bias_at + up(static_cast<std::size_t>(problem.k) * 4) + page;
  const std::size_t per_set = at.total + page;
  if (fixed + per_set > options.max_bytes) return too_big(problem, fixed + per_set, options.max_bytes);

  std::uint64_t bound = options.max_bytes - fixed;
  if (const Result<MemoryUse> use = device.memory(); use.ok())
    bound = std::min<std::uint64_t>(bound, use->free_bytes / 2);
  const std::int64_t moved = static_cast<std::int64_t>(at.x_bytes + at.z_bytes + at.y_bytes);
  int sets = std::min(rotating_sets(device.info(), moved, ~0ULL), std::max(1, options.max_sets));
  sets = static_cast<int>(std::clamp<std::uint64_t>(bound / per_set, 1, static_cast<std::uint64_t>(sets)));

  std::unique_ptr<Workspace> workspace(new Workspace);
  workspace->impl_ = std::make_unique<Impl>(device, stream, problem, at);
  Impl& impl = *workspace->impl_;
  SL_ASSIGN(impl.weights, device.allocate(fixed));
  impl.w = aligned(*impl.weights) + skew;
  impl.bias = aligned(*impl.weights) + bias_at;
  for (;; sets /= 2) {
    const Status allocated = impl.allocate(sets);
    if (allocated.ok()) break;
    impl.buffers.clear();
    if (allocated.error().code != Code::out_of_memory || sets == 1) return allocated.error();
  }
  impl.data = make_tuning_data(problem, options.seed, options.fill);
  SL_TRY(impl.upload());
  for (int set = 0; set < sets; ++set) SL_TRY(workspace->poison(set));
  SL_TRY(device.synchronize(stream));
  return workspace;
}

int Workspace::sets() const { return static_cast<int>(impl_->buffers.size()); }

SlParams Workspace::bind(SlParams params, int set) const {
  const SetLayout& at = impl_->at;
  params.x = impl_->base(set) + at.x;
  params.weight = impl_->w;
  params.bias = impl_->problem.bias == Bias::none ? nullptr : impl_->bias;
  params.z = impl_->problem.residual ? impl_->base(set) + at.z : nullptr;
  params.y = impl_->base(set) + at.y;
  return params;
}

Status Workspace::poison(int set) {
  const SetLayout& at = impl_->at;
  std::byte* const base = impl_->base(set);
  SL_TRY(impl_->device.fill(base + at.front, redzone_byte, at.y - at.front, impl_->stream));
  SL_TRY(impl_->device.fill(base + at.y, poison_byte, at.y_bytes, impl_->stream));
  return impl_->device.fill(base + at.back, redzone_byte, redzone_bytes, impl_->stream);
}

Status Workspace::check_redzones(int set) {
  const SetLayout& at = impl_->at;
  const std::byte* const base = impl_->base(set);
  SL_TRY(impl_->check_redzone(base + at.front, at.y - at.front, true));
  return impl_->check_redzone(base + at.back, redzone_bytes, false);
}

Result<std::vector<std::byte>> Workspace::read_y(int set) {
  std::vector<std::byte> out;
  SL_TRY(read_y(set, out));
  return out;
}

Status Workspace::read_y(int set, std::vector<std::byte>& out) {
  out.resize(impl_->at.y_bytes);
  return impl_->device.copy_out(out.data(), impl_->base(set) + impl_->at.y, out.size(), impl_->stream);
}

const HostData& Workspace::host_data() const { return impl_->data.host; }

double Workspace::x_max() const { return impl_->data.x_max; }

Workspace::CopySpan Workspace::same_bytes(int set) const {
  const SetLayout& at = impl_->at;
  std::byte* const base = impl_->base(set);
  return {base + at.copy_target, base + at.copy_source, at.copy_bytes};
}

Status Workspace::copy_same_bytes(int set, Stream stream) {
  const CopySpan span = same_bytes(set);
  return impl_->device.copy(span.to, span.from, span.bytes, stream);
}

std::uint64_t Workspace::bytes() const {
  std::uint64_t total = impl_->weights->size();
  for (const auto& buffer : impl_->buffers) total += buffer->size();
  return total;
}

}  // namespace sl
