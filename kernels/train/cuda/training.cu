/* See training.h. Nothing in an epoch needs the host, so that it is one captured graph; a dependent node of it costs about 0.9 µs
 * on an H200: few launches win. Library algorithms are chosen by timing, once (tune.h): the same choices repeat bit for bit. */
#include "train/cuda/training_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_check.h"
#include "library/tune.h"
#include "train/setup.h"

enum {
  PRODUCT_WORKSPACE = 2 << 20, /* for cuBLASLt */
  STATE_ROOM = 256             /* bytes */
};
static_assert(sizeof(rl_train_state) <= STATE_ROOM, "what lies behind it is aligned");

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t images_of_step(const rl_training *e) { return smaller((uint32_t)e->base.params.batch_size, e->base.images); }
cudaStream_t rl_training_stream(const rl_training *e) { return (cudaStream_t)e->base.base.device->stream; }

/* --- stages ------------------------------------------------------------------------------------------------------------- */

void *rl_training_multiplied(const rl_training *e, rl_tensor tensor) {
  uint32_t at = rl_tensor_offsets[tensor];
  return e->halves ? (void *)((uint16_t *)e->halves + at) : (void *)&e->weights[at];
}

int rl_training_beside(rl_stage *s, int (*launch)(void *arg, rl_stream stream, rl_error *err), bool *beside, rl_error *err) {
  double us[2];
  for (int i = 0; i < 2; i++) {
    *beside = i;
    if (rl_tune_time(launch, s, rl_training_stream(s->owner), &us[i], err)) return -1;
  }
  *beside = us[1] < us[0];
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
  s->head = {s->gather, e->parts, 1, &e->weights[rl_tensor_offsets[RL_FC1_B]]};
  const rl_partial_rows rows = recipe->rows(e->format, batch);
  s->gradients = {
      e->d_conv2_weight, rows.conv2_weight, e->format.half, e->d_fc1_weight, e->partial_conv1, e->partial_conv2, e->partial_head,
      rows.conv1,        rows.conv2_bias,   rows.head,      batch,           e->d_fc1,         e->pooled2};
  s->launch_count = recipe->whole_epoch ? 0 : s->train ? recipe->launch_count : recipe->forward_count;
  memcpy(s->launches, recipe->launches, s->launch_count * sizeof *s->launches);
  for (size_t i = 0; i < s->launch_count; i++) s->launches[i].arg = s;
}

static int open_products(rl_training *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  if (e->recipe->multiplies_fc1) return 0;
  for (int lane = 0; lane < RL_LANES; lane++) {
    if (e->workspace_bytes[lane] < PRODUCT_WORKSPACE) e->workspace_bytes[lane] = PRODUCT_WORKSPACE;
    if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, e->workspace_bytes[lane], &e->workspace[lane], err)) return -1;
  }
  for (int i = 0; i < RL_STAGES; i++)
    if (e->stages[i].gather.batch && rl_fc1_open(&e->stages[i], i == RL_STEP, err)) return -1;
  return 0;
}

/* --- what is watched ----------------------------------------------------------------------------------------------------- */

/* Rows of partial sums of conv2.weight's gradient, or the whole. */
static size_t conv2_rows_bytes(const rl_training *e) {
  const uint32_t rows = e->recipe->rows(e->format, images_of_step(e)).conv2_weight;
  return rl_tensor_sizes[RL_CONV2_W] * (rows ? rows * sizeof(float) : e->value_bytes);
}

int rl_training_watch(rl_train_instance *instance, rl_error *err) {
  rl_training *e = rl_training_of(instance);
  rl_device *device = instance->base.device;
  const size_t batch = images_of_step(e), map1 = RL_C1 * RL_P1 * RL_P1, v = e->value_bytes;
  const size_t shown = e->recipe->whole_epoch ? batch : 0;
  const struct {
    void *to;
    size_t bytes;
  } wanted[] = {
      {&e->shown.pooled1, shown * map1 * v}, {&e->shown.codes1, shown * map1},     {&e->shown.codes2, shown * RL_FLAT},
      {&e->d_pooled1, batch * map1 * v},     {&e->d_pooled2, batch * RL_FLAT * v}, {&e->d_conv2_weight, conv2_rows_bytes(e)},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    void **const to = (void **)wanted[i].to;
    const bool there = *to || !wanted[i].bytes;
    if (!there && device->ops->allocate(device, RL_MEMORY_WORKSPACE, wanted[i].bytes, to, err)) return -1;
  }
  return 0;
}

