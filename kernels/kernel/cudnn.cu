/* Implements cudnn.cuh: opens, launches and closes operators that are one execution plan of cuDNN. */
#include "kernel/cudnn.cuh"

#include <cstdlib>

/* State of the engine, stored in rl_kernel_instance.engine_state. */
typedef struct engine {
  rl_device *device;
  cudnnHandle_t cudnn;
  rl_dnn *plan;
  void *workspace;
  rl_open_measurement rank;
} engine;

void rl_kernel_cudnn_close(void *opaque) {
  engine *self = (engine *)opaque;
  rl_dnn_close(self->plan);
  self->device->ops->release(self->device, self->workspace);
  if (self->cudnn) cudnnDestroy(self->cudnn);
  free(self);
}

int rl_kernel_cudnn_open(rl_kernel_instance *kernel, rl_kernel_open_plan *open_plan, rl_error *err) {
  rl_device *device = kernel->base.device;
  engine *self = (engine *)calloc(1, sizeof *self);
  if (!self) return rl_fail_errno(err, "preparing cuDNN");
  kernel->engine_state = self;
  self->device = device;
  if (rl_tune_set_cache_key_prefix(device, err) < 0) return -1;
  if (rl_cudnn_check(cudnnCreate(&self->cudnn), "starting cuDNN", err) < 0) return -1;
  if (open_plan(kernel, self->cudnn, &self->plan, err) < 0) return rl_kernel_fail_unsupported(err);
  const rl_dnn_choice *chosen = rl_dnn_read_choice(self->plan);
  if (chosen->workspace_bytes > 0 &&
      device->ops->allocate(device, RL_MEMORY_WORKSPACE, chosen->workspace_bytes, &self->workspace, err) < 0)
    return -1;
  rl_kernel_record_algorithm(kernel, chosen->list_index, chosen->deterministic, &self->rank);
  return rl_dnn_set_workspace(self->plan, self->workspace, err);
}

int rl_kernel_cudnn_launch(const rl_kernel_instance *kernel, cudaStream_t stream, rl_error *err) {
  return rl_dnn_enqueue(((engine *)kernel->engine_state)->plan, stream, err);
}
