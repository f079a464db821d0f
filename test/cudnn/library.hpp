// The fake cuDNN as the tests drive it.
#pragma once

#include <dlfcn.h>

#include <memory>

#include "jit/backends.hpp"
#include "tuner/cudnn/library.hpp"

namespace sl::cudnn::test {

/// Opened once; scripted anew by each test.
struct FakeLibrary {
  std::shared_ptr<const Library> library;
  void (*script)(const char*) = nullptr;
  int (*calls)() = nullptr;
  int (*live)() = nullptr;

  explicit FakeLibrary(const char* text) {
    void* const handle = dlopen(FAKE_CUDNN_PATH, RTLD_NOW | RTLD_LOCAL);
    script = reinterpret_cast<void (*)(const char*)>(dlsym(handle, "fake_cudnn_script"));
    calls = reinterpret_cast<int (*)()>(dlsym(handle, "fake_cudnn_calls"));
    live = reinterpret_cast<int (*)()>(dlsym(handle, "fake_cudnn_live"));
    script("");
    library = load_library(FAKE_CUDNN_PATH, {}).value();
    script(text);
  }
};

}  // namespace sl::cudnn::test