/* --- phase timestamps of an epoch in one launch
 * ---------------------------------------------------------------------------------------- */

static int allocate_timestamps(rl_training *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  if (!e->host_timestamps) e->host_timestamps = (rl_persistent_timestamps *)malloc(sizeof *e->host_timestamps);
  if (!e->host_timestamps) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the phase timestamps");
  const size_t bytes = sizeof *e->host_timestamps;
  if (!e->shown.timestamps && device->ops->allocate(device, RL_MEMORY_WORKSPACE, bytes, (void **)&e->shown.timestamps, err))
    return -1;
  return device->ops->zero(device, e->shown.timestamps, bytes, err);
}

static void free_timestamps(rl_training *e) {
  rl_device *device = e->base.base.device;
  device->ops->release(device, e->shown.timestamps);
  free(e->host_timestamps);
  e->shown.timestamps = e->host_timestamps = NULL;
}

static int set_phase_timestamps(rl_instance *instance, bool on, rl_error *err) {
  if (on) return allocate_timestamps(rl_training_of(instance), err);
  free_timestamps(rl_training_of(instance));
  return 0;
}

static void find_ends(const rl_persistent_timestamps *stamps, rl_phase_timestamps *to) {
  to->begin_ns = stamps->launch[0][0];
  for (size_t block = 0; block < to->blocks; block++) {
    if (stamps->launch[block][0] < to->begin_ns) to->begin_ns = stamps->launch[block][0];
    if (stamps->launch[block][1] > to->end_ns) to->end_ns = stamps->launch[block][1];
  }
}

static double sm_mhz(const rl_persistent_timestamps *stamps, size_t blocks) {
  double sum = 0;
  for (size_t block = 0; block < blocks; block++)
    sum += (double)(stamps->cycles[block][1] - stamps->cycles[block][0]) /
           (double)(stamps->launch[block][1] - stamps->launch[block][0]);
  return sum / (double)blocks * 1e3;
}

static int read_phase_timestamps(rl_instance *instance, rl_phase_timestamps *to, rl_error *err) {
#define PHASE(NAME, RANGE) {#NAME, #RANGE},
  static const rl_timed_phase phases[] = {RL_PHASE_NAMES(PHASE)};
#undef PHASE
  rl_training *e = rl_training_of(instance);
  rl_device *device = instance->device;
  if (!e->shown.timestamps) return rl_fail(err, RL_INPUT, 0, "phase timestamps are not on");
  if (device->ops->download(device, e->host_timestamps, e->shown.timestamps, sizeof *e->host_timestamps, err)) return -1;
  const size_t steps = smaller((uint32_t)instance->steps, RL_TIMESTAMPED_STEPS);
  const size_t rounds = (images_of_step(e) + RL_PERSISTENT_PAIRS - 1) / RL_PERSISTENT_PAIRS;
  uint64_t *packed = e->host_timestamps->phases[0][0];
  for (size_t block = 0; block < 2 * RL_PERSISTENT_PAIRS; block++)
    memmove(&packed[block * steps * (1 + RL_PHASES)], e->host_timestamps->phases[block],
            steps * sizeof e->host_timestamps->phases[0][0]);
  *to = {e->recipe->launches[0].name,
         phases,
         RL_PHASES,
         steps,
         2 * RL_PERSISTENT_PAIRS,
         0,
         0,
         packed,
         rounds,
         sm_mhz(e->host_timestamps, 2 * RL_PERSISTENT_PAIRS)};
  find_ends(e->host_timestamps, to);
  return 0;
}

