/* Launches that begin before the one in front of them has ended (programmatic dependent launch, compute capability 9.0): its
 * blocks are placed as the others leave, set up what does not depend on them, and wait. Every kernel of a step that is launched
 * so calls chain_wait before it touches what any kernel before it wrote; what was written two kernels before is safe earlier,
 * since the kernel between them let its follower start only once it had waited itself. Code that a device compiled from the PTX
 * of an older one can't wait: it is launched in turn. */
#ifndef RL_TRAIN_CUDA_CHAIN_H
#define RL_TRAIN_CUDA_CHAIN_H

#include "cuda_check.h"

static __device__ __forceinline__ void chain_wait() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

template <class... Parameters, class... Arguments>
static inline int rl_chain(const char *what, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                           cudaStream_t stream, rl_error *err, Arguments... arguments) {
  cudaFuncAttributes code = {};
  if (rl_cuda_ok(cudaFuncGetAttributes(&code, kernel), what, err)) return -1;
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  if (code.ptxVersion >= 90) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.numAttrs = 1;
  }
  return rl_cuda_ok(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), what, err);
}

#endif
