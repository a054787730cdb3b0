/* Calls cudaGetDriverEntryPointByVersion. */
#include "worker/cupti/driver_entry_point.h"

#include <cuda_runtime_api.h>

#include "worker/cupti/check.h"

void *rl_driver_entry_point(const char *name, rl_error *err) {
  enum { CUDA_12_0 = 12000 };
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found;
  cudaError_t result = cudaGetDriverEntryPointByVersion(name, &function, CUDA_12_0, cudaEnableDefault, &found);
  if (rl_cuda_check(result, name, err) < 0) return NULL;
  if (found == cudaDriverEntryPointSuccess) return function;
  rl_fail(err, RL_CUDA, 0, "the driver has no %s", name);
  return NULL;
}