int rl_training_choices(rl_train_instance *instance, rl_training_choice choices[RL_TRAINING_CHOICES]) {
  rl_training *e = rl_training_of(instance);
  const rl_stage *s = &e->stages[e->stages[RL_STEP].gather.batch ? RL_STEP : RL_TAIL];
  const rl_gemm *products[] = {s->fc1, s->fc1_data, s->fc1_weight};
  static const char *const names[] = {"fc1_forward", "fc1_data", "fc1_weight"};
  int count = e->recipe->choices ? e->recipe->choices(e, s, choices) : 0;
  for (int i = 0; i < 3 && !e->recipe->multiplies_fc1; i++) {
    rl_training_choice *to = &choices[count++];
    to->what = names[i];
    to->us = rl_gemm_us(products[i]);
    snprintf(to->how, sizeof to->how, "cuBLASLt, %u parts%s", i == 0 ? s->head.part_count : 1,
             i == 2 && s->fc1_beside ? ", beside the other gradient" : "");
  }
  return count;
}

/* --- opening and closing ------------------------------------------------------------------------------------------------ */

static void close_engine(rl_instance *instance) {
  if (!instance) return;
  rl_training *e = rl_training_of(instance);
  rl_device *device = instance->device;
  if (e->recipe->close) e->recipe->close(e);
  for (int i = 0; i < RL_STAGES; i++) rl_fc1_close(&e->stages[i]);
  void *const memory[] = {e->train_images,
                          e->train_labels,
                          e->test_images,
                          e->test_labels,
                          e->order,
                          e->kept,
                          e->saved,
                          e->pooled1,
                          e->pooled2,
                          e->product2,
                          e->d_pooled1,
                          e->d_pooled2,
                          e->d_fc1,
                          e->d_conv2_weight,
                          e->codes1,
                          e->codes2,
                          e->shown.timestamps,
                          e->shown.pooled1,
                          e->shown.codes1,
                          e->shown.codes2,
                          e->exchange,
                          e->parts,
                          e->d_fc1_weight,
                          e->partial_conv1,
                          e->partial_conv2,
                          e->partial_head,
                          e->losses,
                          e->test_losses,
                          e->test_correct,
                          e->workspace[0],
                          e->workspace[1]};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
  if (e->cublas) cublasLtDestroy(e->cublas);
  if (e->fork) cudaEventDestroy(e->fork);
  if (e->join) cudaEventDestroy(e->join);
  if (e->side) cudaStreamDestroy(e->side);
  free(e->host_timestamps);
  free(e);
}

static int open_handles(rl_training *e, rl_error *err) {
  if (rl_cublas_ok(cublasLtCreate(&e->cublas), "starting cuBLASLt", err) ||
      rl_cuda_ok(cudaStreamCreateWithFlags(&e->side, cudaStreamNonBlocking), "creating a stream", err) ||
      rl_cuda_ok(cudaEventCreateWithFlags(&e->fork, cudaEventDisableTiming), "creating an event", err))
    return -1;
  return rl_cuda_ok(cudaEventCreateWithFlags(&e->join, cudaEventDisableTiming), "creating an event", err);
}

static int upload_new(rl_device *device, const void *from, size_t bytes, uint8_t **to, rl_error *err) {
  if (device->ops->allocate(device, RL_MEMORY_DATASET, bytes, (void **)to, err)) return -1;
  return device->ops->upload(device, *to, from, bytes, err);
}

static int upload_dataset(rl_training *e, const rl_dataset *data, rl_error *err) {
  rl_device *device = e->base.base.device;
  size_t images = e->base.images, test_images = e->base.test_images;
  if (upload_new(device, data->train_images, images * RL_PIXELS, &e->train_images, err) ||
      upload_new(device, data->train_labels, images, &e->train_labels, err) ||
      upload_new(device, data->test_images, test_images * RL_PIXELS, &e->test_images, err) ||
      upload_new(device, data->test_labels, test_images, &e->test_labels, err) ||
      device->ops->allocate(device, RL_MEMORY_DATASET, images * sizeof *e->order, (void **)&e->order, err))
    return -1;
  return device->ops->zero(device, e->order, images * sizeof *e->order, err);
}

/* Weights, FP16 copies, state, moments. Blocks that stay for an epoch keep weights and moments themselves: then FP16 copies lie
 * over the weights meanwhile, and rows of partial sums from the moments on, for which there is room. */
