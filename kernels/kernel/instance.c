/* Implements instance.h: allocates the buffers of a kernel's instance and fills its inputs. */
#include "kernel/instance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernel/parallel.h"

enum {
  STAGING_BYTES = 1 << 22, /* largest upload */
  CHUNK_ELEMENTS = 1 << 15 /* elements that a thread generates per task */
};
RL_DEFINE_CLEANUP(free_memory, void *, free, NULL)

int rl_kernel_supports(const void *params, rl_error *err) {
  const rl_kernel_params *request = params;
  rl_kernel_shape shape;
  return rl_kernel_dtype_check(request->op, request->dtype, err) < 0 || rl_kernel_params_shape(request, &shape, err) < 0 ||
                 rl_kernel_variant_find(request->op, request->variant, err) < 0 ||
                 rl_kernel_build_find(request->op, request->build, err) < 0
             ? -1
             : 0;
}

/* --- inputs and output ------------------------------------------------------------------------------------------------- */

typedef struct staged_part { /* part of an input in host memory */
  const rl_kernel_instance *kernel;
  uint32_t input;
  int64_t start; /* index in the input of the first element in `memory` */
  char *memory;
} staged_part;

static int fill_chunk(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const staged_part *part = context;
  const rl_kernel_params *params = &part->kernel->params;
  (void)thread, (void)err;
  rl_kernel_fill_input(params, &part->kernel->shape, part->input, part->start + first, count,
                       part->memory + (size_t)first * rl_dtype_size(params->dtype));
  return 0;
}

static int fill_input(rl_kernel_instance *self, uint32_t input, rl_error *err) {
  const int64_t elements = self->params.op->input_elements(&self->shape, input);
  const size_t size = rl_dtype_size(self->params.dtype);
  const int64_t staged_elements = STAGING_BYTES / (int64_t)size < elements ? STAGING_BYTES / (int64_t)size : elements;
  rl_device *device = self->base.device;
  RL_CLEANUP(free_memory) void *memory = malloc((size_t)staged_elements * size);
  if (memory == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for filling a kernel's buffers");
  for (int64_t start = 0; start < elements; start += staged_elements) {
    const int64_t count = elements - start < staged_elements ? elements - start : staged_elements;
    staged_part part = {self, input, start, memory};
    if (rl_parallel_for(self->thread_pool, device, count, CHUNK_ELEMENTS, fill_chunk, &part, err) < 0 ||
        device->ops->upload(device, (char *)self->in[input] + (size_t)start * size, memory, (size_t)count * size, err) < 0)
      return -1;
  }
  return 0;
}

static int allocate_inputs(rl_kernel_instance *self, rl_error *err) {
  const rl_kernel_operator *op = self->params.op;
  rl_device *device = self->base.device;
  for (uint32_t i = 0; i < op->input_count; i++) {
    size_t bytes = (size_t)op->input_elements(&self->shape, i) * rl_dtype_size(self->params.dtype);
    if (device->ops->allocate(device, RL_MEMORY_DATASET, bytes, &self->in[i], err) < 0 || fill_input(self, i, err) < 0) return -1;
  }
  return 0;
}

static int allocate_buffers(rl_kernel_instance *self, rl_error *err) {
  rl_device *device = self->base.device;
  const size_t bytes = (size_t)self->params.op->output_elements(&self->shape) * rl_dtype_size(self->params.dtype);
  if (allocate_inputs(self, err) < 0 || device->ops->allocate(device, RL_MEMORY_ACTIVATIONS, bytes, &self->out, err) < 0)
    return -1;
  return rl_kernel_poison(self, err); /* the writes also make the pages of host memory resident */
}

/* --- the instance ------------------------------------------------------------------------------------------------------ */

/* Implements reset, save and restore, which have nothing to do: a launch does not change its inputs and overwrites its whole
 * output. */
static int keep_state(rl_instance *instance, rl_error *err) {
  (void)instance, (void)err;
  return 0;
}

static int read_results(rl_instance *instance, rl_iteration_results *results, rl_error *err) {
  (void)instance, (void)err;
  *results = (rl_iteration_results){NAN, NAN, NAN, NAN, NAN, NAN};
  return 0;
}

static void close_instance(rl_instance *instance) {
  rl_kernel_instance *self = (rl_kernel_instance *)instance;
  rl_device *device = instance->device;
  if (self->engine_close) self->engine_close(self->engine_state);
  for (uint32_t i = 0; i < RL_KERNEL_INPUTS_MAX; i++) device->ops->release(device, self->in[i]);
  device->ops->release(device, self->out);
  rl_thread_pool_close(self->thread_pool);
  free(self);
}

static const rl_instance_ops operations = {.reset = keep_state,
                                           .read_results = read_results,
                                           .save = keep_state,
                                           .restore = keep_state,
                                           .close = close_instance,
                                           .check = rl_kernel_check};

int rl_kernel_open(rl_device *device, const void *params, int (*enqueue)(void *arg, rl_stream stream, rl_error *err),
                   rl_kernel_instance **instance, rl_error *err) {
  if (rl_kernel_supports(params, err) < 0) return -1;
  rl_kernel_instance *self = calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a kernel");
  self->params = *(const rl_kernel_params *)params;
  const rl_kernel_operator *op = self->params.op;
  self->variant = rl_kernel_variant_find(op, self->params.variant, err);
  self->launch = (rl_launch){.name = op->workload.name, .nvtx_range = "kernel", .enqueue = enqueue, .arg = self};
  self->sequence = (rl_sequence){.name = "launch",
                                 .launches = &self->launch,
                                 .launch_count = 1,
                                 .repeat = (uint64_t)self->params.samples,
                                 .pause_ms = (uint32_t)self->params.pause_ms};
  self->base = (rl_instance){.ops = &operations,
                             .device = device,
                             .deterministic = true,
                             .iteration = {.name = "kernel", .sequences = &self->sequence, .sequence_count = 1}};
  self->thread_pool = rl_thread_pool_open(device->threads, err);
  if (self->thread_pool == NULL || rl_kernel_params_shape(&self->params, &self->shape, err) < 0 ||
      allocate_buffers(self, err) < 0) {
    close_instance(&self->base);
    return -1;
  }
  *instance = self;
  return 0;
}
