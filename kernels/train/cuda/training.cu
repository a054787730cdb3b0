/* Implements training.h. The device needs no data from the host during an epoch, so an epoch can be captured as one graph. A
 * dependent graph node costs about 0.9 µs on an H200, so engines use few launches. Library algorithms are chosen by timing and
 * cached (library/tune.h); results are bit-identical as long as the choices are the same. */
#include "train/cuda/training.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_check.h"
#include "library/tune.h"
#include "train/setup.h"

enum { PRODUCT_WORKSPACE_BYTES = 2 << 20 /* for cuBLASLt */ };

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static rl_training *training_of(void *instance) { return (rl_training *)rl_training_base_of(instance); }

void *rl_training_compute_weights(const rl_training *e, rl_tensor tensor) {
  uint32_t offset = rl_tensor_offsets[tensor];
  return e->fp16_weights ? (void *)((uint16_t *)e->fp16_weights + offset) : (void *)&e->weights[offset];
}

int rl_training_tune_concurrency(rl_stage *s, int (*launch)(void *arg, rl_stream stream, rl_error *err), bool *concurrent,
                                 rl_error *err) {
  double us[2];
  for (int i = 0; i < 2; i++) {
    *concurrent = i;
    if (rl_tune_measure_us(launch, s, rl_training_stream(s->owner), &us[i], err) < 0) return -1;
  }
  *concurrent = us[1] < us[0];
  return 0;
}

static void describe_stage(rl_training *e, int index, uint32_t batch, uint32_t stride) {
  rl_stage *s = &e->stages[index];
  const rl_recipe *recipe = e->recipe;
  s->owner = e;
  s->index = index;
  s->train = index == RL_STEP || index == RL_TAIL;
  s->gather = s->train ? rl_gather{e->train_images, e->train_labels, e->order, &e->state->step, stride, batch}
                       : rl_gather{e->test_images, e->test_labels, NULL, &e->state->test_step, stride, batch};
  s->head = {s->gather, e->fc1_parts, 1, &e->weights[rl_tensor_offsets[RL_FC1_B]]};
  const rl_partial_rows rows = recipe->rows(e->format, batch);
  s->gradients = {.conv2_weight = e->d_conv2_weight,
                  .conv2_rows = rows.conv2_weight,
                  .fp16 = e->format.fp16,
                  .fc1_weight = e->d_fc1_weight,
                  .conv1 = e->partial_conv1,
                  .conv2_bias = e->partial_conv2_bias,
                  .head = e->partial_head,
                  .conv1_rows = rows.conv1,
                  .conv2_bias_rows = rows.conv2_bias,
                  .head_rows = rows.head,
                  .batch = batch,
                  .d_fc1 = e->d_fc1,
                  .fc1_in = e->pooled2};
  s->launch_count = s->train ? recipe->launch_count : recipe->forward_count;
  memcpy(s->launches, recipe->launches, s->launch_count * sizeof *s->launches);
  for (size_t i = 0; i < s->launch_count; i++) s->launches[i].arg = s;
}

static int open_products(rl_training *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  for (int i = 0; i < RL_WORKSPACES; i++) {
    if (e->workspace_bytes[i] < PRODUCT_WORKSPACE_BYTES) e->workspace_bytes[i] = PRODUCT_WORKSPACE_BYTES;
    if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, e->workspace_bytes[i], &e->workspace[i], err) < 0) return -1;
  }
  for (int i = 0; i < RL_STAGES; i++)
    if (e->stages[i].gather.batch && rl_fc1_open(&e->stages[i], i == RL_STEP, err) < 0) return -1;
  return 0;
}

/* Returns the size of conv2.weight's gradient: partial sums, or one whole gradient. */
static size_t conv2_gradient_bytes(const rl_training *e) {
  const uint32_t rows = e->recipe->rows(e->format, rl_training_step_images(e)).conv2_weight;
  return rl_tensor_sizes[RL_CONV2_W] * (rows ? rows * sizeof(float) : e->value_bytes);
}

static void get_tensors(const rl_training_base *training, rl_training_tensors *tensors) {
  const rl_training *e = (const rl_training *)training;
  tensors->pooled1 = e->pooled1;
  tensors->pooled2 = e->pooled2;
  tensors->argmax1 = e->argmax1;
  tensors->argmax2 = e->argmax2;
  tensors->d_product2 = e->product2;
  tensors->d_pooled1 = e->d_pooled1;
  tensors->d_pooled2 = e->d_pooled2;
  tensors->d_fc1 = e->d_fc1;
}

static int last_gradients(const rl_training_base *training, uint32_t batch, rl_gradients *gradients, rl_error *) {
  const rl_training *e = (const rl_training *)training;
  *gradients = e->stages[batch == e->stages[RL_STEP].gather.batch ? RL_STEP : RL_TAIL].gradients;
  return 0;
}