static int allocate_kept(rl_training *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  const bool whole = e->recipe->whole_epoch;
  const size_t floats = RL_PADDED * sizeof(float), halves = e->format.half && !whole ? RL_PADDED * sizeof(uint16_t) : 0,
               front = floats + halves + STATE_ROOM, rows = whole ? conv2_rows_bytes(e) : 0;
  e->kept_bytes = front + 2 * floats;
  const size_t bytes = rows > 2 * floats ? front + rows : e->kept_bytes;
  if (device->ops->allocate(device, RL_MEMORY_WEIGHTS, bytes, (void **)&e->kept, err)) return -1;
  e->weights = (float *)e->kept;
  e->halves = halves ? e->kept + floats : NULL;
  e->state = (rl_train_state *)(e->kept + floats + halves);
  e->first = (float *)(e->kept + front);
  e->second = e->first + RL_PADDED;
  return device->ops->zero(device, e->kept, e->kept_bytes, err);
}

static int allocate_activations(rl_training *e, rl_error *err) {
  rl_device *device = e->base.base.device;
  const rl_train_instance *t = &e->base;
  size_t batch = images_of_step(e);
  size_t test = smaller(e->recipe->test_batch, t->test_images), most = batch > test ? batch : test, v = e->value_bytes;
  size_t part_rows = most > RL_PART_ROWS ? most : (size_t)RL_PART_ROWS;
  if (e->recipe->multiplies_fc1) part_rows = 0;
  const size_t kept = e->recipe->whole_epoch ? 0 : most;       /* images between launches */
  const size_t sent_back = e->recipe->whole_epoch ? 0 : batch; /* and back */
  const size_t map1 = RL_C1 * RL_P1 * RL_P1, product2 = e->recipe->keeps_product ? most * RL_C2 * RL_H2 * RL_H2 : 0;
  const rl_partial_rows rows = e->recipe->rows(e->format, (uint32_t)batch);
  const struct {
    void *to;
    rl_purpose purpose;
    size_t bytes;
  } wanted[] = {
      {&e->pooled1, RL_MEMORY_ACTIVATIONS, kept * map1 * v},
      {&e->codes1, RL_MEMORY_ACTIVATIONS, kept * map1},
      {&e->product2, RL_MEMORY_ACTIVATIONS, product2 * v},
      {&e->pooled2, RL_MEMORY_ACTIVATIONS, most * RL_FLAT * v},
      {&e->codes2, RL_MEMORY_ACTIVATIONS, kept * RL_FLAT},
      {&e->parts, RL_MEMORY_ACTIVATIONS, part_rows * RL_FC1 * sizeof(float)},
      {&e->d_fc1, RL_MEMORY_ACTIVATIONS, batch * RL_FC1 * v},
      {&e->d_pooled2, RL_MEMORY_ACTIVATIONS, sent_back * RL_FLAT * v},
      {&e->d_pooled1, RL_MEMORY_ACTIVATIONS, sent_back * map1 * v},
      {&e->d_conv2_weight, RL_MEMORY_WEIGHTS, e->recipe->whole_epoch ? 0 : conv2_rows_bytes(e)},
      {&e->d_fc1_weight, RL_MEMORY_WEIGHTS, e->recipe->multiplies_fc1 ? 0 : rl_tensor_sizes[RL_FC1_W] * sizeof(float)},
      {&e->partial_conv1, RL_MEMORY_WEIGHTS, rows.conv1 * RL_C1 * 10 * sizeof(float)},
      {&e->partial_conv2, RL_MEMORY_WEIGHTS, rows.conv2_bias * RL_C2 * sizeof(float)},
      {&e->partial_head, RL_MEMORY_WEIGHTS, rows.head * RL_HEAD_ROW * sizeof(float)},
      {&e->exchange, RL_MEMORY_ACTIVATIONS, e->recipe->whole_epoch ? rl_persistent_exchange_bytes() : 0},
      {&e->losses, RL_MEMORY_ACTIVATIONS, t->steps * sizeof(float)},
      {&e->test_losses, RL_MEMORY_ACTIVATIONS, t->test_images * sizeof(float)},
      {&e->test_correct, RL_MEMORY_ACTIVATIONS, t->test_images},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (wanted[i].bytes && device->ops->allocate(device, wanted[i].purpose, wanted[i].bytes, (void **)wanted[i].to, err))
      return -1;
  void *const noisy[] = {e->pooled1, e->product2, e->pooled2, e->d_fc1, e->d_pooled2};
  const size_t counts[] = {kept * map1, product2, most * RL_FLAT, batch * RL_FC1, sent_back * RL_FLAT};
  for (size_t i = 0; i < sizeof noisy / sizeof *noisy; i++)
    if (counts[i] && rl_tune_fill_noise(noisy[i], counts[i], v, device->stream, err)) return -1;
  return 0;
}

static void describe_programs(rl_training *e) {
  rl_train_instance *t = &e->base;
  uint32_t batch = (uint32_t)t->params.batch_size, test = smaller(e->recipe->test_batch, t->test_images);
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
  if (e->recipe->whole_epoch) {
    for (int i = 0; i < 2; i++)
      e->whole[i] = {e->recipe->launches[i].name, e->recipe->launches[i].range, e->recipe->launches[i].enqueue, e};
    test = t->test_images;
    e->sequences[1] = {"step", &e->whole[0], 1, 1};
    e->test_sequences[1] = {"evaluate", &e->whole[1], 1, 1};
    e->sequences[2].repeat = e->test_sequences[2].repeat = 0;
    t->base.steps_per_repeat = t->base.steps;
  }
  t->base.iteration = {"epoch", e->sequences, 3};
  t->base.evaluation = {"evaluation", e->test_sequences, test ? 3u : 0u};
  t->base.step_sequence = t->images >= batch || e->recipe->whole_epoch ? 1 : 2;
}

/* Unless the engine found a reason of its own, or takes no choices. */
static void note_determinism(rl_instance *instance) {
  if (!instance->deterministic || rl_training_of(instance)->recipe->multiplies_fc1) return;
  instance->deterministic_note = rl_choices_note();
  instance->deterministic = !instance->deterministic_note;
}

static int build(rl_training *e, const rl_train_params *params, rl_error *err) {
  rl_dataset data = {};
  if (rl_tune_set_scope(e->base.base.device, err)) return -1;
  if (rl_train_setup(&e->base, params, &data, err)) return -1;
  int rc = upload_dataset(e, &data, err);
  rl_dataset_free(&data);
  if (rc || open_handles(e, err) || allocate_kept(e, err) || allocate_activations(e, err)) return -1;
  describe_programs(e);
  e->base.base.deterministic = true;
  if (rl_training_reset(&e->base.base, err) || (e->recipe->open && e->recipe->open(e, err)) || open_products(e, err) ||
      (e->recipe->bind && e->recipe->bind(e, err)))
    return -1;
  note_determinism(&e->base.base);
  return rl_training_reset(&e->base.base, err); /* trials raise the overflow flag */
}

static const rl_instance_ops operations = {rl_training_reset, rl_training_report, rl_training_save, rl_training_restore,
                                           close_engine};
static const rl_instance_ops whole_operations = {rl_training_reset,    rl_training_report,   rl_training_save,
                                                 rl_training_restore,  close_engine,         NULL,
                                                 set_phase_timestamps, read_phase_timestamps};

int rl_training_open(const rl_recipe *recipe, rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_training *e = (rl_training *)calloc(1, sizeof *e);
  if (!e) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the engine");
  e->recipe = recipe;
  e->base.base.ops = recipe->whole_epoch ? &whole_operations : &operations;
  e->base.base.device = device;
  e->base.losses = rl_training_losses;
  e->base.parameters = rl_training_parameters;
  e->base.gradients = rl_training_gradients;
  e->base.set_parameters = rl_training_set_parameters;
  int precision = ((const rl_train_params *)params)->precision;
  e->format.half = precision == RL_FP16;
  e->format.channels_last = recipe->channels_last || precision != RL_FP32;
  e->format.tensor_float = precision == RL_TF32;
  e->value_bytes = e->format.half ? 2 : 4;
  if (build(e, (const rl_train_params *)params, err)) {
    close_engine(&e->base.base);
    return -1;
  }
  *instance = &e->base.base;
  return 0;
}
