/* The engine "cuda" of every family: the shared instance with a launcher of the family. */
#include <cstring>

#include "kernel/cuda.h"

template <int (*LAUNCH)(const rl_kernel_instance *, cudaStream_t, rl_error *)>
static int enqueue(void *arg, rl_stream stream, rl_error *err) {
  return LAUNCH((const rl_kernel_instance *)arg, (cudaStream_t)stream, err);
}

template <int (*LAUNCH)(const rl_kernel_instance *, cudaStream_t, rl_error *)>
static int open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_kernel_instance *made;
  if (rl_kernel_open(device, params, enqueue<LAUNCH>, &made, err)) return -1;
  *instance = &made->base;
  return 0;
}

#define ENGINE(NAME)                                                                                                         \
  extern const rl_engine rl_kernel_cuda_##NAME;                                                                              \
  const rl_engine rl_kernel_cuda_##NAME = {"cuda", #NAME, RL_DEVICE_CUDA, "one kernel, hand-written", rl_kernel_supports,    \
                                           open_engine<rl_kernel_launch_##NAME>};
extern "C" {
RL_KERNEL_FAMILIES(ENGINE)
}
