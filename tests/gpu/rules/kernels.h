/* Kernels that each have one performance problem, or avoid it: for every rule a kernel that triggers it and one that does not. */
#ifndef RL_TESTS_RULES_KERNELS_H
#define RL_TESTS_RULES_KERNELS_H

#include <cuda_runtime.h>

#include "workload.h"

/* Buffers that all launches share; filled by subject_open. */
struct rules_buffers {
  static constexpr size_t bytes = size_t{256} << 20;
  uint32_t *from, *to;         /* `bytes` each; from is zero */
  uint32_t *compressible;      /* `bytes` that L2 may compress; `to` where the device does not support it */
  cudaTextureObject_t texture; /* the first MiB of from */
  int sm_count;
};
extern rules_buffers buffers;

/* Launches the kernel; -1 and err on failure. */
template <typename... Parameters, typename... Arguments> int launch(rl_stream stream, rl_error *err,
                                                                    void (*kernel)(Parameters...), unsigned blocks,
                                                                    unsigned threads, size_t shared, Arguments... arguments) {
  cudaError_t result = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (result == cudaSuccess) kernel<<<blocks, threads, shared, (cudaStream_t)stream>>>(arguments...);
  if (result == cudaSuccess) result = cudaGetLastError();
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s", cudaGetErrorString(result));
}

/* An rl_launch: RULES_LAUNCH(name, kernel, blocks, threads, dynamic shared bytes, arguments...). */
#define RULES_LAUNCH(NAME, ...)                                                                                          \
  {                                                                                                                      \
    NAME, "rules", [](void *, rl_stream stream, rl_error *err) -> int { return launch(stream, err, __VA_ARGS__); }, NULL \
  }

struct rules_launches {
  const rl_launch *items;
  size_t count;
};
extern const rules_launches arithmetic_launches, stall_launches, memory_launches, scheduling_launches;

#endif
