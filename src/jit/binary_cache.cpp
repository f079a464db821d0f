#include "jit/binary_cache.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "jit/binary_cache_memory.hpp"

namespace sl {
namespace {

constexpr std::size_t memory_bytes = std::size_t{64} << 20;  // some thousand kernels

/// Stands in where no compiler was given.
class NoCompiler final : public Compiler {
 public:
  CompilerIdentity identity() const override { return {false, {}, {}, why}; }
  Result<std::string> arch_for(const DeviceInfo&) override { return error(); }
  std::vector<Result<Binary>> compile(std::span<const KernelSpec> specs, const std::string&, int) override {
    return std::vector<Result<Binary>>(specs.size(), error());
  }
  Result<std::string> version() override { return error(); }

 private:
  static constexpr const char* why = "no compiler was given";
  static Error error() { return {Code::environment, why}; }
};

StoreEntry alias_entry(const Digest& key, const Binary& binary) {
  const nlohmann::json meta{{"what", "alias"}, {"entry", binary.entry}, {"of", key.hex()}};
  return {meta.dump(), key.hex()};
}

std::optional<Digest> parse_digest(const std::string& hex) {
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  return Digest{std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
}

}  // namespace

struct BinaryCache::Impl {
  Impl(std::shared_ptr<Compiler> c, std::shared_ptr<FileStore> s, const Log& l)
      : compiler(c != nullptr ? std::move(c) : std::make_shared<NoCompiler>()), store(std::move(s)), log(l) {}

  /// A spec that this call must finish, having claimed its key.
  struct Owned {
    std::size_t index;
    Digest key;
    std::shared_ptr<BinaryFlight> flight;
  };
  void finish(const Owned& owned, BinaryResult result) { memory.finish(owned.key, owned.flight, std::move(result)); }

  std::string key_arch(const DeviceInfo&) const;
  std::shared_ptr<const Binary> from_store(const KernelSpec&, const Digest& key) const;
  std::shared_ptr<const Binary> find_stored(const KernelSpec&, const std::string& arch, const Digest& key,
                                            bool compiler_available) const;
  void serve(std::span<const KernelSpec>, const DeviceInfo&, const std::string& arch, const CompilerIdentity&,
             std::span<const Owned> owned, int threads);
  void compile(std::span<const KernelSpec>, const DeviceInfo&, const std::string& arch, const CompilerIdentity&,
               std::span<const Owned> missing, int threads);
  Error nothing_found(const KernelSpec&, const std::string& arch, const CompilerIdentity&) const;

