#include "kernel/cuda.h"

int rl_kernel_cuda_open(rl_device *device, const void *params, const rl_kernel_launcher *launcher,
                        int (*enqueue)(void *arg, rl_stream stream, rl_error *err), rl_instance **instance, rl_error *err) {
  rl_kernel_instance *made;
  if (rl_kernel_open(device, params, enqueue, &made, err)) return -1;
  const int rc = launcher->open ? launcher->open(made, err) : 0;
  if (made->engine) made->engine_close = launcher->close;
  if (rc) {
    made->base.ops->close(&made->base);
    return -1;
  }
  *instance = &made->base;
  return 0;
}
