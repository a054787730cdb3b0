/* A posted kernel on a device: compiled or loaded, checked against the launch configuration, and launched. */
#ifndef RL_SOURCE_KERNEL_H
#define RL_SOURCE_KERNEL_H

#include <cuda_runtime.h>

#include "device/device.h"
#include "nvrtc/nvrtc.h"
#include "source/module_variables.h"
#include "source/source.h"

typedef struct rl_source_kernel {
  const rl_source_request *request; /* grid, block, cluster, ... of a launch */
  rl_nvrtc_result compiled;         /* empty for a posted binary */
  cudaLibrary_t library;
  const void *function; /* a cudaKernel_t, for cudaLaunchKernelExC */
  cudaFuncAttributes attributes;
  rl_module_variables *variables;
} rl_source_kernel;

/* Compiles source->request.code with the options of a variant, or loads the posted binary. RL_INPUT with a JSON pointer: it does
 * not compile or load, its parameters are not the posted arguments, or a block, a cluster or a cooperative grid does not fit on
 * the device. *source must outlive the kernel; close the kernel in any case. */
int rl_source_kernel_open(rl_device *device, const rl_source *source, int variant, rl_source_kernel *kernel, rl_error *err);
/* Enqueues a launch. arguments: a pointer to the value of each argument. */
int rl_source_kernel_launch(const rl_source_kernel *kernel, void *const *arguments, rl_stream stream, rl_error *err);
void rl_source_kernel_close(rl_source_kernel *kernel); /* one that is zeroed is allowed */

#endif
