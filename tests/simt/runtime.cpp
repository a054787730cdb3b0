/* The part of the CUDA runtime that launchers and tests call, on host memory: device memory is malloc's, so that AddressSanitizer
 * knows its bounds; everything is done when a call returns. */
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>

#include "machine.h"

static cudaError_t last = cudaSuccess;
uint32_t simt_most_cluster = 16;

namespace simt {
cudaError_t note_launch(cudaError_t status) {
  if (status != cudaSuccess) last = status;
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
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = simt::MOST_SHARED_BYTES; return cudaSuccess;
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t status = last;
  last = cudaSuccess;
  return status;
}

const char *cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess ? "no error" : "refused by the machine of tests/simt";
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

/* Streams and events: NULL, since everything is done at once. */
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
  simt::allowed &of = simt::allowed_to(kernel);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 0 && value <= simt::MOST_SHARED_BYTES)
    of.dynamic_bytes = (size_t)value;
  else if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    of.cluster = value ? simt_most_cluster : simt::PORTABLE_CLUSTER;
  else return cudaErrorInvalidValue;
  return cudaSuccess;
}
}
