// The system's C++ compiler as a Compiler for the host device. Make it with make_host_compiler (jit/backends.hpp); this
// header is for it and its tests.
#pragma once

#include <chrono>
#include <mutex>

#include "core/environment.hpp"
#include "jit/compiler.hpp"

namespace sl {

class HostCompiler final : public Compiler {
 public:
  HostCompiler(const Environment&, const Log&, std::chrono::milliseconds timeout);

  /// Text: path, size and mtime of the compiler's file, machine, and flags. CPU features are not in it: no -march flag
  /// is passed, so what is built runs on every CPU of the machine type.
  CompilerIdentity identity() const override { return identity_; }
  Result<std::string> arch_for(const DeviceInfo&) override;
  using Compiler::compile;
  void compile(std::span<const KernelSpec>, const std::string& arch, int threads, const Done&) override;
  Result<std::string> version() override;

 private:
  struct Job;
  void compile_chunk(const Job&, std::span<const std::size_t> chunk) const;

  const Log& log_;
  std::chrono::milliseconds timeout_;
  CompilerIdentity identity_;
  std::mutex version_mutex_;
  std::string version_;  ///< empty until asked for
};

}  // namespace sl
