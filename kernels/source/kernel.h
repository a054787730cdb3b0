/* Compiles or loads a posted kernel, checks its launch configuration, and launches it. */
#ifndef RL_SOURCE_KERNEL_H
#define RL_SOURCE_KERNEL_H

#include <cuda_runtime.h>

#include "device/device.h"
#include "nvrtc/nvrtc.h"
#include "source/module_variables.h"
#include "source/source.h"

typedef struct rl_source_kernel {
  const rl_source_request *request; /* has the launch configuration */
  rl_nvrtc_result compiled;         /* empty for a posted binary */
  cudaLibrary_t library;
  const void *function; /* a cudaKernel_t, for cudaLaunchKernelExC */
  cudaFuncAttributes attributes;
  rl_module_variables *variables;
} rl_source_kernel;

/* Compiles source->request.code with the options of a variant, or loads the posted binary. Returns -1 with RL_INPUT and a JSON
 * pointer when the code does not compile, the binary does not load, the kernel's parameters do not match the posted arguments,
 * or a block, a cluster or a cooperative grid does not fit on the device. *source must outlive the kernel. Close the kernel also
 * after a failure. */
int rl_source_kernel_open(rl_device *device, const rl_source *source, int variant, rl_source_kernel *kernel, rl_error *err);
/* Enqueues a launch. arguments: a pointer to the value of each argument. */
int rl_source_kernel_launch(const rl_source_kernel *kernel, void *const *arguments, rl_stream stream, rl_error *err);
void rl_source_kernel_close(rl_source_kernel *kernel); /* *kernel may be all zeros */

#endif
