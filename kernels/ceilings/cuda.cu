/* The engine "cuda" of the workload "ceilings". The kernels are in memory.cu, arithmetic.cu and tensor.cu. */
#include "ceilings/cuda.h"

#include <errno.h>
#include <stdlib.h>

#include "cuda_check.h"

static void close_ceilings(rl_instance *instance) {
  rl_cuda_ceilings *self = (rl_cuda_ceilings *)instance;
  instance->device->ops->release(instance->device, self->memory);
  instance->device->ops->release(instance->device, self->results);
  free(self);
}

/* Sets the sizes. memory_bytes is 3 GiB, which the fastest memory reads in less than 1 ms, but at most an eighth of the device's
 * memory. */
static int choose_sizes(rl_cuda_ceilings *self, int device, rl_error *err) {
  const size_t max_bytes = (size_t)3 << 30, unit_bytes = (size_t)6 << 20; /* so that a half and a third are whole MiB */
  cudaDeviceProp properties;
  if (rl_cuda_check(cudaGetDeviceProperties(&properties, device), "reading the device's properties", err) < 0) return -1;
  self->sm_count = properties.multiProcessorCount;
  self->l2_bytes = (size_t)properties.l2CacheSize;
  const size_t eighth = properties.totalGlobalMem / 8;
  self->memory_bytes = (eighth < max_bytes ? eighth : max_bytes) / unit_bytes * unit_bytes;
  return 0;
}

static int allocate_buffers(rl_cuda_ceilings *self, rl_error *err) {
  rl_device *device = self->instance.base.device;
  const size_t result_bytes = (size_t)self->sm_count * RL_CEILINGS_RESULT_BYTES_PER_SM;
  if (device->ops->allocate(device, RL_MEMORY_DATASET, self->memory_bytes, (void **)&self->memory, err) < 0) return -1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, result_bytes, &self->results, err) < 0) return -1;
  return rl_ceilings_fill(self, err);
}

static int open_ceilings(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_cuda_ceilings *self = (rl_cuda_ceilings *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the ceilings");
  rl_ceilings_init(&self->instance, device, params, close_ceilings, "a GPU has no such level of memory");
  if (choose_sizes(self, device->index, err) < 0 || allocate_buffers(self, err) < 0) {
    close_ceilings(&self->instance.base);
    return -1;
  }
  rl_ceilings_add_memory(self);
  rl_ceilings_add_arithmetic(self);
  rl_ceilings_add_tensor(self);
  *instance = &self->instance.base;
  return 0;
}

static const rl_engine_description description = {"cuda", "ceilings", RL_DEVICE_CUDA, "each rate by a separate kernel",
                                                  rl_ceilings_supports};

extern "C" {
extern const rl_engine rl_ceilings_cuda;
const rl_engine rl_ceilings_cuda = {&description, open_ceilings};
}
