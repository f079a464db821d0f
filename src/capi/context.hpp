// What an opaque handle holds.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <optional>

#include "capi/call.hpp"
#include "core/environment.hpp"
#include "core/log.hpp"
#include "dispatch/dispatcher.hpp"
#include "jit/binary_cache.hpp"
#include "routing/decision_store.hpp"
#include "sluice/sluice.h"
#include "store/file_store.hpp"

/// Members in order of construction: each may use those before it, and dies before them.
struct sluice_context {
  sluice_context(sl::LogSink sink, sl::LogLevel level) : log(std::move(sink), level) {}

  pid_t owner = 0;
  sl::Log log;
  sl::Environment environment;
  std::shared_ptr<sl::Device> device;
  std::shared_ptr<sl::BinaryCache> binaries;
  std::optional<sl::Dispatcher> dispatcher;
  std::atomic<std::uint64_t> kept_for_strides{0};  ///< answered before the dispatcher was asked
};

/// What a run needs lies together, and at the beginning.
struct alignas(64) sluice_plan {
  sluice_plan(sl::Dispatcher& dispatcher, std::shared_ptr<const sl::Plan> plan);

  std::uintptr_t no_bits, bias_no_bits;  ///< of the addresses of x, w, z and y, and of bias: what alignment forbids
  sl::HotPath hot;
  sl::PlanEntry entry;  ///< plan->entry
  sl::Dispatcher& dispatcher;
  std::shared_ptr<const sl::Plan> plan;
};

namespace sl::capi {

/// Reads the environment, lets `options` override it, and opens everything. Errors as in sluice.h.
Result<std::unique_ptr<sluice_context>> make_context(const sluice_options& options);

/// "cuda", "cuda:N", "host", "host:90".
struct DeviceSpec {
  bool host = false;
  int ordinal = 0;      ///< cuda
  int capability = 90;  ///< host
};
Result<DeviceSpec> parse_device(std::string_view text);

/// `environment` with what `options` say in its place, and the policy that follows.
Status apply(const sluice_options& options, Environment& environment);
Result<Policy> choose_policy(const Environment&);
Result<DispatcherOptions> dispatcher_options(const sluice_options&, const Environment&);

}  // namespace sl::capi
