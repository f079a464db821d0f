// The edge of the C ABI: nothing thrown passes it, and each thread keeps its last outcome as text.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "core/result.hpp"
#include "sluice/sluice.h"

namespace sl::capi {

/// Keeps `message` for this thread's sluice_last_error() and returns the status. SLUICE_OK keeps nothing.
sluice_status report(Error&& error) noexcept;
/// The same for a text that lives for ever: no allocation, so the kept hot path uses it.
sluice_status report_constant(sluice_status, const char* message) noexcept;
const char* last_error() noexcept;

inline sluice_status invalid(std::string message) noexcept { return report({Code::invalid, std::move(message)}); }

/// Runs a function body of the C ABI.
template <class Body>
sluice_status guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report_constant(SLUICE_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& exception) {
    try {
      return report({Code::internal, std::string("internal error: ") + exception.what()});
    } catch (...) {
      return report_constant(SLUICE_INTERNAL, "internal error");
    }
  } catch (...) {
    return report_constant(SLUICE_INTERNAL, "internal error of an unknown kind");
  }
}

}  // namespace sl::capi
