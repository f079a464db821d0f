// driver_api.hpp against the toolkit's <cuda.h>, where there is one: the numbers that were copied are the right ones.
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

#include <type_traits>

#include "device/cuda/driver_api.hpp"

namespace {

TEST(CudaAbi, NumbersAreTheToolkits) {
#ifdef CUDA_VERSION
  namespace sc = sl::cuda;
  const struct {
    int ours, theirs;
  } numbers[] = {
      {sc::cuda_out_of_memory, CUDA_ERROR_OUT_OF_MEMORY},
      {sc::cuda_not_initialized, CUDA_ERROR_NOT_INITIALIZED},
      {sc::cuda_stub_library, CUDA_ERROR_STUB_LIBRARY},
      {sc::cuda_no_device, CUDA_ERROR_NO_DEVICE},
      {sc::cuda_invalid_image, CUDA_ERROR_INVALID_IMAGE},
      {sc::cuda_no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU},
      {sc::cuda_unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
      {sc::cuda_illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS},
      {sc::cuda_context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED},
      {sc::cuda_launch_failed, CUDA_ERROR_LAUNCH_FAILED},
      {sc::cuda_stream_capture_implicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT},
      {sc::attribute_sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {sc::attribute_l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {sc::attribute_threads_per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
      {sc::attribute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {sc::attribute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {sc::attribute_smem_per_sm, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
      {sc::attribute_registers_per_sm, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
      {sc::attribute_smem_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
      {sc::function_static_smem, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
      {sc::function_max_dynamic_smem, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
      {sc::jit_error_log_buffer, CU_JIT_ERROR_LOG_BUFFER},
      {sc::jit_error_log_buffer_size, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
      {sc::capture_relaxed, CU_STREAM_CAPTURE_MODE_RELAXED},
      {sc::capture_invalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED},
      {sc::stream_non_blocking, CU_STREAM_NON_BLOCKING},
  };
  for (const auto& number : numbers) EXPECT_EQ(number.ours, number.theirs);
  static_assert(std::is_same_v<sc::CUdeviceptr, CUdeviceptr>);
  static_assert(std::is_same_v<sc::CUdevice, CUdevice>);
  static_assert(sizeof(sc::CUresult) == sizeof(CUresult));
#else
  GTEST_SKIP() << "no <cuda.h>: install the CUDA toolkit to check against it";
#endif
}

}  // namespace
