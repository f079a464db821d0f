// What a context holds that takes no call (SLUICE_DISABLE, policy off): nothing of the machine is opened for it.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "jit/compiler.hpp"

namespace sl::capi {

/// A device without capability, memory or kernels: every operation is an error with Code::environment.
std::shared_ptr<Device> make_null_device();
/// Compiles nothing: Code::environment.
std::shared_ptr<Compiler> make_null_compiler();

}  // namespace sl::capi
