#include "train/layers.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum {
  ROWS = 32,             /* outputs of fc1 in a task of its forward */
  COLUMNS = RL_FLAT / 8, /* inputs of fc1 in a task of its backward */
  PART = ROWS * RL_FLAT  /* floats of fc1's weights in a task, at most */
};
_Static_assert(PART >= RL_FC1 * COLUMNS, "a task of the backward has no more weights than one of the forward");

static float *gradient_of(rl_layers *l, rl_tensor tensor) { return l->train.gradients + rl_offset(tensor); }

float *rl_unpack(const rl_layers *l, rl_values from, size_t at, size_t count, float *spare) {
  if (!l->train.half) return (float *)from.data + at;
  l->simd->from_half(count, (const uint16_t *)from.data + at, spare);
  return spare;
}

float *rl_compute_at(const rl_layers *l, rl_values to, size_t at, float *spare) {
  return l->train.half ? spare : (float *)to.data + at;
}

void rl_pack(const rl_layers *l, rl_values to, size_t at, size_t count, const float *computed) {
  if (l->train.half) l->simd->to_half(count, computed, (uint16_t *)to.data + at);
}

const float *rl_weights(const rl_layers *l, size_t at, size_t count, float *spare) {
  if (!l->train.half) return l->train.weights + at;
  l->simd->from_half(count, l->weights16 + at, spare);
  return spare;
}

/* --- slots of a batch -------------------------------------------------------------------------------------------------- */

typedef struct batch { /* what the tasks of a launch share */
  rl_layers *layers;
  uint32_t n;
  rl_slot_work *work;
} batch;

static void share(rl_layers *l, uint32_t n, uint32_t tasks, rl_task *task) {
  batch shared = {.layers = l, .n = n};
  rl_threads_run(l->train.threads, tasks, task, &shared);
}

static uint32_t slot_start(uint32_t n, uint32_t slot) { return (uint32_t)((uint64_t)n * slot / RL_SLOTS); }

static void do_slot(void *context, uint32_t number, uint32_t thread) {
  const batch *all = context;
  rl_layers *l = all->layers;
  rl_slot slot = {slot_start(all->n, number), slot_start(all->n, number + 1), l->slots + (size_t)number * RL_CONV_GRADIENTS};
  all->work(l, slot, thread);
}

void rl_share_slots(rl_layers *l, uint32_t n, rl_slot_work *work) {
  batch shared = {l, n, work};
  rl_threads_run(l->train.threads, RL_SLOTS, do_slot, &shared);
}

static void sum_part(void *context, uint32_t part, uint32_t thread) {
  (void)thread;
  rl_layers *l = ((const batch *)context)->layers;
  size_t first = (size_t)RL_CONV_GRADIENTS * part / RL_SLOTS, count = (size_t)RL_CONV_GRADIENTS * (part + 1) / RL_SLOTS - first;
  float *sum = l->train.gradients + first;
  memcpy(sum, l->slots + first, sizeof *sum * count);
  for (size_t slot = 1; slot < RL_SLOTS; slot++) l->simd->add(count, l->slots + slot * RL_CONV_GRADIENTS + first, sum);
}

void rl_sum_slots(rl_layers *l) { share(l, 0, RL_SLOTS, sum_part); }

/* --- the linear layers ------------------------------------------------------------------------------------------------- */

/* fp16: this thread's place for the weights of fc1 in its task. */
static float *own_part(const rl_layers *l, uint32_t thread) {
  return l->train.half ? l->fc1_parts + (size_t)thread * PART : NULL;
}

static void fc1_forward_rows(void *context, uint32_t block, uint32_t thread) {
  const batch *all = context;
  rl_layers *l = all->layers;
  const float *w = rl_weights(l, rl_offset(RL_FC1_W) + (size_t)block * ROWS * RL_FLAT, PART, own_part(l, thread));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)all->n, ROWS, RL_FLAT, 1, l->flat, RL_FLAT, w, RL_FLAT, 0,
              l->hidden + block * ROWS, RL_FC1);
}

void rl_fc1_forward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  float spare[RL_FC1];
  rl_unpack(l, l->p2, 0, (size_t)n * RL_FLAT, l->flat);
  share(l, n, RL_FC1 / ROWS, fc1_forward_rows);
  l->simd->bias_relu(n, RL_FC1, rl_weights(l, rl_offset(RL_FC1_B), RL_FC1, spare), l->hidden);
  rl_pack(l, l->f1, 0, (size_t)n * RL_FC1, l->hidden);
}

static void round_to_half(const rl_layers *l, size_t count, float *values) {
  uint16_t part[256];
  for (size_t i = 0; l->train.half && i < count; i += 256) {
    size_t some = count - i < 256 ? count - i : 256;
    l->simd->to_half(some, values + i, part);
    l->simd->from_half(some, part, values + i);
  }
}

