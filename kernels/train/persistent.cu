/* The engine "persistent" on the host: one launch runs all steps of an epoch, another launch runs the evaluation
 * (train/cuda/persistent.h). train/cuda/persistent.cuh explains the names of tensors. Of the activations and their gradients,
 * only the operands of fc1's weight gradient are always stored in global memory. Others are stored only after expose_tensors, for
 * tests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "train/cuda/persistent.h"
#include "train/cuda/training_state.h"
#include "train/engines.h"

enum { SHUFFLE, EPOCH, BEGIN_EVALUATION, EVALUATION, LAUNCHES }; /* indices in engine.launches */

/* Pointers are to device memory, except host_timestamps. */
struct engine : rl_training_base {
  void *fc1_operands;
  float *partial_head; /* rl_persistent_args */
  struct rl_block_exchange *block_exchange;
  /* Tensors that only tests read; NULL before expose_tensors. */
  void *pooled1, *pooled2, *pooled1_gradient, *pooled2_gradient, *fc1_product_gradient;
  uint8_t *argmax1, *argmax2;
  /* Partial sums of the gradient of conv2's weights, which only tests read. NULL before expose_tensors: then the kernel stores
   * these sums in the memory of Adam's moments, which are in shared memory during a launch. */
  void *partial_conv2_weight;
  float *small_gradients;                                 /* rl_persistent_args; NULL before expose_tensors */
  rl_persistent_timestamps *timestamps, *host_timestamps; /* NULL: not recorded */
  rl_launch launches[LAUNCHES];
  rl_sequence sequences[2], evaluation_sequences[2];
};

static engine *engine_of(void *instance) { return (engine *)rl_training_base_of(instance); }

static size_t partial_conv2_bytes(uint32_t batch, rl_format format) {
  const size_t sum_bytes = rl_persistent_conv2_row_format(format).fp16 ? sizeof(uint16_t) : sizeof(float);
  return rl_persistent_partial_rows(batch) * rl_tensor_sizes[RL_CONV2_W] * sum_bytes;
}

static int launch_epoch(void *arg, rl_stream stream, rl_error *err) {
  engine *self = engine_of(arg);
  rl_persistent_args args = {};
  args.images = self->train_images;
  args.labels = self->train_labels;
  args.order = self->order;
  args.count = self->base.images;
  args.batch = (uint32_t)self->base.params.batch_size;
  args.adam = rl_training_adam(self);
  args.fc1_operands = self->fc1_operands;
  args.pooled2 = self->pooled2;
  args.fc1_product_gradient = self->fc1_product_gradient;
  args.partial_conv2_weight = self->partial_conv2_weight ? self->partial_conv2_weight : self->first_moment;
  args.partial_head = self->partial_head;
  args.small_gradients = self->small_gradients;
  args.block_exchange = self->block_exchange;
  args.pooled1 = self->pooled1;
  args.pooled1_gradient = self->pooled1_gradient;
  args.pooled2_gradient = self->pooled2_gradient;
  args.argmax1 = self->argmax1;
  args.argmax2 = self->argmax2;
  args.timestamps = self->timestamps;
  return rl_persistent_epoch(self->format, &args, (cudaStream_t)stream, err);
}

static int launch_evaluation(void *arg, rl_stream stream, rl_error *err) {
  engine *self = engine_of(arg);
  rl_persistent_args args = {};
  args.images = self->test_images;
  args.labels = self->test_labels;
  args.count = args.batch = self->base.test_images;
  args.adam = rl_training_adam(self);
  args.block_exchange = self->block_exchange;
  return rl_persistent_evaluate(self->format, &args, self->test_losses, self->test_correct, (cudaStream_t)stream, err);
}

/* --- rl_training_ops ---------------------------------------------------------------------------------------------------- */

