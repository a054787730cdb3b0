#include "kernel/cudnn.cuh"

#include <cstdlib>

typedef struct engine {
  rl_device *device;
  cudnnHandle_t cudnn;
  rl_dnn *plan;
  void *workspace;
  rl_open_measurement rank;
} engine;

void rl_kernel_cudnn_close(void *closing) {
  engine *own = (engine *)closing;
  rl_dnn_close(own->plan);
  own->device->ops->release(own->device, own->workspace);
  if (own->cudnn) cudnnDestroy(own->cudnn);
  free(own);
}

int rl_kernel_cudnn_open(rl_kernel_instance *kernel, rl_kernel_planner *plan, rl_error *err) {
  rl_device *device = kernel->base.device;
  engine *own = (engine *)calloc(1, sizeof *own);
  if (!own) return rl_fail_errno(err, "preparing cuDNN");
  kernel->engine = own;
  own->device = device;
  if (rl_tune_device(device, err) || rl_cudnn_ok(cudnnCreate(&own->cudnn), "starting cuDNN", err)) return -1;
  if (plan(kernel, own->cudnn, &own->plan, err)) return rl_kernel_refuse(err);
  const rl_dnn_choice *chosen = rl_dnn_chosen(own->plan);
  if (chosen->workspace_bytes > 0 &&
      device->ops->allocate(device, RL_MEMORY_WORKSPACE, chosen->workspace_bytes, &own->workspace, err))
    return -1;
  rl_kernel_note_choice(kernel, chosen->rank, chosen->deterministic, &own->rank);
  return rl_dnn_bind(own->plan, own->workspace, err);
}

int rl_kernel_cudnn_launch(const rl_kernel_instance *kernel, cudaStream_t stream, rl_error *err) {
  return rl_dnn_enqueue(((engine *)kernel->engine)->plan, stream, err);
}
