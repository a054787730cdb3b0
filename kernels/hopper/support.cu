/* Implements support.h: a kernel reports for which target it was compiled. */
#include "hopper/support.h"

#include <cuda_runtime.h>

/* Sets *has_wgmma to whether the kernels of this build use wgmma on this device. */
static __global__ void report_wgmma(int *has_wgmma) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  *has_wgmma = 1;
#else
  *has_wgmma = 0;
#endif
}

bool rl_hopper_has_wgmma(const rl_device *device) {
  int major = 0, result = 0, *reported = NULL;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device->index) != cudaSuccess || major != 9) return false;
  if (cudaMalloc((void **)&reported, sizeof *reported) != cudaSuccess) return cudaGetLastError(), false;
  report_wgmma<<<1, 1, 0, (cudaStream_t)device->stream>>>(reported);
  if (cudaMemcpyAsync(&result, reported, sizeof result, cudaMemcpyDeviceToHost, (cudaStream_t)device->stream) != cudaSuccess ||
      cudaStreamSynchronize((cudaStream_t)device->stream) != cudaSuccess)
    result = 0;
  cudaFree(reported);
  (void)cudaGetLastError();
  return result != 0;
}
