/* Implements training.h: describes the launches of an epoch, allocates the activations, and tunes the library calls.
 *
 * The device needs no data from the host during an epoch, so a CUDA graph can contain many steps. A graph node that depends on
 * another node costs about 0.9 µs on an H200, so engines use few launches. Library algorithms are chosen by timing, and the
 * choices are cached (library/tune.h). Results are bit-identical as long as the choices are the same. */
#include "train/cuda/training.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_check.h"
#include "library/tune.h"
#include "train/setup.h"

enum { MIN_WORKSPACE_BYTES = 2 << 20 /* minimum size of each workspace, for fc1's products */ };

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static rl_training *training_of(void *instance) { return (rl_training *)rl_training_base_of(instance); }

void *rl_training_weights_for_products(const rl_training *training, rl_tensor tensor) {
  uint32_t offset = rl_tensor_offsets[tensor];
  return training->fp16_weights ? (void *)((uint16_t *)training->fp16_weights + offset) : (void *)&training->weights[offset];
}

int rl_training_tune_concurrency(rl_stage *stage, int (*launch)(void *arg, rl_stream stream, rl_error *err), bool *concurrent,
                                 rl_error *err) {
  double us[2];
  for (int i = 0; i < 2; i++) {
    *concurrent = i;
    if (rl_tune_measure_us(launch, stage, rl_training_stream(stage->owner), &us[i], err) < 0) return -1;
  }
  *concurrent = us[1] < us[0];
  return 0;
}

/* Fills in training->stages[index], for batches of `batch` images. stride: images of a full batch. */
static void describe_stage(rl_training *training, int index, uint32_t batch, uint32_t stride) {
  rl_stage *stage = &training->stages[index];
  const rl_launch_graph_engine *engine = training->engine;
  stage->owner = training;
  stage->index = index;
  stage->train = index == RL_STEP || index == RL_TAIL;
  stage->gather =
      stage->train
          ? rl_gather{training->train_images, training->train_labels, training->order, &training->state->step, stride, batch}
          : rl_gather{training->test_images, training->test_labels, NULL, &training->state->test_step, stride, batch};
  stage->head = {stage->gather, training->fc1_parts, 1, &training->weights[rl_tensor_offsets[RL_FC1_B]]};
  const rl_partial_rows rows = engine->partial_rows(training->format, batch);
  stage->gradients = {.conv2_weight = training->conv2_weight_gradient,
                      .conv2_rows = rows.conv2_weight,
                      .conv2_rows_fp16 = engine->fuses_backward,
                      .conv2_row_scale = 1,
                      .fp16 = training->format.fp16,
                      .fc1_weight = training->fc1_weight_gradient,
                      .conv1 = training->partial_conv1,
                      .conv2_bias = training->partial_conv2_bias,
                      .head = training->partial_head,
                      .conv1_rows = rows.conv1,
                      .conv2_bias_rows = rows.conv2_bias,
                      .head_rows = rows.head,
                      .only_head_is_early = engine->fuses_backward,
                      .batch = batch,
                      .fc1_product_gradient = training->fc1_product_gradient,
                      .fc1_inputs = training->pooled2};
  stage->launch_count = stage->train ? engine->launch_count : engine->forward_count;
  memcpy(stage->launches, engine->launches, stage->launch_count * sizeof *stage->launches);
  for (size_t i = 0; i < stage->launch_count; i++) stage->launches[i].arg = stage;
}

/* Allocates the workspaces, and opens fc1's products of every stage. */
static int open_products(rl_training *training, rl_error *err) {
  rl_device *device = training->base.base.device;
  for (int i = 0; i < RL_WORKSPACES; i++) {
    if (training->workspace_bytes[i] < MIN_WORKSPACE_BYTES) training->workspace_bytes[i] = MIN_WORKSPACE_BYTES;
    if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, training->workspace_bytes[i], &training->workspace[i], err) < 0)
      return -1;
  }
  for (int i = 0; i < RL_STAGES; i++)
    if (training->stages[i].gather.batch && rl_fc1_open(&training->stages[i], i == RL_STEP, err) < 0) return -1;
  return 0;
}

