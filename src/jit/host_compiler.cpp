#include "jit/host_compiler.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "jit/backends.hpp"
#include "jit/host_compiler_process.hpp"

// Under an AddressSanitizer build of Sluice the kernels are instrumented too, so that it reaches into kernel code.
#if defined(__SANITIZE_ADDRESS__)
#define SLUICE_HOST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLUICE_HOST_ASAN 1
#endif
#endif

namespace sl {
namespace {

/// Low optimisation: tests compile many kernels and run each briefly. No -march: see HostCompiler::identity().
constexpr const char* flags[] = {
    "-std=c++20",
    "-O1",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-w",
    "-DSLUICE_HOST",
#ifdef SLUICE_HOST_ASAN
    "-fsanitize=address",
    "-fno-omit-frame-pointer",
#ifdef __clang__
    "-fsanitize-address-use-after-return=never",  // as Sluice itself: a second stack for every fiber costs too much
#endif
#endif
#if defined(SLUICE_HOST_ASAN) || !defined(NDEBUG)
    "-g",  // for reports and debuggers, which find the sources as kernels/...
#endif
};
#if defined(SLUICE_HOST_ASAN) && defined(__clang__)
// The sanitizer's runtime in this process is that of the clang that built it: no other compiler's code would load.
#define SLUICE_TEXT_OF(x) #x
#define SLUICE_TEXT(x) SLUICE_TEXT_OF(x)
constexpr const char* candidates[] = {"clang++-" SLUICE_TEXT(__clang_major__), "clang++"};
#else
constexpr const char* candidates[] = {"c++", "g++", "clang++"};
#endif
#ifdef SLUICE_HOST_ASAN
constexpr const char* arch_suffix = "-asan";
#else
constexpr const char* arch_suffix = "";
#endif

constexpr std::size_t max_specs_per_unit = 8;  // more gain little over start-up cost and lose parallelism

std::string flag_text() {
  std::string text;
  for (const char* flag : flags) text += (text.empty() ? "" : " ") + std::string(flag);
  return text;
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string machine() {
  struct utsname name {};
  return uname(&name) == 0 ? name.machine : "unknown";
}

CompilerIdentity find_compiler(const Environment& environment) {
  CompilerIdentity identity;
  std::vector<std::string> names(std::begin(candidates), std::end(candidates));
  if (!environment.host_cxx.empty()) names = {environment.host_cxx};
  for (const std::string& name : names) {
    const std::optional<std::string> path = find_executable(name, environment.path);
    struct stat info {};
    if (!path || stat(path->c_str(), &info) != 0) continue;
    identity.available = true;
    identity.path = *path;
    identity.text = "host " + *path + " size=" + std::to_string(info.st_size) +
                    " mtime=" + std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) +
                    " machine=" + machine() + " flags=" + flag_text();
    return identity;
  }
  identity.why_not = environment.host_cxx.empty()
                         ? "no C++ compiler: none of " + join(names) + " is on PATH (" + environment.path +
                               "); install one or set SLUICE_HOST_CXX to its path"
                         : "no C++ compiler: SLUICE_HOST_CXX=" + environment.host_cxx +
                               " is not an executable file (nor the name of one on PATH)";
  return identity;
}

}  // namespace

/// One compile() call: what its translation units share. Sources lie in the root of `directory`. Equal specs are one
/// kernel: `equal` has, at the first of them, the places of all.
struct HostCompiler::Job {
  std::span<const KernelSpec> specs;
  const std::string& arch;
  std::string version;
  const std::filesystem::path& directory;
  const std::vector<std::vector<std::size_t>>& equal;
  const Done& done;

