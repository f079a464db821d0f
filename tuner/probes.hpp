// Kernels that measure the machine itself (kernels/probe/): the copy and the arithmetic peaks that floors come from.
#pragma once

#include <memory>

#include "core/result.hpp"
#include "device/device.hpp"
#include "tuner/session.hpp"
#include "tuning/roofline.hpp"
#include "tuning/workspace.hpp"

namespace sl::tool {

/// A copy of 16-byte words, one a thread; often faster than the driver's on small sizes.
class CopyKernel {
 public:
  /// Compiles, or finds it in the binary store.
  static Result<CopyKernel> load(Session&);
  /// An error where the span is not aligned to 16 bytes, so that it is never timed on less than all of it.
  Status launch(Device&, const Workspace::CopySpan&, Stream) const;

 private:
  std::shared_ptr<const Kernel> kernel_;
};

/// Both peaks, measured now. The matrix peak is 0 below capability 8.0. Takes well under a second on a GPU; on the host
/// device the numbers only prove that the path works.
Result<Peaks> measure_peaks(Session&);

}  // namespace sl::tool