void rl_fc2_forward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  float spare[RL_CLASSES * RL_FC1], spare_b[RL_CLASSES];
  rl_unpack(l, l->f1, 0, (size_t)n * RL_FC1, l->hidden);
  const float *w = rl_weights(l, rl_offset(RL_FC2_W), RL_CLASSES * RL_FC1, spare);
  const float *bias = rl_weights(l, rl_offset(RL_FC2_B), RL_CLASSES, spare_b);
  for (uint32_t i = 0; i < n; i++) memcpy(train->logits + i * RL_CLASSES, bias, sizeof(float) * RL_CLASSES);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, RL_CLASSES, RL_FC1, 1, l->hidden, RL_FC1, w, RL_FC1, 1,
              train->logits, RL_CLASSES);
  round_to_half(l, (size_t)n * RL_CLASSES, train->logits);
}

static void sum_rows(const rl_layers *l, uint32_t n, uint32_t count, const float *rows, float *sum) {
  memset(sum, 0, sizeof *sum * count);
  for (uint32_t i = 0; i < n; i++) l->simd->add(count, rows + (size_t)i * count, sum);
}

void rl_fc2_backward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  float spare[RL_CLASSES * RL_FC1];
  const float *w = rl_weights(l, rl_offset(RL_FC2_W), RL_CLASSES * RL_FC1, spare);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_CLASSES, RL_FC1, (int)n, 1, train->dlogits, RL_CLASSES, l->hidden,
              RL_FC1, 0, gradient_of(l, RL_FC2_W), RL_FC1);
  sum_rows(l, n, RL_CLASSES, train->dlogits, gradient_of(l, RL_FC2_B));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, RL_FC1, RL_CLASSES, 1, train->dlogits, RL_CLASSES, w, RL_FC1, 0,
              l->hidden_gradient, RL_FC1);
  for (size_t i = 0; i < (size_t)n * RL_FC1; i++)
    if (l->hidden[i] <= 0) l->hidden_gradient[i] = 0;
  rl_pack(l, l->df1, 0, (size_t)n * RL_FC1, l->hidden_gradient);
}

static void fc1_backward_columns(void *context, uint32_t block, uint32_t thread) {
  const batch *all = context;
  rl_layers *l = all->layers;
  size_t first = (size_t)block * COLUMNS;
  const float *w = l->train.weights + rl_offset(RL_FC1_W) + first;
  int stride = RL_FLAT;
  if (l->train.half) {
    float *own = own_part(l, thread);
    for (int o = 0; o < RL_FC1; o++)
      l->simd->from_half(COLUMNS, l->weights16 + rl_offset(RL_FC1_W) + (size_t)o * RL_FLAT + first, own + o * COLUMNS);
    w = own;
    stride = COLUMNS;
  }
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_FC1, COLUMNS, (int)all->n, 1, l->hidden_gradient, RL_FC1,
              l->flat + first, RL_FLAT, 0, gradient_of(l, RL_FC1_W) + first, RL_FLAT);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)all->n, COLUMNS, RL_FC1, 1, l->hidden_gradient, RL_FC1, w, stride,
              0, l->flat_gradient + first, RL_FLAT);
}

void rl_fc1_backward(rl_cpu_train *train, uint32_t n) {
  rl_layers *l = (rl_layers *)train;
  rl_unpack(l, l->df1, 0, (size_t)n * RL_FC1, l->hidden_gradient);
  sum_rows(l, n, RL_FC1, l->hidden_gradient, gradient_of(l, RL_FC1_B));
  share(l, n, RL_FLAT / COLUMNS, fc1_backward_columns);
  rl_pack(l, l->dp2, 0, (size_t)n * RL_FLAT, l->flat_gradient);
}

/* --- parameters -------------------------------------------------------------------------------------------------------- */

uint32_t rl_layers_place(uint32_t parameter) {
  uint32_t tensor = 0;
  while (parameter >= rl_tensor_offsets[tensor + 1]) tensor++;
  uint32_t i = parameter - rl_tensor_offsets[tensor], base = rl_tensor_offsets[tensor];
  switch (tensor) {
    case RL_CONV1_W: return base + i % 9 * RL_C1 + i / 9;
    case RL_FC1_W: {
      uint32_t row = i / RL_FLAT, channel = i % RL_FLAT / (RL_P2 * RL_P2), pixel = i % (RL_P2 * RL_P2);
      return base + row * RL_FLAT + pixel * RL_C2 + channel;
    }
    default: return parameter;
  }
}

/* Products run inside our own threads. The setting is the process's, and others (the sgemm measurement) change it too. */
void rl_layers_begin(rl_cpu_train *train) {
  (void)train;
  openblas_set_num_threads(1);
}

void rl_layers_changed(rl_cpu_train *train) {
  rl_layers *l = (rl_layers *)train;
  if (train->half) l->simd->to_half(RL_PARAMETERS, train->weights, l->weights16);
}

bool rl_layers_finite(rl_cpu_train *train) { return ((rl_layers *)train)->simd->finite(RL_PARAMETERS, train->gradients); }

typedef struct update {
  rl_layers *layers;
  float rate, scale, unbias_m, unbias_v;
} update;

