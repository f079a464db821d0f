#include "device/cuda/cuda_device.hpp"

#include "device/cuda/module.hpp"
#include "device/cuda/query.hpp"
#include "device/cuda/recording.hpp"
#include "jit/backends.hpp"

namespace sl::cuda {
namespace {

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
CUstream native(Stream stream) { return static_cast<CUstream>(stream); }

std::string of_bytes(const char* call, std::size_t bytes) {
  return std::string(call) + " of " + std::to_string(bytes) + " bytes";
}

class CudaBuffer final : public Buffer {
 public:
  CudaBuffer(ContextPtr context, CUdeviceptr data, std::size_t size)
      : context_(std::move(context)), data_(data), size_(size) {}
  ~CudaBuffer() override {
    if (data_ == 0) return;
    const CallScope scope(*context_);
    if (scope.ok()) context_->api().mem_free(data_);
  }
  void* data() const override { return reinterpret_cast<void*>(data_); }
  std::size_t size() const override { return size_; }

 private:
  ContextPtr context_;
  CUdeviceptr data_;
  std::size_t size_;
};

std::string launch_text(const CudaKernel& kernel, const Geometry& g) {
  return "launch of " + kernel.entry() + " (grid " + std::to_string(g.grid) + ", block " + std::to_string(g.block) +
         ", " + std::to_string(g.dynamic_smem) + " bytes of dynamic shared memory)";
}

}  // namespace

CudaDevice::CudaDevice(ContextPtr context, DeviceInfo info, std::string driver)
    : context_(std::move(context)), api_(context_->api()), info_(std::move(info)), driver_(std::move(driver)) {}

Status CudaDevice::check(const std::string& call, CUresult result) const {
  if (result == cuda_success) return {};
  return call_failed(api_, call + " on cuda:" + std::to_string(ordinal()), result);
}

Status CudaDevice::refuse_capturing(const char* call, Stream stream) {
  if (!capturing(stream)) return {};
  return Error{Code::not_prepared, std::string(call) + " on cuda:" + std::to_string(ordinal()) +
                                       ": the stream is capturing a CUDA graph, and waiting for it would invalidate "
                                       "the capture; call this before the capture begins"};
}

bool CudaDevice::try_launch(const Kernel& kernel, const Geometry& geometry, const SlParams& params,
                            Stream stream) noexcept {
  const auto& cuda_kernel = static_cast<const CudaKernel&>(kernel);
  return &cuda_kernel.context() == context_.get() && kernel.quick()(kernel, geometry, params, stream);
}

// Only the failures allocate: their messages.
Status CudaDevice::launch(const Kernel& kernel, const Geometry& geometry, const SlParams& params,
                          Stream stream) noexcept {
  const auto& cuda_kernel = static_cast<const CudaKernel&>(kernel);
  if (geometry.grid == 0) return {};  // an empty problem
  try {
    if (&cuda_kernel.context() != context_.get())
      return Error{Code::internal, launch_text(cuda_kernel, geometry) + " on cuda:" + std::to_string(ordinal()) +
                                       ": the kernel was loaded by another Device (cuda:" +
                                       std::to_string(cuda_kernel.context().ordinal()) + ")"};
    if (!launchable(geometry))
      return Error{Code::invalid, launch_text(cuda_kernel, geometry) +
                                      ": the grid must be 1 to 2^31 - 1 blocks of at least one thread"};
    const CUresult result = cuda_kernel.enqueue(geometry, params, stream);
    if (result == cuda_success) return {};
    return check(launch_text(cuda_kernel, geometry), result);
  } catch (...) {  // no memory for the message
    return Error{Code::device, {}};
  }
}

bool CudaDevice::capturing(Stream stream) noexcept {
  if (context_->forked()) return false;
  const ContextScope scope(*context_);
  if (scope.result() != cuda_success) return false;
  int status = capture_none;
  const CUresult result = api_.stream_is_capturing(native(stream), &status);
  // IMPLICIT: the legacy default stream, while another blocking stream of this context captures.
  if (result != cuda_success) return result == cuda_stream_capture_implicit;
  return status != capture_none;
}

Result<std::shared_ptr<const Kernel>> CudaDevice::load(const Binary& binary, int dynamic_smem) {
  return CudaKernel::load(context_, info_, binary, dynamic_smem);
}

Result<std::unique_ptr<Buffer>> CudaDevice::allocate(std::size_t bytes) {
  const CallScope scope(*context_);
  SL_TRY(scope.status("allocate"));
  CUdeviceptr data = 0;
  if (bytes != 0) SL_TRY(check(of_bytes("cuMemAlloc", bytes), api_.mem_alloc(&data, bytes)));
  return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(context_, data, bytes));
}

Result<MemoryUse> CudaDevice::memory() {
  const CallScope scope(*context_);
  SL_TRY(scope.status("memory"));
  MemoryUse use;
  SL_TRY(check("cuMemGetInfo", api_.mem_get_info(&use.free_bytes, &use.total_bytes)));
  return use;
}

