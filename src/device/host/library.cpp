#include "device/host/library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "device/host/sanitizers.hpp"

namespace sl {
namespace {

// AddressSanitizer and gdb read the file when they need a line number: builds that have use for them keep it until the
// library is unloaded, and a killed process leaves it behind.
#ifdef NDEBUG
constexpr bool keep_files = asan::enabled;
#else
constexpr bool keep_files = true;
#endif

Error load_error(std::string what) { return Error{Code::device, "cannot load a host kernel: " + std::move(what)}; }

/// The loader maps pages without looking whether the file has them, so a truncated one must be found before. The
/// section headers are an ELF file's last part.
Status check_elf(const std::string& code) {
  Elf64_Ehdr header;
  if (code.size() < sizeof header || std::memcmp(code.data(), ELFMAG, SELFMAG) != 0)
    return load_error("its " + std::to_string(code.size()) + " bytes are no ELF file");
  std::memcpy(&header, code.data(), sizeof header);
  const std::uint64_t sections = static_cast<std::uint64_t>(header.e_shnum) * header.e_shentsize;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shoff > code.size() || sections > code.size() - header.e_shoff)
    return load_error("its " + std::to_string(code.size()) + " bytes are a part of an ELF file");
  return {};
}

bool write_all(int fd, const std::string& code) {
  for (std::size_t done = 0; done < code.size();) {
    const ssize_t n = write(fd, code.data() + done, code.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

/// The loader takes a path it has seen for the library it has; so no path is used twice while a process lives.
std::string fresh_path() {
  static std::atomic<std::uint64_t> count{0};
  std::error_code error;
  std::filesystem::path base = std::filesystem::temp_directory_path(error);
  if (error) base = "/tmp";
  return (base / ("sluice-" + std::to_string(getpid()) + "-" + std::to_string(count++) + "-XXXXXX.so")).string();
}

std::string loader_message() {
  const char* message = dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc
  return message == nullptr ? "unknown loader error" : message;
}

}  // namespace

Result<std::shared_ptr<const HostLibrary>> HostLibrary::open(const std::string& code) {
  SL_TRY(check_elf(code));
  std::string why;

  // A private file, gone from the directory once it is mapped.
  std::string path = fresh_path();
  if (const int fd = mkostemps(path.data(), 3, O_CLOEXEC); fd >= 0) {
    const bool written = write_all(fd, code);
    why = written ? "" : "cannot write " + path + ": " + std::strerror(errno);
    close(fd);
    void* const handle = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (written && handle == nullptr) why = loader_message();
    const bool keep = keep_files && handle != nullptr;
    if (!keep) unlink(path.c_str());
    if (handle != nullptr) {
      return checked(std::shared_ptr<const HostLibrary>(new HostLibrary(handle, -1, keep ? path : "")));
    }
  } else {
    why = "cannot create " + path + ": " + std::strerror(errno);
  }

  // No place to write, or one where nothing may be executed: a file in memory. Its descriptor stays open, because its
  // number is its name.
  const int fd = memfd_create("sluice-kernel", MFD_CLOEXEC);
  if (fd < 0) return load_error(why + "; and no memory file: " + std::strerror(errno));
  if (!write_all(fd, code)) {
    close(fd);
    return load_error(why + "; and no room in memory: " + std::strerror(errno));
  }
  void* const handle = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    close(fd);
    return load_error(why + "; from memory: " + loader_message());
  }
  return checked(std::shared_ptr<const HostLibrary>(new HostLibrary(handle, fd, "")));
}

Result<std::shared_ptr<const HostLibrary>> HostLibrary::checked(std::shared_ptr<const HostLibrary> library) {
  const void* const abi = library->symbol("sluice_host_abi");
  if (abi == nullptr) return load_error("it has no symbol sluice_host_abi, so the host compiler did not make it");
  if (const int version = *static_cast<const int*>(abi); version != SLUICE_HOST_ABI) {
    return load_error("it was built for version " + std::to_string(version) + " of the host runtime, and this is " +
                      std::to_string(SLUICE_HOST_ABI));
  }
  return library;
}

HostLibrary::~HostLibrary() {
  dlclose(handle_);
  if (fd_ >= 0) close(fd_);
  if (!path_.empty()) unlink(path_.c_str());
}

void* HostLibrary::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

HostKernel::HostKernel(std::shared_ptr<const HostLibrary> library, std::string name, SlHostEntry entry, int max_threads,
                       int dynamic_smem)
    : library_(std::move(library)),
      name_(std::move(name)),
      entry_(entry),
      max_threads_(max_threads),
      dynamic_smem_(dynamic_smem) {
  static std::atomic<std::uint64_t> next{1};
  id_ = next++;
}

}  // namespace sl