static void adam_part(void *context, uint32_t part, uint32_t thread) {
  (void)thread;
  const update *all = context;
  rl_cpu_train *train = &all->layers->train;
  size_t first = (size_t)RL_PARAMETERS * part / RL_SLOTS, count = (size_t)RL_PARAMETERS * (part + 1) / RL_SLOTS - first;
  all->layers->simd->adam(count, train->gradients + first, all->scale, all->rate, all->unbias_m, all->unbias_v,
                          train->weights + first, train->m + first, train->v + first);
  if (train->half) all->layers->simd->to_half(count, train->weights + first, all->layers->weights16 + first);
}

void rl_layers_adam(rl_cpu_train *train, uint64_t step, double rate, float scale) {
  update shared = {(rl_layers *)train, (float)rate, scale, (float)(1 - pow(0.9, (double)step)),
                   (float)(1 - pow(0.999, (double)step))};
  rl_threads_run(train->threads, RL_SLOTS, adam_part, &shared);
}

void rl_peek_planes(const rl_layers *l, rl_values stored, const uint8_t *choice, uint32_t n, uint32_t pixels, uint32_t channels,
                    double *out) {
  for (size_t i = 0; i < (size_t)n * pixels * channels; i++) {
    size_t image = i / (pixels * channels), pixel = i / channels % pixels, channel = i % channels;
    float spare;
    out[(image * channels + channel) * pixels + pixel] = choice != NULL ? choice[i] : *rl_unpack(l, stored, i, 1, &spare);
  }
}

bool rl_layers_peek(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out) {
  if (value == RL_VALUE_DP1) return false;
  const rl_layers *l = (const rl_layers *)train;
  const struct {
    rl_values stored;
    const uint8_t *choice;
    uint32_t pixels, channels;
  } views[] = {[RL_VALUE_P1] = {l->p1, NULL, RL_P1 * RL_P1, RL_C1},
               [RL_VALUE_CHOICE1] = {{NULL}, l->choice1, RL_P1 * RL_P1, RL_C1},
               [RL_VALUE_P2] = {l->p2, NULL, RL_P2 * RL_P2, RL_C2},
               [RL_VALUE_CHOICE2] = {{NULL}, l->choice2, RL_P2 * RL_P2, RL_C2},
               [RL_VALUE_F1] = {l->f1, NULL, 1, RL_FC1},
               [RL_VALUE_DF1] = {l->df1, NULL, 1, RL_FC1},
               [RL_VALUE_DP2] = {l->dp2, NULL, RL_P2 * RL_P2, RL_C2}};
  rl_peek_planes(l, views[value].stored, views[value].choice, n, views[value].pixels, views[value].channels, out);
  return true;
}

typedef struct block {
  void *to; /* a pointer's address */
  rl_purpose purpose;
  size_t bytes;
} block;

static int allocate(rl_cpu_train *train, size_t count, const block *blocks, rl_error *err) {
  for (size_t i = 0; i < count; i++)
    if (rl_cpu_allocate(train, blocks[i].purpose, blocks[i].bytes, blocks[i].to, err) != 0) return -1;
  return 0;
}

int rl_layers_prepare(rl_cpu_train *train, rl_error *err) {
  rl_layers *l = (rl_layers *)train;
  size_t n = (size_t)train->instance.params.batch_size, each = train->half ? sizeof(uint16_t) : sizeof(float);
  const rl_simd *usable[RL_SIMD_TABLES];
  rl_simd_usable(usable);
  l->simd = usable[0];
  const block blocks[] = {{&l->p1.data, RL_MEMORY_ACTIVATIONS, n * RL_A1 * each},
                          {&l->p2.data, RL_MEMORY_ACTIVATIONS, n * RL_FLAT * each},
                          {&l->f1.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1 * each},
                          {&l->df1.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1 * each},
                          {&l->dp2.data, RL_MEMORY_ACTIVATIONS, n * RL_FLAT * each},
                          {&l->choice1, RL_MEMORY_ACTIVATIONS, n * RL_A1},
                          {&l->choice2, RL_MEMORY_ACTIVATIONS, n * RL_FLAT},
                          {&l->slots, RL_MEMORY_WORKSPACE, sizeof(float) * RL_SLOTS * RL_CONV_GRADIENTS}};
  if (allocate(train, sizeof blocks / sizeof *blocks, blocks, err) != 0) return -1;
  if (!train->half) {
    l->flat = l->p2.data;
    l->flat_gradient = l->dp2.data;
    l->hidden = l->f1.data;
    l->hidden_gradient = l->df1.data;
    return 0;
  }
  const block wide[] = {{&l->weights16, RL_MEMORY_WEIGHTS, sizeof(uint16_t) * RL_PARAMETERS},
                        {&l->flat, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FLAT},
                        {&l->flat_gradient, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FLAT},
                        {&l->hidden, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1},
                        {&l->hidden_gradient, RL_MEMORY_WORKSPACE, sizeof(float) * n * RL_FC1},
                        {&l->fc1_parts, RL_MEMORY_WORKSPACE, sizeof(float) * PART * rl_threads_count(train->threads)}};
  return allocate(train, sizeof wide / sizeof *wide, wide, err);
}
