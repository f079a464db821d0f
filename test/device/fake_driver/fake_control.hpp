// How a test steers the fake driver: functions that libfake_cuda.so exports beside the cu* ones, found with dlsym.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace fake {

constexpr int devices = 2;
constexpr std::size_t memory_bytes = std::size_t{1} << 40;

/// What is alive in the driver: what a test compares before and after.
struct Live {
  int retains = 0, buffers = 0, modules = 0, streams = 0, events = 0, graphs = 0, graph_execs = 0, captures = 0;
  friend bool operator==(const Live&, const Live&) = default;
};

/// The last launch.
struct Launch {
  unsigned grid, block, smem;
  void* stream;
  void* context;          ///< that was current
  long long params_work;  ///< SlParams::work as the kernel would see it
  int count;
};

// X(name, return type, arguments)
#define FAKE_CONTROLS(X)                                                                        \
  X(fake_fault, void, (const char* symbol, int result, int times)) /* the next `times` calls */ \
  X(fake_calls, int, (const char* symbol))                                                      \
  X(fake_reset, void, ())              /* everything: faults, counters, what is alive */        \
  X(fake_deinitialise, void, ())       /* as at exit: every call answers DEINITIALIZED */       \
  X(fake_destroy_contexts, void, ())   /* as after cudaDeviceReset by other code */             \
  X(fake_context_depth, int, ())       /* of this thread's stack */                             \
  X(fake_primary, void*, (int device)) /* the primary context's handle */                       \
  X(fake_capture_mode, int, ())        /* of this thread */                                     \
  X(fake_live, void, (Live*))                                                                   \
  X(fake_last_launch, void, (Launch*))                                                          \
  X(fake_log, void, (const char* text)) /* what the next failing module load writes into its log */

/// The controls of the library at `path`, which stays loaded.
struct Control {
#define FAKE_MEMBER(name, type, arguments) type(*name) arguments;
  FAKE_CONTROLS(FAKE_MEMBER)
#undef FAKE_MEMBER
  void* handle;

  explicit Control(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) throw std::runtime_error(dlerror());
#define FAKE_RESOLVE(name, type, arguments) name = symbol<type(*) arguments>(#name);
    FAKE_CONTROLS(FAKE_RESOLVE)
#undef FAKE_RESOLVE
  }
  template <class F>
  F symbol(const char* name) const {
    void* const found = dlsym(handle, name);
    if (found == nullptr) throw std::runtime_error(std::string("fake driver lacks ") + name);
    return reinterpret_cast<F>(found);
  }
  Live live() const {
    Live now{};
    fake_live(&now);
    return now;
  }
  Launch last_launch() const {
    Launch launch{};
    fake_last_launch(&launch);
    return launch;
  }
};

}  // namespace fake
