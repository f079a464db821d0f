// A compiler that counts and fails on demand, and specs for it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "jit/binary_cache.hpp"

namespace sl::test {

class CountingCompiler final : public Compiler {
 public:
  explicit CountingCompiler(std::string name = "fake compiler 1", bool available = true)
      : name_(std::move(name)), available_(available) {}

  CompilerIdentity identity() const override {
    return {available_, available_ ? name_ : "", "/opt/" + name_, available_ ? "" : "looked in /opt/fake"};
  }
  Result<std::string> arch_for(const DeviceInfo& device) override {
    ++opened;
    if (device.capability > newest) return "compute_" + std::to_string(newest);
    return "sm_" + std::to_string(device.capability);
  }
  void compile(std::span<const KernelSpec> specs, const std::string& arch, int threads, const Done& done) override {
    ++opened;
    ++batches;
    largest_batch = std::max<std::size_t>(largest_batch, specs.size());
    last_threads = threads;
    std::this_thread::sleep_for(delay);
    for (std::size_t i = 0; i < specs.size() && !silent; ++i) {
      const KernelSpec& spec = specs[i];
      ++compiled;
      if (throws) throw std::runtime_error("compiler threw");
      if (failures > 0) {
        --failures;
        done(i, Error{Code::compile, "no luck with " + spec.entry()});
        continue;
      }
      Binary binary;
      binary.code = "code of " + spec.canonical() + " by " + name_;
      binary.code.resize(binary.code.size() + padding);
      binary.entry = spec.entry();
      binary.arch = arch;
      binary.compiler = name_;
      binary.registers = 40;
      binary.format = arch.starts_with("compute_") ? Binary::Format::ptx : Binary::Format::cubin;
      done(i, std::move(binary));
    }
  }
  Result<std::string> version() override {
    ++opened;
    return name_;
  }

  std::atomic<int> opened{0}, compiled{0}, batches{0}, failures{0}, last_threads{0};
  std::atomic<std::size_t> largest_batch{0};
  std::atomic<bool> throws{false}, silent{false};
  std::chrono::milliseconds delay{0};
  int newest = 121;
  std::size_t padding = 0;  ///< bytes added to every binary

 private:
  const std::string name_;
  const bool available_;
};

inline KernelSpec fake_spec(std::int64_t n) {
  KernelSpec spec;
  spec.schedule = "testing_decode";
  spec.source = "testing/memory.cuh";
  spec.constants = {{"N", n}};
  return spec;
}

inline std::vector<KernelSpec> fake_specs(std::int64_t count) {
  std::vector<KernelSpec> specs;
  for (std::int64_t i = 0; i < count; ++i) specs.push_back(fake_spec(i));
  return specs;
}

inline DeviceInfo h200() {
  DeviceInfo info;
  info.name = "NVIDIA H200";
  info.capability = 90;
  return info;
}

}  // namespace sl::test
