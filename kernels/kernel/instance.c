#include "kernel/instance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/pieces.h"

/* Bytes that cross between host and device at once, at most; elements that a thread fills at once. */
enum { STAGE = 1 << 26, STEP = 1 << 15 };
RL_DEFINE_CLEANUP(free_memory, void *, free, NULL)

int rl_kernel_supports(const void *params, rl_error *err) {
  const rl_kernel_params *asked = params;
  rl_kernel_shape shape;
  return rl_kernel_dtype_check(asked->family, asked->dtype, err) < 0 || rl_kernel_shape_of(asked, &shape, err) < 0 ||
                 rl_kernel_variant_find(asked->family, asked->variant, err) < 0 ||
                 rl_kernel_build_find(asked->family, asked->build, err) < 0
             ? -1
             : 0;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- inputs and output ------------------------------------------------------------------------------------------------- */

typedef struct filling {
  const rl_kernel_instance *kernel;
  uint32_t input;
  int64_t start; /* element of the input that the stage begins with */
  char *stage;
} filling;

static int fill_part(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const filling *of = context;
  const rl_kernel_params *params = &of->kernel->params;
  (void)thread, (void)err;
  rl_kernel_input_fill(params, &of->kernel->shape, of->input, of->start + first, count,
                       of->stage + (size_t)first * rl_dtype_size(params->dtype));
  return 0;
}

static void *make_stage(int64_t bytes, rl_error *err) {
  void *stage = malloc((size_t)bytes);
  if (stage == NULL) rl_fail(err, RL_SYS, ENOMEM, "out of memory for filling a kernel's buffers");
  return stage;
}

static int fill_input(rl_kernel_instance *self, uint32_t input, rl_error *err) {
  const int64_t count = self->params.family->input_elements(&self->shape, input);
  const size_t size = rl_dtype_size(self->params.dtype);
  const int64_t at_once = smaller(STAGE / (int64_t)size, count);
  rl_device *device = self->base.device;
  rl_auto(free_memory) void *stage = make_stage(at_once * (int64_t)size, err);
  if (stage == NULL) return -1;
  for (int64_t at = 0; at < count; at += at_once) {
    const int64_t some = smaller(at_once, count - at);
    filling of = {self, input, at, stage};
    if (rl_kernel_share(self, some, STEP, fill_part, &of, err) ||
        device->ops->upload(device, (char *)self->in[input] + (size_t)at * size, stage, (size_t)some * size, err))
      return -1;
  }
  return 0;
}

static size_t output_bytes(const rl_kernel_instance *self) {
  return (size_t)self->params.family->output_elements(&self->shape) * rl_dtype_size(self->params.dtype);
}

int rl_kernel_poison(rl_kernel_instance *self, rl_error *err) {
  const int64_t bytes = (int64_t)output_bytes(self), at_once = smaller(STAGE, bytes);
  rl_device *device = self->base.device;
  rl_auto(free_memory) void *stage = make_stage(at_once, err);
  if (stage == NULL) return -1;
  memset(stage, 0xff, (size_t)at_once);
  for (int64_t at = 0; at < bytes; at += at_once)
    if (rl_device_cancelled(device, err) ||
        device->ops->upload(device, (char *)self->out + at, stage, (size_t)smaller(at_once, bytes - at), err))
      return -1;
  return 0;
}

static int make_inputs(rl_kernel_instance *self, rl_error *err) {
  const rl_kernel_family *family = self->params.family;
  rl_device *device = self->base.device;
  for (uint32_t i = 0; i < family->input_count; i++) {
    size_t bytes = (size_t)family->input_elements(&self->shape, i) * rl_dtype_size(self->params.dtype);
    if (device->ops->allocate(device, RL_MEMORY_DATASET, bytes, &self->in[i], err) || fill_input(self, i, err)) return -1;
  }
  return 0;
}

static int make_buffers(rl_kernel_instance *self, rl_error *err) {
  rl_device *device = self->base.device;
  return make_inputs(self, err) || device->ops->allocate(device, RL_MEMORY_ACTIVATIONS, output_bytes(self), &self->out, err) ||
                 rl_kernel_poison(self, err) /* and so every page is there */
             ? -1
             : 0;
}

/* --- the instance ------------------------------------------------------------------------------------------------------ */

static int nothing_changes(rl_instance *instance, rl_error *err) { /* a launch reads its inputs and writes its output anew */
  (void)instance, (void)err;
  return 0;
}

static int report(rl_instance *instance, rl_report *report, rl_error *err) {
  (void)instance, (void)err;
  *report = (rl_report){NAN, NAN, NAN, NAN, NAN, NAN};
  return 0;
}

static void close_instance(rl_instance *instance) {
  rl_kernel_instance *self = (rl_kernel_instance *)instance;
  rl_device *device = instance->device;
  if (self->engine_close) self->engine_close(self->engine);
  for (uint32_t i = 0; i < RL_KERNEL_INPUTS; i++) device->ops->release(device, self->in[i]);
  device->ops->release(device, self->out);
  rl_threads_close(self->threads);
  free(self);
}

static const rl_instance_ops operations = {.reset = nothing_changes,
                                           .report = report,
                                           .save = nothing_changes,
                                           .restore = nothing_changes,
                                           .close = close_instance,
                                           .check = rl_kernel_check};

int rl_kernel_open(rl_device *device, const void *params, int (*enqueue)(void *arg, rl_stream stream, rl_error *err),
                   rl_kernel_instance **instance, rl_error *err) {
  if (rl_kernel_supports(params, err)) return -1;
  rl_kernel_instance *self = calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a kernel");
  self->params = *(const rl_kernel_params *)params;
  const rl_kernel_family *family = self->params.family;
  self->variant = rl_kernel_variant_find(family, self->params.variant, err);
  self->launch = (rl_launch){.name = family->workload.name, .range = "kernel", .enqueue = enqueue, .arg = self};
  self->sequence = (rl_sequence){"launch", &self->launch, 1, (uint64_t)self->params.samples};
  self->base =
      (rl_instance){.ops = &operations, .device = device, .deterministic = true, .iteration = {"kernel", &self->sequence, 1}};
  self->threads = rl_threads_open(device->threads, err);
  if (self->threads == NULL || rl_kernel_shape_of(&self->params, &self->shape, err) || make_buffers(self, err)) {
    close_instance(&self->base);
    return -1;
  }
  *instance = self;
  return 0;
}
