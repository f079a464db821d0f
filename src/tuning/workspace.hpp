// Bounded scratch for verifying and timing candidates: w and bias once; x, z and y once a rotating set, with redzones
// around y. The caller's tensors are never used.
#pragma once

#include <memory>
#include <vector>

#include "core/conv_problem.hpp"
#include "core/result.hpp"
#include "device/device.hpp"
#include "reference/reference.hpp"

namespace sl {

struct WorkspaceOptions {
  std::uint64_t max_bytes = 1ULL << 30;
  std::uint64_t seed = 1;
  int max_sets = 64;
  Fill fill = Fill::random;
};

/// Device buffers for one problem, on one device and stream. Freed on destruction, after a synchronise of the stream.
/// Pointers have exactly the problem's alignment class. Not thread-safe.
class Workspace {
 public:
  /// Bytes fenced off on either side of every y.
  static constexpr std::size_t redzone_bytes = 64 * 1024;

  /// As many sets as leave L2, within max_bytes and (beyond the first set) half of the device's free memory. Out of
  /// memory halves the sets down to one; below that it is an error with Code::out_of_memory. Every set holds the same
  /// data.
  static Result<std::unique_ptr<Workspace>> create(Device&, Stream, const ConvProblem&, const WorkspaceOptions&);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  int sets() const;
  /// params with the pointers of set `set` filled in.
  SlParams bind(SlParams params, int set) const;
  /// Fills y of set `set` with NaN poison (every bit set) and arms its redzones. Asynchronous on the stream.
  Status poison(int set);
  /// Redzones around y of `set` untouched? Code::wrong_result names the byte that was written and where.
  Status check_redzones(int set);
  Result<std::vector<std::byte>> read_y(int set);
  /// The same into `out`, whose storage is reused.
  Status read_y(int set, std::vector<std::byte>& out);
  const HostData& host_data() const;  ///< the data on the device, for the reference
  double x_max() const;               ///< max |x|
  /// The same-bytes copy: half of x + z + y bytes, so that as much is read and written as the convolution moves.
  /// Performing it overwrites y of `set`; x, z, w and bias stay.
  struct CopySpan {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  CopySpan same_bytes(int set) const;
  /// Enqueues it as the driver's copy.
  Status copy_same_bytes(int set, Stream);
  std::uint64_t bytes() const;  ///< device memory held

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  Workspace();
};

}  // namespace sl