/* Returns the most rows of partial sums that a step stores. The tail may store more rows than the steps with more images. */
static rl_partial_rows most_partial_rows(const rl_training *training) {
  const rl_launch_graph_engine *engine = training->engine;
  const rl_partial_rows step = engine->partial_rows(training->format, rl_training_step_images(training));
  if (training->base.tail == 0) return step;
  const rl_partial_rows tail = engine->partial_rows(training->format, training->base.tail);
  return {.conv1 = max_u32(step.conv1, tail.conv1),
          .conv2_weight = max_u32(step.conv2_weight, tail.conv2_weight),
          .conv2_bias = max_u32(step.conv2_bias, tail.conv2_bias),
          .head = max_u32(step.head, tail.head)};
}

/* Returns the size of conv2.weight's gradient, which is stored as rows of partial sums or as one sum. */
static size_t conv2_gradient_bytes(const rl_training *training) {
  const uint32_t rows = most_partial_rows(training).conv2_weight;
  const bool stores_floats = rows && !training->engine->fuses_backward;
  return rl_tensor_sizes[RL_CONV2_W] * max_u32(rows, 1) * (stores_floats ? sizeof(float) : training->value_bytes);
}

static size_t pooled1_gradient_bytes(const rl_training *training) {
  return rl_training_step_images(training) * training->value_bytes * RL_POOLED1_PIXELS * RL_CONV1_CHANNELS;
}

static int expose_tensors(rl_training_base *base, rl_error *err) {
  rl_training *training = (rl_training *)base;
  const rl_training_buffer buffer = {&training->pooled1_gradient, RL_MEMORY_ACTIVATIONS, pooled1_gradient_bytes(training)};
  return rl_training_allocate(training, &buffer, 1, err);
}

static void get_tensors(const rl_training_base *base, rl_training_tensors *tensors) {
  const rl_training *training = (const rl_training *)base;
  tensors->pooled1 = training->pooled1;
  tensors->pooled2 = training->pooled2;
  tensors->argmax1 = training->argmax1;
  tensors->argmax2 = training->argmax2;
  tensors->conv2_product_gradient = training->conv2_product;
  tensors->pooled1_gradient = training->pooled1_gradient;
  tensors->pooled2_gradient = training->pooled2_gradient;
  tensors->fc1_product_gradient = training->fc1_product_gradient;
}

static int last_gradients(const rl_training_base *base, uint32_t batch, rl_gradients *gradients, rl_error *) {
  const rl_training *training = (const rl_training *)base;
  *gradients = training->stages[batch == training->stages[RL_STEP].gather.batch ? RL_STEP : RL_TAIL].gradients;
  return 0;
}

static int choices_of(const rl_training_base *base, rl_training_choice choices[RL_TRAINING_CHOICES]) {
  const rl_training *training = (const rl_training *)base;
  const rl_stage *stage = &training->stages[training->stages[RL_STEP].gather.batch ? RL_STEP : RL_TAIL];
  const rl_gemm *products[] = {stage->fc1_forward, stage->fc1_input_gradient, stage->fc1_weight_gradient};
  static const char *const names[] = {"fc1_forward", "fc1_data", "fc1_weight"};
  int count = training->engine->choices ? training->engine->choices(training, stage, choices) : 0;
  for (int i = 0; i < 3; i++) {
    if (!products[i]) continue;
    rl_training_choice *to = &choices[count++];
    to->call = names[i];
    to->us = rl_gemm_algorithm_us(products[i]);
    snprintf(to->algorithm, sizeof to->algorithm, "cuBLASLt, %u parts%s", i == 0 ? stage->head.part_count : 1,
             i == 2 && stage->fc1_concurrent ? ", beside the other gradient" : "");
  }
  return count;
}

static void close_engine(rl_instance *instance) {
  if (!instance) return;
  rl_training *training = training_of(instance);
  rl_device *device = instance->device;
  if (training->engine->close) training->engine->close(training);
  for (int i = 0; i < RL_STAGES; i++) rl_fc1_close(&training->stages[i]);
  void *const memory[] = {training->pooled1,
                          training->pooled2,
                          training->conv2_product,
                          training->pooled1_gradient,
                          training->pooled2_gradient,
                          training->fc1_product_gradient,
                          training->conv2_weight_gradient,
                          training->argmax1,
                          training->argmax2,
                          training->fc1_parts,
                          training->fc1_weight_gradient,
                          training->partial_conv1,
                          training->partial_conv2_bias,
                          training->partial_head,
                          training->workspace[0],
                          training->workspace[1]};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
  if (training->cublas) cublasLtDestroy(training->cublas);
  if (training->fork) cudaEventDestroy(training->fork);
  if (training->join) cudaEventDestroy(training->join);
  if (training->side_stream) cudaStreamDestroy(training->side_stream);
  rl_training_base_close(training);
  free(training);
}

