/* The engine "cuda" of the ceilings: memory.cu, arithmetic.cu and tensor.cu each list the launches of their rates. */
#include "ceilings/cuda.h"

#include <errno.h>
#include <stdlib.h>

#include "cuda_check.h"

static void close_ceilings(rl_instance *instance) {
  rl_ceilings_gpu *self = (rl_ceilings_gpu *)instance;
  instance->device->ops->release(instance->device, self->memory);
  instance->device->ops->release(instance->device, self->results);
  free(self);
}

/* 3 GiB take less than a millisecond where memory is fastest; a small device gives an eighth of what it has. */
static int choose_sizes(rl_ceilings_gpu *self, int device, rl_error *err) {
  const size_t most = (size_t)3 << 30, unit = (size_t)6 << 20;
  cudaDeviceProp properties;
  if (rl_cuda_ok(cudaGetDeviceProperties(&properties, device), "reading the device's properties", err)) return -1;
  self->sms = properties.multiProcessorCount;
  self->l2_bytes = (size_t)properties.l2CacheSize;
  self->bytes = (properties.totalGlobalMem / 8 < most ? properties.totalGlobalMem / 8 : most) / unit * unit;
  return 0;
}

static int make_buffers(rl_ceilings_gpu *self, rl_error *err) {
  rl_device *device = self->instance.base.device;
  const size_t results = (size_t)self->sms * RL_CEILINGS_RESULT_BYTES;
  return device->ops->allocate(device, RL_MEMORY_DATASET, self->bytes, (void **)&self->memory, err) ||
                 device->ops->allocate(device, RL_MEMORY_WORKSPACE, results, &self->results, err) || rl_ceilings_fill(self, err)
             ? -1
             : 0;
}

static int open_ceilings(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_ceilings_gpu *self = (rl_ceilings_gpu *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the ceilings");
  rl_ceilings_begin(&self->instance, device, params, close_ceilings, "a GPU has no such level of memory");
  if (choose_sizes(self, device->index, err) || make_buffers(self, err)) {
    close_ceilings(&self->instance.base);
    return -1;
  }
  rl_ceilings_list_memory(self);
  rl_ceilings_list_arithmetic(self);
  rl_ceilings_list_tensor(self);
  *instance = &self->instance.base;
  return 0;
}

static const rl_engine_description description = {"cuda", "ceilings", RL_DEVICE_CUDA, "each rate by a kernel of its own",
                                                  rl_ceilings_supports};

extern "C" {
extern const rl_engine rl_ceilings_cuda;
const rl_engine rl_ceilings_cuda = {&description, open_ceilings};
}
