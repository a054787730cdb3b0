#include "kernel/instance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { PIECE = 1 << 16 }; /* elements that cross between host and device at once */
RL_DEFINE_CLEANUP(free_doubles, double *, free, NULL)

int rl_kernel_supports(const void *params, rl_error *err) {
  const rl_kernel_params *asked = params;
  rl_kernel_shape shape;
  return rl_kernel_shape_of(asked, &shape, err) < 0 || rl_kernel_variant_find(asked->family, asked->variant, err) < 0 ? -1 : 0;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- inputs and output --------------------------------------------------------------------------------------------- */

static int fill_input(rl_kernel_instance *self, uint32_t input, void *piece, rl_error *err) {
  const int64_t count = rl_kernel_input_elements(self->params.family, &self->shape, input);
  const size_t size = rl_dtype_size(self->params.dtype);
  rl_device *device = self->base.device;
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t some = smaller(PIECE, count - at);
    for (int64_t i = 0; i < some; i++)
      rl_dtype_store(self->params.dtype, piece, (size_t)i, rl_kernel_input_value(&self->params, input, at + i));
    if (device->ops->upload(device, (char *)self->in[input] + (size_t)at * size, piece, (size_t)some * size, err)) return -1;
  }
  return 0;
}

/* Every byte of the output 0xff: a NaN wherever the kernel does not write. */
static int poison(rl_kernel_instance *self, void *piece, rl_error *err) {
  const int64_t bytes = self->shape.rows * self->shape.columns * (int64_t)rl_dtype_size(self->params.dtype);
  rl_device *device = self->base.device;
  memset(piece, 0xff, PIECE);
  for (int64_t at = 0; at < bytes; at += PIECE)
    if (device->ops->upload(device, (char *)self->out + at, piece, (size_t)smaller(PIECE, bytes - at), err)) return -1;
  return 0;
}

/* --- the check ------------------------------------------------------------------------------------------------------ */

typedef struct sums {
  double difference, reference; /* of squares */
  int64_t missing;              /* elements that are no numbers, and should be */
} sums;

/* Rows [first, first + count) of the inputs into scratch, which holds shared inputs already. */
static void load_inputs(const rl_kernel_instance *self, int64_t first, int64_t count, double *const *in) {
  const int64_t columns = self->shape.columns;
  for (uint32_t input = 0; input < self->params.family->input_count; input++)
    for (int64_t i = 0; i < count * columns && !self->params.family->shared[input]; i++)
      in[input][i] = rl_kernel_input_value(&self->params, input, first * columns + i);
}

static void compare(const rl_kernel_instance *self, const void *got, const double *expected, int64_t count, sums *total) {
  for (int64_t i = 0; i < count; i++) {
    double value = rl_dtype_load(self->params.dtype, got, (size_t)i), off = value - expected[i];
    total->missing += !isfinite(value);
    total->difference += off * off;
    total->reference += expected[i] * expected[i];
  }
}

/* scratch: for each input and for the output `room` doubles, then as much again for what comes from the device. */
static int sum_up(rl_kernel_instance *self, int64_t rows_at_once, double *scratch, int64_t room, sums *total, rl_error *err) {
  const rl_kernel_family *family = self->params.family;
  const int64_t columns = self->shape.columns;
  const size_t row_bytes = (size_t)columns * rl_dtype_size(self->params.dtype);
  rl_device *device = self->base.device;
  double *in[RL_KERNEL_INPUTS], *expected = scratch + RL_KERNEL_INPUTS * room, *got = expected + room;
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS; input++) in[input] = scratch + input * room;
  for (uint32_t input = 0; input < family->input_count; input++)
    for (int64_t i = 0; i < columns && family->shared[input]; i++) in[input][i] = rl_kernel_input_value(&self->params, input, i);
  for (int64_t row = 0; row < self->shape.rows; row += rows_at_once) {
    rl_kernel_shape part = {smaller(rows_at_once, self->shape.rows - row), columns};
    if (device->ops->download(device, got, (char *)self->out + (size_t)row * row_bytes, (size_t)part.rows * row_bytes, err))
      return -1;
    load_inputs(self, row, part.rows, in);
    family->reference(&part, (const double *const *)in, expected);
    compare(self, got, expected, part.rows * columns, total);
  }
  return 0;
}

static int check(rl_instance *instance, double *relative_error, double *tolerance, rl_error *err) {
  rl_kernel_instance *self = (rl_kernel_instance *)instance;
  rl_device *device = instance->device;
  rl_sequence one = self->sequence;
  rl_program once = {.name = "check", .sequences = &one, .sequence_count = 1};
  rl_elapsed elapsed;
  sums total = {0};
  one.repeat = 1;
  const int64_t rows_at_once = self->shape.columns < PIECE ? PIECE / self->shape.columns : 1;
  const int64_t room = rows_at_once * self->shape.columns;
  rl_auto(free_doubles) double *scratch = malloc((RL_KERNEL_INPUTS + 2) * (size_t)room * sizeof *scratch + PIECE);
  if (!scratch) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the check");
  if (poison(self, scratch, err) || device->ops->run_eager(device, &once, NULL, &elapsed, err) ||
      sum_up(self, rows_at_once, scratch, room, &total, err))
    return -1;
  if (total.missing > 0)
    return rl_fail(err, RL_SYS, EDOM, "%lld elements of the result are not numbers", (long long)total.missing);
  double off = sqrt(total.difference), size = sqrt(total.reference);
  *relative_error = size > 0 ? off / size : off; /* where all must be zero, the difference itself */
  *tolerance = rl_kernel_tolerance(&self->params);
  return 0;
}

/* --- the instance --------------------------------------------------------------------------------------------------- */

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
  free(self);
}

static const rl_instance_ops operations = {.reset = nothing_changes, .report = report, .save = nothing_changes,
                                           .restore = nothing_changes, .close = close_instance, .check = check};

static int make_buffers(rl_kernel_instance *self, rl_error *err) {
  const rl_kernel_family *family = self->params.family;
  const size_t size = rl_dtype_size(self->params.dtype);
  rl_device *device = self->base.device;
  rl_auto(free_doubles) double *piece = malloc(PIECE * sizeof *piece);
  if (!piece) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the inputs");
  for (uint32_t i = 0; i < family->input_count; i++) {
    size_t bytes = (size_t)rl_kernel_input_elements(family, &self->shape, i) * size;
    if (device->ops->allocate(device, RL_MEMORY_DATASET, bytes, &self->in[i], err) || fill_input(self, i, piece, err)) return -1;
  }
  size_t bytes = (size_t)(self->shape.rows * self->shape.columns) * size;
  if (device->ops->allocate(device, RL_MEMORY_ACTIVATIONS, bytes, &self->out, err)) return -1;
  return poison(self, piece, err); /* and so every page is there */
}

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
  self->base = (rl_instance){.ops = &operations, .device = device, .deterministic = true, .iteration = {"kernel", &self->sequence, 1}};
  if (rl_kernel_shape_of(&self->params, &self->shape, err) || make_buffers(self, err)) {
    close_instance(&self->base);
    return -1;
  }
  *instance = self;
  return 0;
}