  const std::shared_ptr<Compiler> compiler;
  const std::shared_ptr<FileStore> store;
  const Log& log;
  JitCounters counters;
  BinaryMemory memory{memory_bytes};
};

// A GPU's binaries go by the device's own "sm_NN", even where NVRTC is too old for it and makes PTX of another:
// together with the compiler's identity it determines the target, and it is known without opening NVRTC.
std::string BinaryCache::Impl::key_arch(const DeviceInfo& device) const {
  if (device.backend == "cuda") return "sm_" + std::to_string(device.capability);
  const auto arch = compiler->arch_for(device);
  return arch.ok() ? *arch : device.backend;
}

std::shared_ptr<const Binary> BinaryCache::Impl::from_store(const KernelSpec& spec, const Digest& key) const {
  const auto entry = store->get(key);
  if (!entry) return nullptr;
  auto binary = binary_from_entry(*entry);
  if (binary.ok() && binary->entry != spec.entry())
    binary = Error{Code::invalid, "binary entry of kernel " + binary->entry + " where " + spec.entry() + " belongs"};
  if (!binary.ok()) {
    log.warn_once("binary entry " + key.hex(), "ignoring entry " + key.hex() + ": " + binary.error().message);
    return nullptr;
  }
  return std::make_shared<const Binary>(std::move(binary).value());
}

std::shared_ptr<const Binary> BinaryCache::Impl::find_stored(const KernelSpec& spec, const std::string& arch,
                                                             const Digest& key, bool compiler_available) const {
  if (store == nullptr) return nullptr;
  if (auto found = from_store(spec, key)) return found;
  if (compiler_available) return nullptr;  // another compiler's code is stale where it can be made afresh
  const auto alias = store->get(binary_alias_key(spec, arch));
  const auto target = alias ? parse_digest(alias->payload) : std::nullopt;
  return target ? from_store(spec, *target) : nullptr;
}

Error BinaryCache::Impl::nothing_found(const KernelSpec& spec, const std::string& arch,
                                       const CompilerIdentity& identity) const {
  const std::string where = store == nullptr || store->options().directory.empty()
                                ? "there is no binary store (SLUICE_CACHE_DIR)"
                                : "the binary store " + store->options().directory.string() + " has none";
  return {Code::environment, "kernel " + spec.canonical() + " for " + arch + ": " + where +
                                 ", and it cannot be compiled: " + identity.why_not};
}

void BinaryCache::Impl::compile(std::span<const KernelSpec> specs, const DeviceInfo& device, const std::string& arch,
                                const CompilerIdentity& identity, std::span<const Owned> missing, int threads) {
  const auto fail_all = [&](const Error& error) {
    for (const Owned& owned : missing) finish(owned, error);
  };
  if (!identity.available) {
    for (const Owned& owned : missing) finish(owned, nothing_found(specs[owned.index], arch, identity));
    return;
  }
  const auto target = compiler->arch_for(device);
  if (!target.ok()) return fail_all(target.error());
  std::vector<KernelSpec> batch;
  for (const Owned& owned : missing) batch.push_back(specs[owned.index]);
  auto compiled = compiler->compile(batch, *target, threads);
  if (compiled.size() != missing.size())
    return fail_all({Code::internal, "the compiler answered " + std::to_string(compiled.size()) + " kernels of " +
                                         std::to_string(missing.size())});
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const Owned& owned = missing[i];
    if (!compiled[i].ok()) {
      ++counters.compile_failures;
      finish(owned, std::move(compiled[i]).error());
      continue;
    }
    ++counters.compiles;
    auto binary = std::make_shared<const Binary>(std::move(compiled[i]).value());
    finish(owned, binary);  // waiters first: writing to disk is slow
    if (store == nullptr) continue;
    Status stored = store->put(owned.key, to_entry(*binary, identity));
    if (stored.ok()) stored = store->put(binary_alias_key(specs[owned.index], arch), alias_entry(owned.key, *binary));
    if (!stored.ok()) log.write(LogLevel::debug, "kernel not stored: " + stored.error().message);
  }
}

void BinaryCache::Impl::serve(std::span<const KernelSpec> specs, const DeviceInfo& device, const std::string& arch,
                              const CompilerIdentity& identity, std::span<const Owned> owned, int threads) {
  std::vector<Owned> missing;
  for (const Owned& own : owned) {
    if (auto found = find_stored(specs[own.index], arch, own.key, identity.available)) {
      ++counters.binary_hits;
      finish(own, std::move(found));
    } else {
      missing.push_back(own);
    }
  }
  if (!missing.empty()) compile(specs, device, arch, identity, missing, threads);
}

BinaryCache::BinaryCache(std::shared_ptr<Compiler> compiler, std::shared_ptr<FileStore> store, const Log& log)
    : impl_(std::make_unique<Impl>(std::move(compiler), std::move(store), log)) {}

BinaryCache::~BinaryCache() = default;

std::vector<BinaryResult> BinaryCache::get(std::span<const KernelSpec> specs, const DeviceInfo& device, int threads) {
  Impl& impl = *impl_;
  if (threads <= 0) threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  const std::string arch = impl.key_arch(device);
  const CompilerIdentity identity = impl.compiler->identity();

  std::vector<BinaryMemory::Claim> claims;
  std::vector<Impl::Owned> owned;
  claims.reserve(specs.size());
  owned.reserve(specs.size());
  std::optional<Error> thrown;
  try {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const Digest key = binary_key(specs[i], arch, identity);
      claims.push_back(impl.memory.claim(key));
      if (claims.back().owner) owned.push_back({i, key, claims.back().flight});
    }
    impl.serve(specs, device, arch, identity, owned, threads);
  } catch (const std::exception& error) {
    // No memory, no thread: every claimed flight still ends, so that nobody waits for ever and no key is poisoned.
    thrown = Error{Code::internal, std::string("fetching or compiling kernels: ") + error.what()};
    for (const Impl::Owned& own : owned) impl.finish(own, *thrown);
  }

  // Own flights first, then others': two calls that wait for each other's keys have both finished their own.
  std::vector<BinaryResult> results;
  for (const auto& claim : claims) {
    if (!claim.owner) ++impl.counters.binary_memory_hits;
    results.push_back(claim.ready != nullptr ? BinaryResult(claim.ready) : claim.flight->wait());
  }
  while (results.size() < specs.size()) results.push_back(*thrown);
  return results;
}

const JitCounters& BinaryCache::counters() const { return impl_->counters; }
Compiler& BinaryCache::compiler() { return *impl_->compiler; }

}  // namespace sl