static int open_handles(rl_training *training, rl_error *err) {
  if (rl_cublas_check(cublasLtCreate(&training->cublas), "starting cuBLASLt", err) < 0 ||
      rl_cuda_check(cudaStreamCreateWithFlags(&training->side_stream, cudaStreamNonBlocking), "creating a stream", err) < 0 ||
      rl_cuda_check(cudaEventCreateWithFlags(&training->fork, cudaEventDisableTiming), "creating an event", err) < 0)
    return -1;
  return rl_cuda_check(cudaEventCreateWithFlags(&training->join, cudaEventDisableTiming), "creating an event", err);
}

/* Allocates activations for the larger of the training batch and the evaluation batch, and gradients for the training batch.
 * Fills the inputs of products with noise, because tuning runs on them. */
static int allocate_activations(rl_training *training, rl_error *err) {
  rl_device *device = training->base.base.device;
  const rl_train_instance *instance = &training->base;
  size_t batch = rl_training_step_images(training);
  size_t test = min_u32(training->engine->test_batch, instance->test_images), max_batch = batch > test ? batch : test,
         value_bytes = training->value_bytes;
  size_t part_rows = max_batch > RL_MAX_FC1_PART_ROWS ? max_batch : (size_t)RL_MAX_FC1_PART_ROWS;
  const size_t pooled1_values = RL_CONV1_CHANNELS * RL_POOLED1_SIDE * RL_POOLED1_SIDE,
               conv2_product_values =
                   training->engine->stores_conv2_product ? max_batch * RL_CONV2_CHANNELS * RL_CONV2_SIDE * RL_CONV2_SIDE : 0;
  const rl_partial_rows rows = most_partial_rows(training);
  const rl_training_buffer buffers[] = {
      {&training->pooled1, RL_MEMORY_ACTIVATIONS, max_batch * pooled1_values * value_bytes},
      {&training->argmax1, RL_MEMORY_ACTIVATIONS, max_batch * pooled1_values},
      {&training->conv2_product, RL_MEMORY_ACTIVATIONS, conv2_product_values * value_bytes},
      {&training->pooled2, RL_MEMORY_ACTIVATIONS, max_batch * RL_FC1_INPUTS * value_bytes},
      {&training->argmax2, RL_MEMORY_ACTIVATIONS, max_batch * RL_FC1_INPUTS},
      {&training->fc1_parts, RL_MEMORY_ACTIVATIONS, part_rows * RL_FC1_OUTPUTS * sizeof(float)},
      {&training->fc1_product_gradient, RL_MEMORY_ACTIVATIONS, batch * RL_FC1_OUTPUTS * value_bytes},
      {&training->pooled2_gradient, RL_MEMORY_ACTIVATIONS, batch * RL_FC1_INPUTS * value_bytes},
      {&training->pooled1_gradient, RL_MEMORY_ACTIVATIONS,
       training->engine->fuses_backward ? 0 : pooled1_gradient_bytes(training)},
      {&training->conv2_weight_gradient, RL_MEMORY_WEIGHTS, conv2_gradient_bytes(training)},
      {&training->fc1_weight_gradient, RL_MEMORY_WEIGHTS, rl_tensor_sizes[RL_FC1_W] * sizeof(float)},
      {&training->partial_conv1, RL_MEMORY_WEIGHTS, rows.conv1 * RL_CONV1_CHANNELS * 10 * sizeof(float)},
      {&training->partial_conv2_bias, RL_MEMORY_WEIGHTS, rows.conv2_bias * RL_CONV2_CHANNELS * sizeof(float)},
      {&training->partial_head, RL_MEMORY_WEIGHTS, rows.head * RL_HEAD_PITCH * sizeof(float)},
  };
  if (rl_training_allocate(training, buffers, sizeof buffers / sizeof *buffers, err) < 0) return -1;
  void *const noise_buffers[] = {training->pooled1, training->conv2_product, training->pooled2, training->fc1_product_gradient,
                                 training->pooled2_gradient};
  const size_t counts[] = {max_batch * pooled1_values, conv2_product_values, max_batch * RL_FC1_INPUTS, batch * RL_FC1_OUTPUTS,
                           batch * RL_FC1_INPUTS};
  for (size_t i = 0; i < sizeof noise_buffers / sizeof *noise_buffers; i++)
    if (counts[i] && rl_tune_fill_noise(noise_buffers[i], counts[i], value_bytes, device->stream, err) < 0) return -1;
  return 0;
}

