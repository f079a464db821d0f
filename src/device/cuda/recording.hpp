// Work captured into a CUDA graph and replayed between two events.
#pragma once

#include <functional>
#include <memory>

#include "device/cuda/context.hpp"
#include "device/device.hpp"

namespace sl::cuda {

/// Captures what `body` enqueues on `stream`; null, which cannot be captured, becomes a stream of the recording's own.
/// The capture is ended whether or not `body` succeeds.
Result<std::unique_ptr<Recording>> record(const ContextPtr&, CUstream stream,
                                          const std::function<Status(Stream)>& body);

}  // namespace sl::cuda
