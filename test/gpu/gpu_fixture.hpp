// The GPU and NVRTC of this machine, opened once; a test is skipped with the reason where one is missing.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "jit/backends.hpp"
#include "jit/binary_cache.hpp"

namespace sl::test {

/// What all tests share; leaked, so that nothing of it is torn down after main.
struct Machine {
  Log log;
  Environment environment;
  std::shared_ptr<Device> device;
  std::shared_ptr<BinaryCache> cache;  ///< NVRTC, no store
  std::string no_device, no_compiler;  ///< why not; empty where there is one
};
Machine& machine();

KernelSpec testing_spec(const std::string& name, std::vector<std::pair<std::string, std::int64_t>> constants = {});

/// Compiles and loads; a failure is a test failure and null.
std::shared_ptr<const Kernel> load(const KernelSpec&, int dynamic_smem = 0);

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!machine().no_device.empty()) GTEST_SKIP() << machine().no_device;
    device = machine().device;
  }
  std::shared_ptr<Device> device;
};

/// Tests that compile too.
class GpuJit : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (!IsSkipped() && !machine().no_compiler.empty()) GTEST_SKIP() << machine().no_compiler;
  }
};

/// A stream for one scope.
class OwnStream {
 public:
  explicit OwnStream(Device& device) : device_(device), stream_(device.create_stream().value()) {}
  ~OwnStream() { device_.destroy_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator Stream() const { return stream_; }  // NOLINT implicit

 private:
  Device& device_;
  Stream stream_;
};

/// `count` values of T from device memory; waits for the stream.
template <class T>
std::vector<T> read(Device& device, const Buffer& buffer, std::size_t count, Stream stream = nullptr) {
  std::vector<T> values(count);
  const Status status = device.copy_out(values.data(), buffer.data(), count * sizeof(T), stream);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return values;
}

}  // namespace sl::test

#define ASSERT_OK(expression)                                                         \
  do {                                                                                \
    const auto& sl_outcome_ = (expression);                                           \
    ASSERT_TRUE(sl_outcome_.ok()) << #expression ": " << sl_outcome_.error().message; \
  } while (false)