/* Describes the stages, and the sequences of launches of an epoch and of an evaluation. */
static void describe_sequences(rl_training *training) {
  rl_train_instance *instance = &training->base;
  uint32_t batch = (uint32_t)instance->params.batch_size, test = min_u32(training->engine->test_batch, instance->test_images);
  uint32_t test_tail = test ? instance->test_images % test : 0;
  if (instance->images >= batch) describe_stage(training, RL_STEP, batch, batch);
  if (instance->tail) describe_stage(training, RL_TAIL, instance->tail, batch);
  if (test) describe_stage(training, RL_TEST, test, test);
  if (test_tail) describe_stage(training, RL_TEST_TAIL, test_tail, test);
  training->epoch_begin = {"shuffle", "data", rl_training_begin_epoch, training};
  training->test_begin = {"begin", "data", rl_training_begin_test, training};
  training->sequences[0] = {"begin", &training->epoch_begin, 1, 1};
  training->sequences[1] = {"step", training->stages[RL_STEP].launches, training->stages[RL_STEP].launch_count,
                            instance->images / batch};
  training->sequences[2] = {"tail", training->stages[RL_TAIL].launches, training->stages[RL_TAIL].launch_count,
                            instance->tail ? 1u : 0u};
  training->test_sequences[0] = {"begin", &training->test_begin, 1, 1};
  training->test_sequences[1] = {"evaluate", training->stages[RL_TEST].launches, training->stages[RL_TEST].launch_count,
                                 test ? instance->test_images / test : 0};
  training->test_sequences[2] = {"evaluate_tail", training->stages[RL_TEST_TAIL].launches,
                                 training->stages[RL_TEST_TAIL].launch_count, test_tail ? 1u : 0u};
  instance->base.iteration = {"epoch", training->sequences, 3};
  instance->base.evaluation = {"evaluation", training->test_sequences, test ? 3u : 0u};
  instance->base.step_sequence = instance->images >= batch ? 1 : 2;
}

/* Marks the instance as not deterministic if tuning is not reproducible. If the engine has already marked it, keeps the engine's
 * reason. */
static void note_tuning_nondeterminism(rl_instance *instance) {
  if (!instance->deterministic) return;
  instance->deterministic_note = rl_tuning_cache_nondeterminism_reason();
  instance->deterministic = !instance->deterministic_note;
}

static int initialise(rl_training *training, const rl_train_params *params, rl_error *err) {
  const rl_training_layout layout = {.channels_last = training->engine->channels_last, .fp16_weights = true};
  if (rl_tune_set_cache_key_prefix(training->base.base.device, err) < 0 ||
      rl_training_base_open(training, params, &layout, err) < 0 || open_handles(training, err) < 0 ||
      allocate_activations(training, err) < 0)
    return -1;
  describe_sequences(training);
  if (rl_training_reset(&training->base.base, err) < 0 || (training->engine->open && training->engine->open(training, err) < 0) ||
      open_products(training, err) < 0 || (training->engine->bind && training->engine->bind(training, err) < 0))
    return -1;
  note_tuning_nondeterminism(&training->base.base);
  return rl_training_reset(&training->base.base, err); /* the timing of launches may have set the overflow flag */
}

static const rl_instance_ops operations = {.reset = rl_training_reset,
                                           .read_results = rl_training_read_results,
                                           .save = rl_training_save,
                                           .restore = rl_training_restore,
                                           .close = close_engine};
static const rl_training_ops training_ops = {
    .expose_tensors = expose_tensors, .get_tensors = get_tensors, .gradients = last_gradients, .choices = choices_of};

int rl_training_open(const rl_launch_graph_engine *engine, rl_device *device, const void *params, rl_instance **instance,
                     rl_error *err) {
  rl_training *training = (rl_training *)calloc(1, sizeof *training);
  if (!training) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the engine");
  training->engine = engine;
  training->ops = &training_ops;
  training->base.base.ops = &operations;
  training->base.base.device = device;
  if (initialise(training, (const rl_train_params *)params, err) < 0) {
    close_engine(&training->base.base);
    return -1;
  }
  *instance = &training->base.base;
  return 0;
}
