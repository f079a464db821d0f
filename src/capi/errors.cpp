#include "capi/errors.hpp"

#include <utility>

namespace sl::capi {
namespace {

// The pointer is what readers follow; the string is touched only where there is a text to own, because its first use in
// a thread allocates (a destructor is registered). initial-exec as in dispatch/counters.hpp: every kept call writes it.
constinit thread_local const char* last_message [[gnu::tls_model("initial-exec")]] = "";
thread_local std::string owned_message;

}  // namespace

sluice_status report(Error&& error) noexcept {
  if (error.code == Code::ok) return SLUICE_OK;
  owned_message = std::move(error.message);
  last_message = owned_message.c_str();
  return static_cast<sluice_status>(error.code);
}

sluice_status report_constant(sluice_status status, const char* message) noexcept {
  last_message = message;
  return status;
}

const char* last_error() noexcept { return last_message; }

static_assert(static_cast<int>(Code::kept) == SLUICE_KEPT &&
              static_cast<int>(Code::not_prepared) == SLUICE_NOT_PREPARED);
static_assert(static_cast<int>(Code::invalid) == SLUICE_INVALID &&
              static_cast<int>(Code::unsupported) == SLUICE_UNSUPPORTED);
static_assert(static_cast<int>(Code::pinned_miss) == SLUICE_PINNED_MISS &&
              static_cast<int>(Code::internal) == SLUICE_INTERNAL);

}  // namespace sl::capi
