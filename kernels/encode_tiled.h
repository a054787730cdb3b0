/* Finds the driver's function cuTensorMapEncodeTiled at run time, because the programs do not link the driver. Only .cu files
 * include this header. */
#ifndef RL_KERNELS_ENCODE_TILED_H
#define RL_KERNELS_ENCODE_TILED_H

#include <cuda.h>

#include "cuda_check.h"

typedef CUresult rl_encode_tiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                                 const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static inline int rl_find_encode_tiled(rl_encode_tiled **encode, rl_error *err) {
  void *function = NULL;
  cudaDriverEntryPointQueryResult found;
  if (rl_cuda_check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found),
                    "looking for cuTensorMapEncodeTiled", err) < 0)
    return -1;
  if (found != cudaDriverEntryPointSuccess)
    return rl_fail(err, RL_CUDA, cudaErrorNotSupported, "the driver has no cuTensorMapEncodeTiled");
  *encode = (rl_encode_tiled *)function;
  return 0;
}

#endif
