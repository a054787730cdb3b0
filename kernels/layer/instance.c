/* Implements layer/instance.h: allocates and fills the tensors of a layer's instance, and computes the table of rotations. */
#include "layer/instance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/dtype.h"
#include "kernel/parallel.h"
#include "kernel/rope.h"

enum {
  STAGED_ELEMENTS = 1 << 24, /* maximum number of elements of one upload */
  CHUNK_ELEMENTS = 1 << 12   /* elements that a thread generates per task */
};
RL_DEFINE_CLEANUP(free_memory, void *, free, NULL)

typedef struct staged_part { /* part of an input in host memory */
  const rl_layer_instance *instance;
  int input;
  int64_t start; /* index in the input of the first element of the part */
  char *memory;
} staged_part;

static int fill_chunk(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const staged_part *part = context;
  const int dtype = part->instance->stored_dtype;
  double values[CHUNK_ELEMENTS];
  (void)thread, (void)err;
  rl_layer_fill_input(&part->instance->params, part->input, part->start + first, count, values);
  rl_dtype_from_double(dtype, values, count, part->memory + (size_t)first * rl_dtype_size(dtype));
  return 0;
}

static int fill_input(rl_layer_instance *self, int input, void *to, rl_error *err) {
  const int64_t elements = rl_layer_input_elements(&self->params, input);
  const size_t size = rl_dtype_size(self->stored_dtype);
  const int64_t step = elements < STAGED_ELEMENTS ? elements : STAGED_ELEMENTS;
  rl_device *device = self->base.device;
  RL_CLEANUP(free_memory) void *memory = malloc((size_t)step * size);
  if (memory == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for filling a layer's tensors");
  for (int64_t start = 0; start < elements; start += step) {
    const int64_t count = elements - start < step ? elements - start : step;
    staged_part part = {self, input, start, memory};
    if (rl_parallel_for(self->thread_pool, device, count, CHUNK_ELEMENTS, fill_chunk, &part, err) < 0 ||
        device->ops->upload(device, (char *)to + (size_t)start * size, memory, (size_t)count * size, err) < 0)
      return -1;
  }
  return 0;
}

static rl_memory_purpose purpose_of(int input) { return input == RL_LAYER_X ? RL_MEMORY_DATASET : RL_MEMORY_WEIGHTS; }

static int allocate_tensors(rl_layer_instance *self, rl_error *err) {
  rl_device *device = self->base.device;
  const size_t size = rl_dtype_size(self->stored_dtype);
  for (int input = 0; input < RL_LAYER_INITIAL_QKV; input++)
    if (device->ops->allocate(device, purpose_of(input), (size_t)rl_layer_input_elements(&self->params, input) * size,
                              &self->inputs[input], err) < 0 ||
        fill_input(self, input, self->inputs[input], err) < 0)
      return -1;
  for (int stage = 0; stage < RL_LAYER_STAGE_COUNT; stage++)
    if (device->ops->allocate(device, RL_MEMORY_ACTIVATIONS, (size_t)rl_layer_stage_elements(&self->params, stage) * size,
                              &self->stages[stage], err) < 0)
      return -1;
  return rl_layer_poison(self, err); /* the writes also make the pages of host memory resident */
}

/* Fills `elements` elements with 0xff bytes, which are NaN in every type. */
static int poison_tensor(rl_layer_instance *self, void *tensor, int64_t elements, rl_error *err) {
  rl_device *device = self->base.device;
  const size_t bytes = (size_t)elements * rl_dtype_size(self->stored_dtype), step = (size_t)1 << 26;
  RL_CLEANUP(free_memory) void *memory = malloc(bytes < step ? bytes : step);
  if (memory == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for filling a layer's tensors");
  memset(memory, 0xff, bytes < step ? bytes : step);
  for (size_t start = 0; start < bytes; start += step)
    if (rl_device_check_cancellation(device, err) < 0 ||
        device->ops->upload(device, (char *)tensor + start, memory, bytes - start < step ? bytes - start : step, err) < 0)
      return -1;
  return 0;
}

/* Sets the results of one sequence's new tokens to NaN. Their rows are adjacent. */
static int poison_sequence(rl_layer_instance *self, int stage, int64_t sequence, rl_error *err) {
  const rl_layer_params *p = &self->params;
  const int64_t columns = rl_layer_stage_columns(p, stage), first = rl_layer_stage_row_index(p, stage, sequence * p->tokens);
  char *tensor = self->stages[stage];
  return poison_tensor(self, tensor + (size_t)(first * columns) * rl_dtype_size(self->stored_dtype), p->tokens * columns, err);
}

int rl_layer_poison(rl_layer_instance *self, rl_error *err) {
  if (self->params.cached_tokens > 0 && fill_input(self, RL_LAYER_INITIAL_QKV, self->stages[RL_LAYER_QKV], err) < 0) return -1;
  for (int stage = 0; stage < RL_LAYER_STAGE_COUNT; stage++)
    for (int64_t sequence = 0; sequence < self->params.batch; sequence++)
      if (poison_sequence(self, stage, sequence, err) < 0) return -1;
  return 0;
}

/* --- rotations --------------------------------------------------------------------------------------------------------- */

typedef struct rotation_table {
  const rl_layer_params *params;
  float *rotations;
} rotation_table;

static int fill_pairs(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const rotation_table *table = context;
  const int64_t head_size = rl_layer_head_size(table->params);
  (void)thread, (void)err;
  for (int64_t pair = first; pair < first + count; pair++) {
    const long double turns_per_position = rl_rope_turns_per_position(pair, head_size);
    for (int64_t position = 0; position < rl_layer_context(table->params); position++) {
      const double angle = rl_rope_angle(position, turns_per_position);
      table->rotations[position * head_size + 2 * pair] = (float)cos(angle);
      table->rotations[position * head_size + 2 * pair + 1] = (float)sin(angle);
    }
  }
  return 0;
}

int rl_layer_fill_rotations(rl_layer_instance *self, float *rotations, rl_error *err) {
  rotation_table table = {&self->params, rotations};
  return rl_parallel_for(self->thread_pool, self->base.device, rl_layer_head_size(&self->params) / 2, 1, fill_pairs, &table, err);
}

/* --- the instance ------------------------------------------------------------------------------------------------------ */

/* Implements reset, save and restore, which do nothing: a step does not change its inputs, and it overwrites its results. */
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
  rl_layer_instance *self = (rl_layer_instance *)instance;
  rl_device *device = instance->device;
  if (self->engine_state != NULL) self->engine_close(self->engine_state);
  for (int i = 0; i < RL_LAYER_INPUT_COUNT; i++) device->ops->release(device, self->inputs[i]);
  for (int i = 0; i < RL_LAYER_STAGE_COUNT; i++) device->ops->release(device, self->stages[i]);
  rl_thread_pool_close(self->thread_pool);
  free(self);
}

static const rl_instance_ops operations = {.reset = keep_state,
                                           .read_results = read_results,
                                           .save = keep_state,
                                           .restore = keep_state,
                                           .close = close_instance,
                                           .check = rl_layer_check};

int rl_layer_open(rl_device *device, const rl_layer_params *params, int stored_dtype, rl_layer_instance **instance,
                  rl_error *err) {
  rl_layer_instance *self = calloc(1, sizeof *self);
  if (self == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a layer");
  self->params = *params;
  self->stored_dtype = stored_dtype;
  self->step = (rl_sequence){.name = "layer",
                             .launches = self->launches,
                             .repeat = (uint64_t)params->samples,
                             .pause_ms = (uint32_t)params->pause_ms,
                             .enqueued_individually = params->variant == RL_LAYER_BASELINE};
  self->base = (rl_instance){.ops = &operations,
                             .device = device,
                             .deterministic = true,
                             .iteration = {.name = "layers", .sequences = &self->step, .sequence_count = 1}};
  self->thread_pool = rl_thread_pool_open(device->threads, err);
  if (self->thread_pool == NULL || allocate_tensors(self, err) < 0) {
    close_instance(&self->base);
    return -1;
  }
  *instance = self;
  return 0;
}

void rl_layer_add_launch(rl_layer_instance *self, const char *name, const char *nvtx_range,
                         int (*enqueue)(void *arg, rl_stream stream, rl_error *err)) {
  self->launches[self->step.launch_count++] =
      (rl_launch){.name = name, .nvtx_range = nvtx_range, .enqueue = enqueue, .arg = self};
}