static int expose_tensors(rl_training_base *training, rl_error *err) {
  engine *self = engine_of(training);
  const uint32_t batch = rl_training_step_images(self);
  const size_t pooled1 = (size_t)batch * RL_CONV1_CHANNELS * RL_POOLED1_SIDE * RL_POOLED1_SIDE,
               pooled2 = (size_t)batch * RL_FC1_INPUTS;
  const rl_training_buffer buffers[] = {
      {&self->pooled1, RL_MEMORY_WORKSPACE, pooled1 * self->value_bytes},
      {&self->pooled1_gradient, RL_MEMORY_WORKSPACE,
       rl_persistent_pooled1_gradient_parts(self->format) * pooled1 * self->value_bytes},
      {&self->pooled2, RL_MEMORY_WORKSPACE, pooled2 * self->value_bytes},
      {&self->pooled2_gradient, RL_MEMORY_WORKSPACE, pooled2 * self->value_bytes},
      {&self->fc1_product_gradient, RL_MEMORY_WORKSPACE, batch * RL_FC1_OUTPUTS * self->value_bytes},
      {&self->argmax1, RL_MEMORY_WORKSPACE, pooled1},
      {&self->argmax2, RL_MEMORY_WORKSPACE, pooled2},
      {&self->partial_conv2_weight, RL_MEMORY_WORKSPACE, partial_conv2_bytes(batch, self->format)},
      {&self->small_gradients, RL_MEMORY_WORKSPACE, (RL_CONV1_PARAMETERS + RL_CONV2_CHANNELS + RL_HEAD_PITCH) * sizeof(float)},
  };
  return rl_training_allocate(self, buffers, sizeof buffers / sizeof *buffers, err);
}

static void get_tensors(const rl_training_base *training, rl_training_tensors *tensors) {
  const engine *self = (const engine *)training;
  tensors->pooled1 = self->pooled1;
  tensors->pooled2 = self->pooled2;
  tensors->argmax1 = self->argmax1;
  tensors->argmax2 = self->argmax2;
  tensors->pooled1_gradient = self->pooled1_gradient;
  tensors->pooled1_gradient_parts = rl_persistent_pooled1_gradient_parts(self->format);
  tensors->pooled2_gradient = self->pooled2_gradient;
  tensors->fc1_product_gradient = self->fc1_product_gradient;
}

static int last_gradients(const rl_training_base *training, uint32_t batch, rl_gradients *gradients, rl_error *err) {
  const engine *self = (const engine *)training;
  if (!self->partial_conv2_weight)
    return rl_fail(err, RL_INPUT, 0, "the gradients were not stored: call rl_training_expose_tensors before the step");
  const rl_persistent_row_format rows = rl_persistent_conv2_row_format(self->format);
  rl_gradients last = {};
  last.conv2_weight = self->partial_conv2_weight;
  last.conv2_rows_fp16 = rows.fp16;
  last.conv2_row_scale = rows.scale;
  last.fp16 = self->format.fp16;
  last.conv2_rows = rl_persistent_partial_rows(batch);
  last.conv1 = self->small_gradients;
  last.conv2_bias = &last.conv1[RL_CONV1_PARAMETERS];
  last.head = &last.conv2_bias[RL_CONV2_CHANNELS];
  last.conv1_rows = last.conv2_bias_rows = last.head_rows = 1;
  last.batch = batch;
  last.fc1_product_gradient = self->fc1_product_gradient;
  last.fc1_inputs = self->pooled2;
  *gradients = last;
  return 0;
}

static const rl_training_ops training_ops = {
    .expose_tensors = expose_tensors, .get_tensors = get_tensors, .gradients = last_gradients};

/* --- phase timestamps --------------------------------------------------------------------------------------------------- */

static int allocate_timestamps(engine *self, rl_error *err) {
  const rl_training_buffer buffer = {&self->timestamps, RL_MEMORY_WORKSPACE, sizeof *self->timestamps};
  if (!self->host_timestamps) self->host_timestamps = (rl_persistent_timestamps *)malloc(sizeof *self->host_timestamps);
  if (!self->host_timestamps) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the phase timestamps");
  if (rl_training_allocate(self, &buffer, 1, err) < 0) return -1;
  rl_device *device = self->base.base.device;
  return device->ops->fill(device, self->timestamps, 0, sizeof *self->timestamps, err);
}