static int choices_of(const rl_training_base *training, rl_training_choice choices[RL_TRAINING_CHOICES]) {
  const rl_training *e = (const rl_training *)training;
  const rl_stage *s = &e->stages[e->stages[RL_STEP].gather.batch ? RL_STEP : RL_TAIL];
  const rl_gemm *products[] = {s->fc1, s->fc1_data, s->fc1_weight};
  static const char *const names[] = {"fc1_forward", "fc1_data", "fc1_weight"};
  int count = e->recipe->choices ? e->recipe->choices(e, s, choices) : 0;
  for (int i = 0; i < 3; i++) {
    rl_training_choice *to = &choices[count++];
    to->what = names[i];
    to->us = rl_gemm_us(products[i]);
    snprintf(to->how, sizeof to->how, "cuBLASLt, %u parts%s", i == 0 ? s->head.part_count : 1,
             i == 2 && s->fc1_concurrent ? ", beside the other gradient" : "");
  }
  return count;
}

static void close_engine(rl_instance *instance) {
  if (!instance) return;
  rl_training *e = training_of(instance);
  rl_device *device = instance->device;
  if (e->recipe->close) e->recipe->close(e);
  for (int i = 0; i < RL_STAGES; i++) rl_fc1_close(&e->stages[i]);
  void *const memory[] = {e->pooled1,
                          e->pooled2,
                          e->product2,
                          e->d_pooled1,
                          e->d_pooled2,
                          e->d_fc1,
                          e->d_conv2_weight,
                          e->argmax1,
                          e->argmax2,
                          e->fc1_parts,
                          e->d_fc1_weight,
                          e->partial_conv1,
                          e->partial_conv2_bias,
                          e->partial_head,
                          e->workspace[0],
                          e->workspace[1]};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
  if (e->cublas) cublasLtDestroy(e->cublas);
  if (e->fork) cudaEventDestroy(e->fork);
  if (e->join) cudaEventDestroy(e->join);
  if (e->side_stream) cudaStreamDestroy(e->side_stream);
  rl_training_base_close(e);
  free(e);
}

static int open_handles(rl_training *e, rl_error *err) {
  if (rl_cublas_check(cublasLtCreate(&e->cublas), "starting cuBLASLt", err) < 0 ||
      rl_cuda_check(cudaStreamCreateWithFlags(&e->side_stream, cudaStreamNonBlocking), "creating a stream", err) < 0 ||
      rl_cuda_check(cudaEventCreateWithFlags(&e->fork, cudaEventDisableTiming), "creating an event", err) < 0)
    return -1;
  return rl_cuda_check(cudaEventCreateWithFlags(&e->join, cudaEventDisableTiming), "creating an event", err);
}

static int allocate_activations(rl_training *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  const rl_train_instance *t = &e->base;
  size_t batch = rl_training_step_images(e);
  size_t test = min_u32(e->recipe->test_batch, t->test_images), max_batch = batch > test ? batch : test, v = e->value_bytes;
  size_t part_rows = max_batch > RL_MAX_FC1_PART_ROWS ? max_batch : (size_t)RL_MAX_FC1_PART_ROWS;
  const size_t map1 = RL_C1 * RL_POOLED1_SIDE * RL_POOLED1_SIDE,
               product2 = e->recipe->keeps_product ? max_batch * RL_C2 * RL_CONV2_SIDE * RL_CONV2_SIDE : 0;
  const rl_partial_rows rows = e->recipe->rows(e->format, (uint32_t)batch);
  const rl_training_buffer buffers[] = {
      {&e->pooled1, RL_MEMORY_ACTIVATIONS, max_batch * map1 * v},
      {&e->argmax1, RL_MEMORY_ACTIVATIONS, max_batch * map1},
      {&e->product2, RL_MEMORY_ACTIVATIONS, product2 * v},
      {&e->pooled2, RL_MEMORY_ACTIVATIONS, max_batch * RL_FC1_INPUTS * v},
      {&e->argmax2, RL_MEMORY_ACTIVATIONS, max_batch * RL_FC1_INPUTS},
      {&e->fc1_parts, RL_MEMORY_ACTIVATIONS, part_rows * RL_FC1_OUTPUTS * sizeof(float)},
      {&e->d_fc1, RL_MEMORY_ACTIVATIONS, batch * RL_FC1_OUTPUTS * v},
      {&e->d_pooled2, RL_MEMORY_ACTIVATIONS, batch * RL_FC1_INPUTS * v},
      {&e->d_pooled1, RL_MEMORY_ACTIVATIONS, batch * map1 * v},
      {&e->d_conv2_weight, RL_MEMORY_WEIGHTS, conv2_gradient_bytes(e)},
      {&e->d_fc1_weight, RL_MEMORY_WEIGHTS, rl_tensor_sizes[RL_FC1_W] * sizeof(float)},
      {&e->partial_conv1, RL_MEMORY_WEIGHTS, rows.conv1 * RL_C1 * 10 * sizeof(float)},
      {&e->partial_conv2_bias, RL_MEMORY_WEIGHTS, rows.conv2_bias * RL_C2 * sizeof(float)},
      {&e->partial_head, RL_MEMORY_WEIGHTS, rows.head * RL_HEAD_PITCH * sizeof(float)},
  };
  if (rl_training_allocate(e, buffers, sizeof buffers / sizeof *buffers, err) < 0) return -1;
  void *const noise_buffers[] = {e->pooled1, e->product2, e->pooled2, e->d_fc1, e->d_pooled2};
  const size_t counts[] = {max_batch * map1, product2, max_batch * RL_FC1_INPUTS, batch * RL_FC1_OUTPUTS, batch * RL_FC1_INPUTS};
  for (size_t i = 0; i < sizeof noise_buffers / sizeof *noise_buffers; i++)
    if (counts[i] && rl_tune_fill_noise(noise_buffers[i], counts[i], v, device->stream, err) < 0) return -1;
  return 0;
}

