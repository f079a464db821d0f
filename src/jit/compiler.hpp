// From a kernel specialisation to a Binary: NVRTC for cuda, the system's C++ compiler for host.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "core/log.hpp"
#include "core/result.hpp"
#include "device/device.hpp"

namespace sl {

/// One specialisation of one kernel template: `template <class Cfg> __device__ void NAME(const SlParams&)` in
/// namespace sl of kernels/SOURCE. `constants` become `static constexpr` members of Cfg, in this order: `int` where the
/// value fits in 32 bits, else `long long`; `threads` becomes Cfg::THREADS. Enumerations go in as their number in
/// core/types.hpp (DTYPE 0 f32, 1 f16, 2 bf16; LAYOUT 0 nchw, 1 nhwc; ...), booleans as 0 or 1; kernels map them to
/// types. Names are C++ identifiers, each once, and not THREADS.
struct KernelSpec {
  std::string schedule;  ///< "dw_flat": the template's name, sl::dw_flat<Cfg>
  std::string source;    ///< "dw_flat.cuh", relative to kernels/
  std::vector<std::pair<std::string, std::int64_t>> constants;
  int threads = 128;  ///< __launch_bounds__(threads, min_blocks)
  int min_blocks = 1;

  /// Canonical text of everything above: part of the binary key.
  std::string canonical() const;
  /// Kernel symbol, "sluice_dw_flat_<16 hex digits of the canonical text's digest>".
  std::string entry() const;
};

/// The embedded kernel sources (kernels/**), by path relative to kernels/. Empty view where there is none.
std::string_view kernel_source(std::string_view path);
std::vector<std::string_view> kernel_source_paths();
/// A source without what no machine code depends on: comments, indentation, blank lines. Lines stay lines, since the
/// preprocessor's end there.
std::string kernel_code(std::string_view text);
/// Digest of the code of a source and of every header it includes, transitively: a comment changes nothing.
Digest kernel_source_digest(std::string_view source);
/// The translation unit: includes, one Cfg struct and one extern "C" kernel for each spec.
std::string translation_unit(std::span<const KernelSpec>);

/// Who compiles, cheaply: for NVRTC path, size and mtime of the library file, without opening it; for host the
/// compiler's path, size, mtime, flags, CPU features. `version` is filled in only after the compiler was used.
struct CompilerIdentity {
  bool available = false;
  std::string text;  ///< canonical; part of the binary key
  std::string path;
  std::string why_not;  ///< where it was looked for, if not available
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual CompilerIdentity identity() const = 0;
  /// The target for a device: "sm_90", or "compute_NN" (PTX of the newest arch the compiler knows) for a newer device.
  virtual Result<std::string> arch_for(const DeviceInfo&) = 0;
  /// Told of the kernel of one spec, by its index: from whichever thread compiled it, and from several at once.
  using Done = std::function<void(std::size_t, Result<Binary>)>;
  /// Thread-safe. Calls `done` once for every spec, as soon as its kernel (host: its translation unit, of several
  /// specs) is compiled, and returns after the last; up to `threads` at once. A failure carries the program log, the
  /// options, the arch, the compiler's version and path. `done` must not throw.
  virtual void compile(std::span<const KernelSpec> specs, const std::string& arch, int threads, const Done& done) = 0;
  /// The same, waited for: in the order of `specs`.
  std::vector<Result<Binary>> compile(std::span<const KernelSpec> specs, const std::string& arch, int threads);
  /// Version string; opens the compiler where it must.
  virtual Result<std::string> version() = 0;
};

}  // namespace sl