static void free_timestamps(engine *self) {
  rl_device *device = self->base.base.device;
  device->ops->release(device, self->timestamps);
  free(self->host_timestamps);
  self->timestamps = self->host_timestamps = NULL;
}

static int set_phase_timestamps(rl_instance *instance, bool enabled, rl_error *err) {
  if (enabled) return allocate_timestamps(engine_of(instance), err);
  free_timestamps(engine_of(instance));
  return 0;
}

/* Sets begin_ns to the start of the block that started first, and end_ns to the end of the block that ended last. */
static void find_launch_interval(const rl_persistent_timestamps *timestamps, rl_phase_timestamps *to) {
  to->begin_ns = timestamps->launch[0][0];
  for (size_t block = 0; block < to->blocks; block++) {
    if (timestamps->launch[block][0] < to->begin_ns) to->begin_ns = timestamps->launch[block][0];
    if (timestamps->launch[block][1] > to->end_ns) to->end_ns = timestamps->launch[block][1];
  }
}

/* Returns the SM clock in MHz (1000 · cycles / ns), averaged over the blocks. */
static double mean_sm_mhz(const rl_persistent_timestamps *timestamps) {
  double sum = 0;
  for (size_t block = 0; block < RL_PERSISTENT_BLOCKS; block++)
    sum += (double)(timestamps->cycles[block][1] - timestamps->cycles[block][0]) /
           (double)(timestamps->launch[block][1] - timestamps->launch[block][0]);
  return sum / RL_PERSISTENT_BLOCKS * 1e3;
}

/* Removes the steps that were not recorded, in place. Returns [block][steps][1 + RL_TIMED_PHASES]: the start of the step, then
 * the end of each phase. */
static const uint64_t *packed_phases(rl_persistent_timestamps *timestamps, size_t steps) {
  uint64_t *packed = timestamps->phases[0][0];
  for (size_t block = 0; block < RL_PERSISTENT_BLOCKS; block++)
    memmove(&packed[block * steps * (1 + RL_TIMED_PHASES)], timestamps->phases[block], steps * sizeof timestamps->phases[0][0]);
  return packed;
}

static int read_phase_timestamps(rl_instance *instance, rl_phase_timestamps *to, rl_error *err) {
#define PHASE(NAME, NVTX_RANGE) {#NAME, #NVTX_RANGE},
  static const rl_timed_phase phases[] = {RL_TIMED_PHASE_NAMES(PHASE)};
#undef PHASE
  engine *self = engine_of(instance);
  rl_device *device = instance->device;
  if (!self->timestamps)
    return rl_fail(err, RL_INPUT, 0, "phase timestamps are not recorded: turn them on with set_phase_timestamps");
  if (device->ops->download(device, self->host_timestamps, self->timestamps, sizeof *self->timestamps, err) < 0) return -1;
  *to = {};
  to->launch = self->launches[EPOCH].name;
  to->phases = phases;
  to->phase_count = RL_TIMED_PHASES;
  to->steps = instance->steps < RL_TIMESTAMPED_STEPS ? instance->steps : (size_t)RL_TIMESTAMPED_STEPS;
  to->blocks = RL_PERSISTENT_BLOCKS;
  to->microbatches = (rl_training_step_images(self) + RL_PERSISTENT_BLOCK_PAIRS - 1) / RL_PERSISTENT_BLOCK_PAIRS;
  to->sm_mhz = mean_sm_mhz(self->host_timestamps);
  find_launch_interval(self->host_timestamps, to);
  to->ns = packed_phases(self->host_timestamps, to->steps);
  return 0;
}

/* --- opening and closing ------------------------------------------------------------------------------------------------ */

