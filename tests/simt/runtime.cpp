/* Implements the functions of the CUDA runtime that launchers and tests call. Device memory is host memory from posix_memalign,
 * so that AddressSanitizer knows its bounds. All calls are synchronous. */
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>

#include "emulator.h"

static cudaError_t last_error = cudaSuccess;
uint32_t simt_max_cluster = 16;

namespace simt {
cudaError_t set_last_error(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}
}  // namespace simt

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = 9; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
    case cudaDevAttrMultiProcessorCount: *value = 2; return cudaSuccess;
    case cudaDevAttrClusterLaunch: *value = 1; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = simt::MAX_SHARED_BYTES; return cudaSuccess;
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t status = last_error;
  last_error = cudaSuccess;
  return status;
}

const char *cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess ? "no error" : "refused by the emulator of tests/simt";
}

const char *cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    default: return "another error";
  }
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  return posix_memalign(memory, 256, bytes) ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFree(void *memory) {
  free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) {
  memset(memory, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t) { return cudaMemset(memory, value, bytes); }

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

/* Streams and events are NULL. */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = NULL;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = NULL;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
  simt::kernel_attributes &attributes = simt::attributes_of(kernel);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 0 && value <= simt::MAX_SHARED_BYTES)
    attributes.max_dynamic_bytes = (size_t)value;
  else if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    attributes.max_cluster = value ? simt_max_cluster : simt::PORTABLE_CLUSTER;
  else return cudaErrorInvalidValue;
  return cudaSuccess;
}
}
