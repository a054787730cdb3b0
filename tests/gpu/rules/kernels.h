/* Declarations that the kernels of this folder share. Each kernel has one performance problem or avoids it: for every rule of
 * daemon/analyze/rules there is a launch on which the rule has a finding, and one on which it has none (test_rules.c pairs
 * them). */
#ifndef RL_TESTS_RULES_KERNELS_H
#define RL_TESTS_RULES_KERNELS_H

#include <cuda_runtime.h>

#include "workload.h"

/* The buffers that all launches share. subject_open in subject_rules.cu allocates them. */
struct rules_buffers {
  static constexpr size_t bytes = size_t{256} << 20;
  uint32_t *from, *to;         /* `bytes` bytes each; `from` holds zeros, `to` receives results */
  uint32_t *compressible;      /* `bytes` bytes that L2 may compress; the same memory as `to` where the device cannot compress */
  cudaTextureObject_t texture; /* linear texture of 32-bit integers over the first MiB of `from` */
  int sm_count;                /* of the device */
};
extern rules_buffers buffers;

/* Launches the kernel with `shared` bytes of dynamic shared memory. Returns 0, or -1 and sets err. */
template <typename... Parameters, typename... Arguments> int launch(rl_stream stream, rl_error *err,
                                                                    void (*kernel)(Parameters...), unsigned blocks,
                                                                    unsigned threads, size_t shared, Arguments... arguments) {
  cudaError_t result = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (result == cudaSuccess) kernel<<<blocks, threads, shared, (cudaStream_t)stream>>>(arguments...);
  if (result == cudaSuccess) result = cudaGetLastError();
  return result == cudaSuccess ? 0 : rl_fail(err, RL_CUDA, result, "%s", cudaGetErrorString(result));
}

/* Initialises an rl_launch: RULES_LAUNCH(name, kernel, blocks, threads per block, bytes of dynamic shared memory, the kernel's
 * arguments...). */
#define RULES_LAUNCH(NAME, ...)                                                                                          \
  {                                                                                                                      \
    NAME, "rules", [](void *, rl_stream stream, rl_error *err) -> int { return launch(stream, err, __VA_ARGS__); }, NULL \
  }

/* The launches that one .cu file of this folder contributes to the step. */
struct rules_launches {
  const rl_launch *items;
  size_t count;
};
extern const rules_launches arithmetic_launches, stall_launches, memory_launches, scheduling_launches, atomic_launches,
    pipeline_launches, held_out_launches;

#endif