static void close_instance(rl_instance *instance) {
  if (!instance) return;
  engine *self = engine_of(instance);
  rl_device *device = instance->device;
  void *const memory[] = {self->pooled2, self->fc1_product_gradient, self->block_exchange,   self->small_gradients,
                          self->pooled1, self->pooled1_gradient,     self->pooled2_gradient, self->argmax1,
                          self->argmax2, self->partial_conv2_weight, self->partial_head,     self->fc1_operands};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
  free_timestamps(self);
  rl_training_base_close(self);
  free(self);
}

static int allocate_buffers(engine *self, rl_error *err) {
  const uint32_t batch = rl_training_step_images(self);
  const rl_training_buffer buffers[] = {
      {&self->fc1_operands, RL_MEMORY_ACTIVATIONS, rl_persistent_fc1_operands_bytes(self->format, batch)},
      {&self->partial_head, RL_MEMORY_WEIGHTS, rl_persistent_partial_rows(batch) * RL_HEAD_PITCH * sizeof(float)},
      {&self->block_exchange, RL_MEMORY_ACTIVATIONS, rl_persistent_exchange_bytes()},
  };
  return rl_training_allocate(self, buffers, sizeof buffers / sizeof *buffers, err);
}

static void describe_launches(engine *self) {
  rl_instance *instance = &self->base.base;
  self->launches[SHUFFLE] = {"shuffle", "data", rl_training_begin_epoch, self};
  self->launches[EPOCH] = {"persistent_epoch", "kernel", launch_epoch, self};
  self->launches[BEGIN_EVALUATION] = {"begin", "data", rl_training_begin_test, self};
  self->launches[EVALUATION] = {"persistent_evaluate", "kernel", launch_evaluation, self};
  self->sequences[0] = {"begin", &self->launches[SHUFFLE], 1, 1};
  self->sequences[1] = {"step", &self->launches[EPOCH], 1, 1};
  self->evaluation_sequences[0] = {"begin", &self->launches[BEGIN_EVALUATION], 1, 1};
  self->evaluation_sequences[1] = {"evaluate", &self->launches[EVALUATION], 1, 1};
  instance->iteration = {"epoch", self->sequences, 2};
  instance->evaluation = {"evaluation", self->evaluation_sequences, self->base.test_images ? 2u : 0u};
  instance->step_sequence = 1;
  instance->optimizer_steps_per_repeat = self->base.steps;
}

static rl_format format_of(const rl_train_params *params) {
  return {.channels_last = true, .fp16 = params->precision == RL_FP16, .tf32 = params->precision == RL_TF32};
}

static int initialise(engine *self, const rl_train_params *params, rl_error *err) {
  const rl_training_layout layout = {.channels_last = true,
                                     .min_moment_bytes = partial_conv2_bytes((uint32_t)params->batch_size, format_of(params))};
  if (rl_training_base_open(self, params, &layout, err) < 0 || allocate_buffers(self, err) < 0) return -1;
  describe_launches(self);
  return rl_training_reset(&self->base.base, err);
}

static const rl_instance_ops operations = {.reset = rl_training_reset,
                                           .read_results = rl_training_read_results,
                                           .save = rl_training_save,
                                           .restore = rl_training_restore,
                                           .close = close_instance,
                                           .set_phase_timestamps = set_phase_timestamps,
                                           .read_phase_timestamps = read_phase_timestamps};

static int open_instance(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  engine *self = (engine *)calloc(1, sizeof *self);
  if (!self) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the engine");
  self->ops = &training_ops;
  self->base.base.ops = &operations;
  self->base.base.device = device;
  if (initialise(self, (const rl_train_params *)params, err) < 0) {
    close_instance(&self->base.base);
    return -1;
  }
  *instance = &self->base.base;
  return 0;
}

static int device_supports(const void *params, rl_error *err) {
  return rl_persistent_supported(format_of((const rl_train_params *)params), err);
}

extern "C" {
extern const rl_engine rl_engine_persistent;
const rl_engine rl_engine_persistent = {&rl_train_persistent, open_instance, device_supports};
}
