#include "device/cuda/module.hpp"

#include <elf.h>

#include <array>
#include <cstring>

namespace sl::cuda {
namespace {

constexpr int default_smem = 48 * 1024;  // what a block gets on every GPU without opting in
constexpr std::size_t log_bytes = 16 * 1024;

/// The driver is not told how long a cubin is and reads where its headers point, so a truncated one may crash it: what
/// the headers name must lie inside.
bool whole_cubin(const std::string& code) {
  Elf64_Ehdr header;
  if (code.size() < sizeof header) return false;
  std::memcpy(&header, code.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  const auto inside = [&](std::uint64_t offset, std::uint64_t bytes) {
    return offset <= code.size() && bytes <= code.size() - offset;
  };
  if (!inside(header.e_phoff, std::uint64_t{header.e_phnum} * header.e_phentsize)) return false;
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return false;
  if (!inside(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) return false;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, code.data() + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS && !inside(section.sh_offset, section.sh_size)) return false;
  }
  return true;
}

std::string title(const Binary& binary, const DeviceInfo& info) {
  return "loading " + binary.entry + " (" + binary.arch + ", " + std::to_string(binary.code.size()) + " bytes by " +
         binary.compiler + ") on " + info.name;
}

Error load_failed(const DriverApi& api, const Binary& binary, const DeviceInfo& info, CUresult result,
                  const char* log) {
  Error error = call_failed(api, title(binary, info), result);
  int version = 0;
  api.driver_get_version(&version);
  const std::string driver = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  if (result == cuda_unsupported_ptx_version)
    error.message += "; the PTX is newer than the driver (CUDA " + driver +
                     "): update the driver, or point SLUICE_NVRTC at an NVRTC of CUDA " + driver + " or older";
  if (result == cuda_no_binary_for_gpu) error.message += "; the binary is for another architecture";
  if (*log != '\0') error.message += std::string("; driver log: ") + log;
  return error;
}

}  // namespace

CudaKernel::CudaKernel(ContextPtr context, CUmodule module, std::string entry)
    : Kernel(&quick_launch),
      launch_kernel_(context->api().launch_kernel),
      context_(std::move(context)),
      module_(module),
      entry_(std::move(entry)) {}

inline CUresult CudaKernel::enqueue_as_is(const Geometry& geometry, const SlParams& params,
                                          Stream stream) const noexcept {
  void* arguments[] = {const_cast<SlParams*>(&params)};
  return launch_kernel_(function_, static_cast<unsigned>(geometry.grid), 1, 1, static_cast<unsigned>(geometry.block), 1,
                        1, static_cast<unsigned>(geometry.dynamic_smem), static_cast<CUstream>(stream), arguments,
                        nullptr);
}

/// `refused`: what a launch in the current context has come to; it is not made again where that is ours.
[[gnu::noinline]] CUresult CudaKernel::enqueue_in_context(const Geometry& geometry, const SlParams& params,
                                                          Stream stream, CUresult refused) const noexcept {
  const ContextScope scope(*context_);
  if (scope.result() != cuda_success) return scope.result();
  if (refused != cuda_success && !scope.pushed()) return refused;
  return enqueue_as_is(geometry, params, stream);
}

// Asking the driver which context is current takes as long as the rest of a prepared plan's call. A stream belongs to a
// context, and the driver refuses a kernel of one context where another is current: so launch first, and ask only after
// a refusal, which enqueues nothing. The default streams are the current context's: there it has to be known first.
CUresult CudaKernel::enqueue(const Geometry& geometry, const SlParams& params, Stream stream) const noexcept {
  // CU_STREAM_LEGACY is 1, CU_STREAM_PER_THREAD 2, and 0 is one of them.
  constexpr std::uintptr_t last_default_stream = 2;
  if (reinterpret_cast<std::uintptr_t>(stream) <= last_default_stream) {
    return enqueue_in_context(geometry, params, stream, cuda_success);
  }
  const CUresult result = enqueue_as_is(geometry, params, stream);
  if (result == cuda_success) [[likely]]
    return result;
  return enqueue_in_context(geometry, params, stream, result);
}

[[gnu::hot]] bool CudaKernel::quick_launch(const Kernel& kernel, const Geometry& geometry, const SlParams& params,
                                           Stream stream) noexcept {
  return launchable(geometry) &&
         static_cast<const CudaKernel&>(kernel).enqueue(geometry, params, stream) == cuda_success;
}

Result<std::shared_ptr<const Kernel>> CudaKernel::load(const ContextPtr& context, const DeviceInfo& info,
                                                       const Binary& binary, int dynamic_smem) {
  const DriverApi& api = context->api();
  if (binary.format == Binary::Format::shared_object)
    return Error{Code::invalid, title(binary, info) + ": this is code for the host device, not a cubin or PTX"};
  if (binary.format == Binary::Format::cubin && !whole_cubin(binary.code))
    return Error{Code::device, title(binary, info) + ": the cubin is truncated or not an ELF file; compile it again"};

  const CallScope scope(*context);
  SL_TRY(scope.status("load"));
  std::array<char, log_bytes> log{};
  std::array<int, 2> options{jit_error_log_buffer, jit_error_log_buffer_size};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  CUmodule module = nullptr;
  // c_str(): PTX must end in a zero byte.
  const CUresult result = api.module_load_data_ex(&module, binary.code.c_str(), static_cast<unsigned>(options.size()),
                                                  options.data(), values.data());
  if (result != cuda_success) return load_failed(api, binary, info, result, log.data());
  const std::shared_ptr<CudaKernel> kernel(new CudaKernel(context, module, binary.entry));
  SL_TRY(kernel->prepare(info, dynamic_smem));
  return std::shared_ptr<const Kernel>(kernel);
}

Status CudaKernel::prepare(const DeviceInfo& info, int dynamic_smem) {
  const DriverApi& api = context_->api();
  const auto failed = [&](const std::string& call, CUresult result) {
    return call_failed(api, call + " of kernel " + entry_, result);
  };
  if (const CUresult result = api.module_get_function(&function_, module_, entry_.c_str()); result != cuda_success)
    return failed("cuModuleGetFunction", result);
  // Under lazy loading (the default since CUDA 12.2) the first launch would load, which waits for the GPU and must not
  // happen in a capture: load now.
  if (api.func_load != nullptr)
    if (const CUresult result = api.func_load(function_); result != cuda_success) return failed("cuFuncLoad", result);
  int static_smem = 0;
  if (const CUresult result = api.func_get_attribute(&static_smem, function_static_smem, function_);
      result != cuda_success)
    return failed("cuFuncGetAttribute", result);
  if (dynamic_smem < 0 || static_smem + dynamic_smem > std::max(info.smem_optin, default_smem))
    return Error{Code::invalid, "kernel " + entry_ + " wants " + std::to_string(dynamic_smem) +
                                    " bytes of dynamic and " + std::to_string(static_smem) +
                                    " of static shared memory a block; " + info.name + " has " +
                                    std::to_string(info.smem_optin)};
  if (static_smem + dynamic_smem > default_smem)
    if (const CUresult result = api.func_set_attribute(function_, function_max_dynamic_smem, dynamic_smem);
        result != cuda_success)
      return failed("cuFuncSetAttribute(max dynamic shared memory, " + std::to_string(dynamic_smem) + ")", result);
  return {};
}

CudaKernel::~CudaKernel() {
  const CallScope scope(*context_);
  if (scope.ok()) context_->api().module_unload(module_);
}

}  // namespace sl::cuda
