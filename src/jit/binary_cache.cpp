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
  void compile(std::span<const KernelSpec> specs, const std::string&, int, const Done& done) override {
    for (std::size_t i = 0; i < specs.size(); ++i) done(i, error());
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
  /// One call of get(): its specs and for whom.
  struct Call {
    std::span<const KernelSpec> specs;
    const DeviceInfo& device;
    const std::string& arch;
    const CompilerIdentity& identity;
    int threads;
    const Ready& ready;
  };
  /// Whoever waits for the same key first, then this call's. Only the first result of a flight counts. Where there is
  /// no memory, it throws before anything has happened.
  void finish(const Call& call, const Owned& owned, BinaryResult result) {
    BinaryResult ours = result;
    if (memory.finish(owned.key, owned.flight, std::move(result))) call.ready(owned.index, std::move(ours));
  }
  void finish_rest(const Call&, std::span<const Owned> owned, const std::optional<Error>& why) noexcept;

  std::string key_arch(const DeviceInfo&) const;
  std::shared_ptr<const Binary> from_store(const KernelSpec&, const Digest& key) const;
  std::shared_ptr<const Binary> find_stored(const KernelSpec&, const std::string& arch, const Digest& key,
                                            bool compiler_available) const;
  void serve(const Call&, std::span<const Owned> owned);
  void compile(const Call&, std::span<const Owned> missing);
  void compiled(const Call&, const Owned&, Result<Binary>) noexcept;
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

/// On the thread that compiled it, so that one kernel is written to the store while others are still compiled.
void BinaryCache::Impl::compiled(const Call& call, const Owned& owned, Result<Binary> result) noexcept try {
  if (!result.ok()) {
    ++counters.compile_failures;
    return finish(call, owned, std::move(result).error());
  }
  ++counters.compiles;
  const auto binary = std::make_shared<const Binary>(std::move(result).value());
  finish(call, owned, binary);  // waiters first: writing to disk is slow
  if (store == nullptr) return;
  Status stored = store->put(owned.key, to_entry(*binary, call.identity));
  if (stored.ok()) {
    stored = store->put(binary_alias_key(call.specs[owned.index], call.arch), alias_entry(owned.key, *binary));
  }
  if (!stored.ok()) log.write(LogLevel::debug, "kernel not stored: " + stored.error().message);
} catch (const std::exception&) {  // no memory: finish_rest() sees to what is not finished
}

/// Every claimed flight ends, so that nobody waits for ever and no key is poisoned. A message this short is in the
/// string itself: where there is no memory for the real one, this one needs none.
void BinaryCache::Impl::finish_rest(const Call& call, std::span<const Owned> owned,
                                    const std::optional<Error>& why) noexcept {
  for (const Owned& own : owned) {
    if (!memory.open(own.key, own.flight)) continue;
    try {
      finish(call, own, why ? *why : Error{Code::internal, "no answer"});
    } catch (const std::exception&) {
      finish(call, own, Error{Code::internal, "no memory"});
    }
  }
}

void BinaryCache::Impl::compile(const Call& call, std::span<const Owned> missing) {
  if (!call.identity.available) {
    for (const Owned& owned : missing) {
      finish(call, owned, nothing_found(call.specs[owned.index], call.arch, call.identity));
    }
    return;
  }
  const auto target = compiler->arch_for(call.device);
  if (!target.ok()) {
    for (const Owned& owned : missing) finish(call, owned, target.error());
    return;
  }
  std::vector<KernelSpec> batch;
  for (const Owned& owned : missing) batch.push_back(call.specs[owned.index]);
  compiler->compile(batch, *target, call.threads,
                    [&](std::size_t i, Result<Binary> result) { compiled(call, missing[i], std::move(result)); });
}

void BinaryCache::Impl::serve(const Call& call, std::span<const Owned> owned) {
  std::vector<Owned> missing;
  for (const Owned& own : owned) {
    if (auto found = find_stored(call.specs[own.index], call.arch, own.key, call.identity.available)) {
      ++counters.binary_hits;
      finish(call, own, std::move(found));
    } else {
      missing.push_back(own);
    }
  }
  if (!missing.empty()) compile(call, missing);
}

BinaryCache::BinaryCache(std::shared_ptr<Compiler> compiler, std::shared_ptr<FileStore> store, const Log& log)
    : impl_(std::make_unique<Impl>(std::move(compiler), std::move(store), log)) {}

BinaryCache::~BinaryCache() = default;

void BinaryCache::get(std::span<const KernelSpec> specs, const DeviceInfo& device, int threads, const Ready& ready) {
  Impl& impl = *impl_;
  if (threads <= 0) threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
  const std::string arch = impl.key_arch(device);
  const CompilerIdentity identity = impl.compiler->identity();
  const Impl::Call call{specs, device, arch, identity, threads, ready};

  std::vector<BinaryMemory::Claim> claims;
  std::vector<Impl::Owned> owned;
  claims.reserve(specs.size());
  owned.reserve(specs.size());
  std::optional<Error> failed;
  try {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const Digest key = binary_key(specs[i], arch, identity);
      claims.push_back(impl.memory.claim(key));
      const BinaryMemory::Claim& claim = claims.back();
      if (!claim.owner) ++impl.counters.binary_memory_hits;
      if (claim.ready != nullptr) ready(i, claim.ready);
      if (claim.owner) owned.push_back({i, key, claim.flight});
    }
    impl.serve(call, owned);
  } catch (const std::bad_alloc&) {
    failed = Error{Code::internal, "no memory"};
  } catch (const std::exception& error) {
    failed = Error{Code::internal, std::string("fetching or compiling kernels: ") + error.what()};
  }
  impl.finish_rest(call, owned, failed);

  // Own flights first, then others': two calls that wait for each other's keys have both finished their own.
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (i >= claims.size()) {
      ready(i, *failed);
    } else if (!claims[i].owner && claims[i].ready == nullptr) {
      ready(i, claims[i].flight->wait());
    }
  }
}

std::vector<BinaryResult> BinaryCache::get(std::span<const KernelSpec> specs, const DeviceInfo& device, int threads) {
  std::vector<BinaryResult> results(specs.size(), Error{Code::internal, "no answer"});
  get(specs, device, threads, [&](std::size_t i, BinaryResult result) { results[i] = std::move(result); });
  return results;
}

const JitCounters& BinaryCache::counters() const { return impl_->counters; }
Compiler& BinaryCache::compiler() { return *impl_->compiler; }

}  // namespace sl
