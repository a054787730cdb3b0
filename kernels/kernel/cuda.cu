/* Opens an instance of a kernel operator for a CUDA launcher (cuda.h). */
#include "kernel/cuda.h"

int rl_kernel_cuda_open(rl_device *device, const void *params, const rl_kernel_launcher *launcher,
                        int (*enqueue)(void *arg, rl_stream stream, rl_error *err), rl_instance **instance, rl_error *err) {
  rl_kernel_instance *kernel;
  if (rl_kernel_open(device, params, enqueue, &kernel, err) < 0) return -1;
  const int rc = launcher->open ? launcher->open(kernel, err) : 0;
  if (kernel->engine_state) kernel->engine_close = launcher->close;
  if (rc < 0) {
    kernel->base.ops->close(&kernel->base);
    return -1;
  }
  *instance = &kernel->base;
  return 0;
}