  void finish(std::size_t first, const Result<Binary>& result) const {
    for (const std::size_t index : equal[first]) done(index, result);
  }
};

HostCompiler::HostCompiler(const Environment& environment, const Log& log, std::chrono::milliseconds timeout)
    : log_(log), timeout_(timeout), identity_(find_compiler(environment)) {}

Result<std::string> HostCompiler::arch_for(const DeviceInfo& device) {
  if (device.backend != "host") {
    return Error{Code::unsupported, "the host compiler builds for the host device only, not for " + device.name +
                                        " (backend " + device.backend + ")"};
  }
  const std::string type = machine();
  return std::string("host") + (type == "x86_64" ? "" : "-" + type) + arch_suffix;
}

Result<std::string> HostCompiler::version() {
  if (!identity_.available) return Error{Code::environment, identity_.why_not};
  const std::lock_guard lock(version_mutex_);
  if (version_.empty()) {
    SL_ASSIGN(const PrivateDirectory scratch, PrivateDirectory::create());
    SL_ASSIGN(const ProcessOutcome outcome, run_process({identity_.path, "--version"}, scratch.path(), timeout_));
    if (outcome.failed()) {
      return Error{Code::environment, identity_.path + " --version " + (outcome.timed_out ? "did not end" : "failed") +
                                          ": " + outcome.output};
    }
    version_ = outcome.output.substr(0, outcome.output.find('\n'));
    if (version_.empty()) version_ = "unknown version";
  }
  return version_;
}

void HostCompiler::compile_chunk(const Job& job, std::span<const std::size_t> chunk) const {
  std::vector<KernelSpec> specs;
  for (const std::size_t index : chunk) specs.push_back(job.specs[index]);
  // Named after its first kernel: distinct among the units of a job, since every kernel is in one unit at a time.
  const std::string stem = specs.front().entry() + "_" + std::to_string(specs.size());
  const std::filesystem::path unit = job.directory / (stem + ".cpp"), object = job.directory / (stem + ".so");
  const auto fail = [&](const Error& error) {
    for (const std::size_t index : chunk) job.finish(index, error);
  };
  if (Status written = write_text_file(unit, translation_unit(specs)); !written) return fail(written.error());

  std::vector<std::string> argv = {identity_.path};
  argv.insert(argv.end(), std::begin(flags), std::end(flags));
  argv.insert(argv.end(), {"-fdebug-prefix-map=" + job.directory.string() + "=kernels", "-I" + job.directory.string(),
                           "-o", object.string(), unit.string()});
  const Result<ProcessOutcome> outcome = run_process(argv, job.directory, timeout_);
  if (!outcome) return fail(outcome.error());

  std::optional<std::string> code;
  if (!outcome->failed()) code = read_binary_file(object);
  if (code && !code->empty()) {
    for (const std::size_t index : chunk) {
      job.finish(index, Binary{.format = Binary::Format::shared_object,
                               .code = *code,
                               .entry = job.specs[index].entry(),
                               .arch = job.arch,
                               .compiler = job.version});
    }
    return;
  }
  if (chunk.size() > 1 && !outcome->timed_out) {  // one bad kernel must not take the others down
    for (std::size_t i = 0; i < chunk.size(); ++i) compile_chunk(job, chunk.subspan(i, 1));
    return;
  }
  std::string what = outcome->timed_out ? "was stopped after " + std::to_string(timeout_.count()) + " ms"
                                        : "ended with exit code " + std::to_string(outcome->exit_code);
  std::string kernels;
  for (const KernelSpec& spec : specs) kernels += (kernels.empty() ? "" : ", ") + spec.canonical();
  fail({Code::compile, "kernel " + kernels + " did not compile for " + job.arch + ": " + identity_.path + " (" +
                           job.version + ") " + what + "; options " + flag_text() + "; its output:\n" +
                           outcome->output});
}

void HostCompiler::compile(std::span<const KernelSpec> specs, const std::string& arch, int threads, const Done& done) {
  const auto all = [&](const Error& error) {
    for (std::size_t i = 0; i < specs.size(); ++i) done(i, error);
  };
  const Result<std::string> version = this->version();
  if (!version) return all(version.error());
  const Result<PrivateDirectory> directory = PrivateDirectory::create();
  if (!directory) return all(directory.error());
  for (const std::string_view path : kernel_source_paths()) {
    const Status written = write_text_file(directory->path() / path, kernel_source(path));
    if (!written) return all(written.error());
  }

  std::map<std::string, std::size_t> first;
  std::vector<std::size_t> order;
  std::vector<std::vector<std::size_t>> equal(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto [place, fresh] = first.emplace(specs[i].canonical(), i);
    equal[place->second].push_back(i);
    if (fresh) order.push_back(i);
  }
  const Job job{specs, arch, *version, directory->path(), equal, done};
  std::erase_if(order, [&](std::size_t i) {
    if (!kernel_source(specs[i].source).empty()) return false;
    job.finish(i, Error{Code::compile, "kernel " + specs[i].canonical() + ": there is no kernel source " +
                                           specs[i].source + " in this library"});
    return true;
  });

  // Kernels of one source beside each other: a unit then parses one schedule and not eight.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return specs[a].source < specs[b].source; });

  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t lanes = threads > 0 ? static_cast<std::size_t>(threads) : std::min<std::size_t>(cores, 8);
  const std::size_t chunk_size = std::clamp<std::size_t>((order.size() + lanes - 1) / lanes, 1, max_specs_per_unit);
  const std::size_t chunks = (order.size() + chunk_size - 1) / chunk_size;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < chunks; i = next++) {
      const std::size_t begin = i * chunk_size;
      compile_chunk(job, std::span(order).subspan(begin, std::min(chunk_size, order.size() - begin)));
    }
  };
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t i = 1; i < std::min(lanes, chunks); ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {  // no thread to be had: this one does the rest
    }
    work();
  }
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  log_.write(LogLevel::debug, "host compiler: " + std::to_string(order.size()) + " kernels in " +
                                  std::to_string(chunks) + " units, " + std::to_string(spent.count()) + " ms");
}

std::unique_ptr<Compiler> make_host_compiler(const Environment& environment, const Log& log) {
  return std::make_unique<HostCompiler>(environment, log, std::chrono::seconds(120));
}

}  // namespace sl