Result<Stream> CudaDevice::create_stream() {
  const CallScope scope(*context_);
  SL_TRY(scope.status("create_stream"));
  CUstream stream = nullptr;
  SL_TRY(check("cuStreamCreate", api_.stream_create(&stream, stream_non_blocking)));
  return Stream{stream};
}

void CudaDevice::destroy_stream(Stream stream) noexcept {
  if (stream == nullptr) return;
  const CallScope scope(*context_);
  if (scope.ok()) api_.stream_destroy(native(stream));
}

Status CudaDevice::synchronize(Stream stream) {
  const CallScope scope(*context_);
  SL_TRY(scope.status("synchronize"));
  SL_TRY(refuse_capturing("synchronize", stream));
  return check("cuStreamSynchronize", api_.stream_synchronize(native(stream)));
}

Status CudaDevice::copy_in(void* device, const void* host, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  const CallScope scope(*context_);
  SL_TRY(scope.status("copy_in"));
  SL_TRY(refuse_capturing("copy_in", stream));
  SL_TRY(check(of_bytes("cuMemcpyHtoDAsync", bytes),
               api_.memcpy_htod_async(address(device), host, bytes, native(stream))));
  return check("cuStreamSynchronize", api_.stream_synchronize(native(stream)));
}

Status CudaDevice::copy_out(void* host, const void* device, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  const CallScope scope(*context_);
  SL_TRY(scope.status("copy_out"));
  SL_TRY(refuse_capturing("copy_out", stream));
  SL_TRY(check(of_bytes("cuMemcpyDtoHAsync", bytes),
               api_.memcpy_dtoh_async(host, address(device), bytes, native(stream))));
  return check("cuStreamSynchronize", api_.stream_synchronize(native(stream)));
}

Status CudaDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  const CallScope scope(*context_);
  SL_TRY(scope.status("copy"));
  return check(of_bytes("cuMemcpyDtoDAsync", bytes),
               api_.memcpy_dtod_async(address(to), address(from), bytes, native(stream)));
}

Status CudaDevice::fill(void* device, unsigned char byte, std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  const CallScope scope(*context_);
  SL_TRY(scope.status("fill"));
  return check(of_bytes("cuMemsetD8Async", bytes), api_.memset_d8_async(address(device), byte, bytes, native(stream)));
}

Result<std::unique_ptr<Recording>> CudaDevice::record(Stream stream, const std::function<Status(Stream)>& body) {
  return cuda::record(context_, native(stream), body);
}

Status CudaDevice::call(Stream stream, const std::function<Status(Stream)>& body) {
  const CallScope scope(*context_);
  SL_TRY(scope.status("call"));
  return body(stream);
}

int CudaDevice::clock_mhz() { return context_->forked() ? 0 : sm_clock_mhz(api_, context_->device()); }

}  // namespace sl::cuda

namespace sl {

Result<int> cuda_device_count(const Environment& environment) {
  SL_ASSIGN(const cuda::DriverApi* const api, cuda::load_driver(environment.libcuda));
  int count = 0;
  if (const auto result = api->device_get_count(&count); result != cuda::cuda_success)
    return cuda::call_failed(*api, "cuDeviceGetCount", result);
  return count;
}

Result<std::shared_ptr<Device>> open_cuda_device(int ordinal, const Environment& environment, const Log& log) {
  SL_ASSIGN(const int count, cuda_device_count(environment));
  if (count == 0)
    return Error{Code::environment,
                 "the CUDA driver sees no device: check nvidia-smi, and that CUDA_VISIBLE_DEVICES does not hide it"};
  if (ordinal < 0 || ordinal >= count)
    return Error{
        Code::not_found,
        "no device cuda:" + std::to_string(ordinal) + ": this machine has " + std::to_string(count) +
            (count == 1 ? " CUDA device, cuda:0" : " CUDA devices, cuda:0 to cuda:" + std::to_string(count - 1))};
  SL_ASSIGN(const cuda::DriverApi* const api, cuda::load_driver(environment.libcuda));
  cuda::CUdevice device = 0;
  if (const auto result = api->device_get(&device, ordinal); result != cuda::cuda_success)
    return cuda::call_failed(*api, "cuDeviceGet(" + std::to_string(ordinal) + ")", result);
  SL_ASSIGN(DeviceInfo info, cuda::query_device(*api, device, ordinal));
  SL_ASSIGN(cuda::ContextPtr context, cuda::PrimaryContext::retain(*api, device, ordinal));
  std::string driver = cuda::driver_version_text(*api);
  log.write(LogLevel::debug,
            "cuda:" + std::to_string(ordinal) + " is " + info.name + ", driver " + driver + " (" + api->path + ")");
  return std::shared_ptr<Device>(
      std::make_shared<cuda::CudaDevice>(std::move(context), std::move(info), std::move(driver)));
}

}  // namespace sl
