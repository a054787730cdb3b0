/* Programmatic dependent launch (PDL, compute capability 9.0): the blocks of a kernel start while those of the previous kernel in
 * the stream exit. The blocks first do work that does not depend on the previous kernel, then call pdl_wait.
 *
 * RAW, WAW: a kernel that is launched by rl_pdl_launch must call pdl_wait before it accesses memory that the previous kernel
 * writes. The writes of all earlier kernels are visible from the start, because the previous kernel allows this launch only after
 * its own pdl_wait. Kernels that were compiled for an architecture below 9.0 are launched in stream order, without PDL. */
#ifndef RL_KERNELS_PDL_H
#define RL_KERNELS_PDL_H

#include "cuda_check.h"

/* Waits until the previous kernel has completed and its writes are visible, then allows the next kernel to be launched. All
 * threads of the grid call it. */
static __device__ __forceinline__ void pdl_wait() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* Sizes of a launch. */
typedef struct rl_pdl_sizes {
  dim3 grid, block;
  size_t shared_bytes;     /* of dynamic shared memory */
  uint32_t cluster_blocks; /* 1: no clusters */
} rl_pdl_sizes;

/* Launches a kernel with PDL, if it was compiled for 9.0 or later. Returns 0, or -1 with err. operation: names the launch in the
 * error message (cuda_check.h). */
template <class... Parameters, class... Arguments>
static inline int rl_pdl_launch_sizes(const char *operation, void (*kernel)(Parameters...), rl_pdl_sizes sizes,
                                      cudaStream_t stream, rl_error *err, Arguments... arguments) {
  cudaFuncAttributes function_attributes = {};
  if (rl_cuda_check(cudaFuncGetAttributes(&function_attributes, kernel), operation, err) < 0) return -1;
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = sizes.grid;
  config.blockDim = sizes.block;
  config.dynamicSmemBytes = sizes.shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (function_attributes.ptxVersion >= 90) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (sizes.cluster_blocks > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs++].val.clusterDim = {sizes.cluster_blocks, 1, 1};
  }
  return rl_cuda_check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), operation, err);
}

/* Like rl_pdl_launch_sizes, without clusters. */
template <class... Parameters, class... Arguments>
static inline int rl_pdl_launch(const char *operation, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                                cudaStream_t stream, rl_error *err, Arguments... arguments) {
  return rl_pdl_launch_sizes(operation, kernel, {grid, block, shared_bytes, 1}, stream, err, arguments...);
}

#endif
