/* Makes the CUDA engine of a kernel operator from a launcher. Included by .cu files only. */
#ifndef RL_KERNELS_KERNEL_CUDA_H
#define RL_KERNELS_KERNEL_CUDA_H

#include <cuda_runtime.h>

#include "kernel/instance.h"

/* The functions that an operator implements for CUDA. */
typedef struct rl_kernel_launcher {
  /* Enqueues the instance's variant on the stream; may be captured into a graph. */
  int (*launch)(const rl_kernel_instance *instance, cudaStream_t stream, rl_error *err);
  /* Creates the objects that launches need in addition to the buffers (descriptors, plans, workspace), in a struct to which it
   * sets instance->engine_state. NULL: launches need only the buffers. */
  int (*open)(rl_kernel_instance *instance, rl_error *err);
  /* Releases instance->engine_state, also after a failed open; not called while it is NULL. */
  void (*close)(void *engine_state);
} rl_kernel_launcher;

/* Opens an rl_kernel_instance, then calls launcher->open. Launches call `enqueue` with the instance as arg. */
int rl_kernel_cuda_open(rl_device *device, const void *params, const rl_kernel_launcher *launcher,
                        int (*enqueue)(void *arg, rl_stream stream, rl_error *err), rl_instance **instance, rl_error *err);

template <const rl_kernel_launcher *LAUNCHER> static int rl_kernel_enqueue(void *arg, rl_stream stream, rl_error *err) {
  return LAUNCHER->launch((const rl_kernel_instance *)arg, (cudaStream_t)stream, err);
}

/* Implements rl_engine_description.supports. */
static inline int rl_kernel_cuda_supports(const void *params, rl_error *err) {
  return rl_kernel_supports(params, err) < 0 ? -1 : rl_kernel_device_check((const rl_kernel_params *)params, RL_DEVICE_CUDA, err);
}

template <const rl_kernel_launcher *LAUNCHER>
static int rl_kernel_open_engine(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_kernel_cuda_open(device, params, LAUNCHER, rl_kernel_enqueue<LAUNCHER>, instance, err);
}

/* Defines rl_kernel_cuda_NAME, which engines_cuda.cu lists. LAUNCHER is a static const rl_kernel_launcher. */
#define RL_KERNEL_CUDA_ENGINE(NAME, ENGINE, SUMMARY, LAUNCHER)                                                                  \
  static const rl_engine_description description_of_##NAME = {ENGINE, #NAME, RL_DEVICE_CUDA, SUMMARY, rl_kernel_cuda_supports}; \
  extern "C" const rl_engine rl_kernel_cuda_##NAME;                                                                             \
  const rl_engine rl_kernel_cuda_##NAME = {&description_of_##NAME, rl_kernel_open_engine<&LAUNCHER>};
/* RL_KERNEL_CUDA_ENGINE for hand-written kernels that need only the buffers. LAUNCH implements rl_kernel_launcher.launch. */
#define RL_KERNEL_CUDA(NAME, LAUNCH)                             \
  static const rl_kernel_launcher launcher_of_##NAME = {LAUNCH}; \
  RL_KERNEL_CUDA_ENGINE(NAME, "cuda", "hand-written", launcher_of_##NAME)

#endif
