// Kernels of kernels/testing/, compiled for the host device once a process, and a small harness to run one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "jit/compiler.hpp"

namespace sl::test {

/// sl::testing_NAME of kernels/testing/FILE.cuh.
KernelSpec testing_kernel(const std::string& name, const std::string& file,
                          std::vector<std::pair<std::string, std::int64_t>> constants = {}, int threads = 64);

/// Compiles what is not compiled yet. A failure is a test failure and yields an empty Binary.
Binary host_binary(const KernelSpec&);
/// Compiles several at once, quicker than one by one.
void prefetch(const std::vector<KernelSpec>&);

struct RunOptions {
  std::uint64_t seed = 0;
  int threads = 1;  ///< of the device
  std::int64_t grid = 1;
  int block = 0;  ///< 0: the spec's
  int dynamic_smem = 0;
  long long aux0 = 0, work = 0;
};

/// Runs a kernel on a fresh host device with x as its input; `y_bytes` bytes of output come back in `y`.
struct RunOutcome {
  Status status;
  std::vector<std::byte> y;
  template <class T>
  T at(std::size_t i) const {
    T value;
    __builtin_memcpy(&value, y.data() + i * sizeof(T), sizeof(T));
    return value;
  }
};
RunOutcome run_on_host(const KernelSpec&, const void* x, std::size_t x_bytes, std::size_t y_bytes, RunOptions = {});

}  // namespace sl::test
