// A device on the fake driver, and what a test needs to load a kernel into it.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "jit/backends.hpp"
#include "test/device/fake_driver/fake_control.hpp"

namespace sl {

inline Environment with_driver(const char* path) {
  Environment environment;
  environment.libcuda = path;
  return environment;
}

/// The smallest file that passes for a cubin: an ELF header and one empty section.
inline Binary tiny_cubin() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Binary binary;
  binary.code.resize(sizeof header + sizeof(Elf64_Shdr));
  std::memcpy(binary.code.data(), &header, sizeof header);
  binary.entry = "sluice_test";
  binary.arch = "sm_90";
  binary.compiler = "nvrtc 13.0";
  return binary;
}

class FakeCuda : public testing::Test {
 protected:
  void SetUp() override { control.fake_reset(); }
  void TearDown() override {
    EXPECT_EQ(control.fake_context_depth(), 0) << "a context was pushed and not popped";
    EXPECT_EQ(control.fake_capture_mode(), 0) << "the thread's capture mode was not put back";
    EXPECT_TRUE(leaves_remains || control.live() == fake::Live{}) << "something was leaked or freed twice";
    control.fake_reset();
  }
  std::shared_ptr<Device> open(int ordinal = 0) {
    auto device = open_cuda_device(ordinal, with_driver(FAKE_CUDA), log);
    if (!device.ok()) throw std::runtime_error(device.error().message);
    return *device;
  }

  fake::Control control{FAKE_CUDA};
  bool leaves_remains = false;  ///< the test kills the driver or the context under living objects
  Log log;
};

}  // namespace sl
