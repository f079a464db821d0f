// Compiled kernels, once per key: memory, then the binary store, then the compiler. Single flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/digest.hpp"
#include "core/log.hpp"
#include "core/result.hpp"
#include "jit/compiler.hpp"
#include "store/file_store.hpp"

namespace sl {

/// Digest of source and headers, canonical options, arch, schema, and the compiler's identity.
Digest binary_key(const KernelSpec&, const std::string& arch, const CompilerIdentity&);
/// The same without the compiler: an alias entry under this key names the last full key, for machines that have no
/// compiler.
Digest binary_alias_key(const KernelSpec&, const std::string& arch);

struct JitCounters {
  std::atomic<std::uint64_t> compiles{0}, compile_failures{0}, binary_hits{0}, binary_memory_hits{0};
};

/// Thread-safe. A failure is returned to every waiter of that flight and forgotten: it does not poison the key.
class BinaryCache {
 public:
  BinaryCache(std::shared_ptr<Compiler>, std::shared_ptr<FileStore>, const Log&);
  ~BinaryCache();

  /// Told of one spec's binary, by the spec's index: from several threads at once.
  using Ready = std::function<void(std::size_t, Result<std::shared_ptr<const Binary>>)>;
  /// Calls `ready` once for every spec: as soon as its binary is there, or after all others where another call has it
  /// under way. Returns after the last, when what was compiled is in the store too. What is neither in memory nor in
  /// the store is compiled, up to `threads` at once; concurrent callers of one key share one compile. A device newer
  /// than the compiler gets PTX; `arch` is Compiler::arch_for's answer, or where there is no compiler the device's own
  /// "sm_NN". `ready` must not throw.
  void get(std::span<const KernelSpec> specs, const DeviceInfo&, int threads, const Ready& ready);
  /// The same, waited for: one result a spec, in order.
  std::vector<Result<std::shared_ptr<const Binary>>> get(std::span<const KernelSpec> specs, const DeviceInfo&,
                                                         int threads);

  const JitCounters& counters() const;
  Compiler& compiler();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Bytes of a Binary as a store entry and back; a malformed entry is an error.
StoreEntry to_entry(const Binary&, const CompilerIdentity&);
Result<Binary> binary_from_entry(const StoreEntry&);

}  // namespace sl