static void describe_sequences(rl_training *e) {
  rl_train_instance *t = &e->base;
  uint32_t batch = (uint32_t)t->params.batch_size, test = min_u32(e->recipe->test_batch, t->test_images);
  uint32_t test_tail = test ? t->test_images % test : 0;
  if (t->images >= batch) describe_stage(e, RL_STEP, batch, batch);
  if (t->tail) describe_stage(e, RL_TAIL, t->tail, batch);
  if (test) describe_stage(e, RL_TEST, test, test);
  if (test_tail) describe_stage(e, RL_TEST_TAIL, test_tail, test);
  e->begin = {"shuffle", "data", rl_training_begin_epoch, e};
  e->test_begin = {"begin", "data", rl_training_begin_test, e};
  e->sequences[0] = {"begin", &e->begin, 1, 1};
  e->sequences[1] = {"step", e->stages[RL_STEP].launches, e->stages[RL_STEP].launch_count, t->images / batch};
  e->sequences[2] = {"tail", e->stages[RL_TAIL].launches, e->stages[RL_TAIL].launch_count, t->tail ? 1u : 0u};
  e->test_sequences[0] = {"begin", &e->test_begin, 1, 1};
  e->test_sequences[1] = {"evaluate", e->stages[RL_TEST].launches, e->stages[RL_TEST].launch_count,
                          test ? t->test_images / test : 0};
  e->test_sequences[2] = {"evaluate_tail", e->stages[RL_TEST_TAIL].launches, e->stages[RL_TEST_TAIL].launch_count,
                          test_tail ? 1u : 0u};
  t->base.iteration = {"epoch", e->sequences, 3};
  t->base.evaluation = {"evaluation", e->test_sequences, test ? 3u : 0u};
  t->base.step_sequence = t->images >= batch ? 1 : 2;
}

/* Marks the instance as not deterministic if tuning is not reproducible; a reason that the engine has set has precedence. */
static void note_tuning_nondeterminism(rl_instance *instance) {
  if (!instance->deterministic) return;
  instance->deterministic_note = rl_tuning_cache_nondeterminism_reason();
  instance->deterministic = !instance->deterministic_note;
}

static int initialize(rl_training *e, const rl_train_params *params, rl_error *err) {
  const rl_training_layout layout = {.channels_last = e->recipe->channels_last, .fp16_weights = true};
  if (rl_tune_set_cache_key_prefix(e->base.base.device, err) < 0 || rl_training_base_open(e, params, &layout, err) < 0 ||
      open_handles(e, err) < 0 || allocate_activations(e, err) < 0)
    return -1;
  describe_sequences(e);
  if (rl_training_reset(&e->base.base, err) < 0 || (e->recipe->open && e->recipe->open(e, err) < 0) ||
      open_products(e, err) < 0 || (e->recipe->bind && e->recipe->bind(e, err) < 0))
    return -1;
  note_tuning_nondeterminism(&e->base.base);
  return rl_training_reset(&e->base.base, err); /* timing may have set the overflow flag */
}

static const rl_instance_ops operations = {.reset = rl_training_reset,
                                           .read_results = rl_training_read_results,
                                           .save = rl_training_save,
                                           .restore = rl_training_restore,
                                           .close = close_engine};
static const rl_training_ops training_ops = {.get_tensors = get_tensors, .gradients = last_gradients, .choices = choices_of};

int rl_training_open(const rl_recipe *recipe, rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_training *e = (rl_training *)calloc(1, sizeof *e);
  if (!e) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the engine");
  e->recipe = recipe;
  e->ops = &training_ops;
  e->base.base.ops = &operations;
  e->base.base.device = device;
  if (initialize(e, (const rl_train_params *)params, err) < 0) {
    close_engine(&e->base.base);
    return -1;
  }
  *instance = &e->base.base;
  return 0;
}
