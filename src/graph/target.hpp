// The target device from what a caller typed.
#pragma once

#include <string_view>

#include "device/device_info.hpp"

namespace sl::graph {

/// A described device ("h200"), "host", "host:80" (the host emulating 8.0), or the path of a description ("*.json").
Result<DeviceInfo> target_device(std::string_view text);

}  // namespace sl::graph
