// A shared object in memory, loaded into the process, and a kernel in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "device/device.hpp"
#include "kernels/common/platform_host.h"

namespace sl {

/// Unloaded when the last kernel of it is gone. Thread-safe.
class HostLibrary {
 public:
  /// Errors (Code::device): the bytes are no whole ELF file, the loader refuses them, or they were built for another
  /// version of the runtime.
  static Result<std::shared_ptr<const HostLibrary>> open(const std::string& code);
  ~HostLibrary();
  HostLibrary(const HostLibrary&) = delete;
  HostLibrary& operator=(const HostLibrary&) = delete;

  void* symbol(const std::string& name) const;  ///< null where there is none

 private:
  HostLibrary(void* handle, int fd, std::string path) : handle_(handle), fd_(fd), path_(std::move(path)) {}
  static Result<std::shared_ptr<const HostLibrary>> checked(std::shared_ptr<const HostLibrary>);
  void* handle_;
  int fd_;            // of the memory file behind it, or -1
  std::string path_;  // of a file to remove at the end, or empty
};

class HostKernel final : public Kernel, public std::enable_shared_from_this<HostKernel> {
 public:
  HostKernel(std::shared_ptr<const HostLibrary>, std::string name, SlHostEntry, int max_threads, int dynamic_smem);

  const std::string& name() const { return name_; }
  std::uint64_t id() const { return id_; }  ///< distinct for every loaded kernel of the process
  SlHostEntry entry() const { return entry_; }
  int max_threads() const { return max_threads_; }
  int dynamic_smem() const { return dynamic_smem_; }  ///< what it was loaded for

 private:
  std::shared_ptr<const HostLibrary> library_;
  std::string name_;
  SlHostEntry entry_;
  int max_threads_, dynamic_smem_;
  std::uint64_t id_;
};

}  // namespace sl
