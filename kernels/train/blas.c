/* The blas engine: convolution 2 and the linear layers as OpenBLAS products, everything else in simd.c, images shared out among threads.
 *
 * Layouts: activations N,H,W,C; conv1 [tap][out], conv2 [tap][in][out], fc1 [out][y][x][channel], fc2 as in PyTorch. So a kernel row of conv2
 * is 96 floats side by side, im2col is three copies a pixel, and pooling works on whole channel vectors.
 * fp16: what is stored between layers (activations, their gradients, the copy of the weights) is binary16; products run in FP32.
 * Order of summation: a batch is cut into SLOTS parts whatever the number of threads, each product runs on one thread, and parts are added in
 * order, so losses are bit-identical for any number of threads.
 * Budget of an image: 18.6 MFLOP, of which 95 % are products. */
#include <cblas.h>
#include <math.h>
#include <string.h>

#include "train/cpu.h"
#include "train/oracle.h"
#include "train/simd.h"

enum {
  SLOTS = 16,
  BLOCK = 4, /* images in a product of conv2: im2col of four is 664 kB, which stays in L2 */
  A1 = RL_P1 * RL_P1 * RL_C1,
  POSITIONS = RL_H2 * RL_H2,
  DEPTH = 9 * RL_C1,
  ROWS = 32,           /* outputs of fc1 in a task of its forward */
  COLUMNS = RL_FLAT / 8, /* inputs of fc1 in a task of its backward */
  CONV_GRADIENTS = 9 * RL_C1 + RL_C1 + DEPTH * RL_C2 + RL_C2 /* the first four tensors, which lie together */
};

typedef struct scratch { /* of one thread */
  float columns[BLOCK * POSITIONS * DEPTH], c2[BLOCK * POSITIONS * RL_C2];
  float image[A1], weights[RL_FC1 * COLUMNS]; /* of conv2, or a task of fc1 */
  float gradient[RL_FLAT];
} scratch;
_Static_assert(RL_FC1 * COLUMNS >= DEPTH * RL_C2, "weights has room for conv2's");
_Static_assert(BLOCK * POSITIONS * DEPTH >= ROWS * RL_FLAT, "columns has room for a task's rows of fc1");

typedef struct values { /* stored between layers: float or binary16 */
  void *data;
} values;

typedef struct blas {
  rl_cpu_train train;
  const rl_simd *simd;
  uint16_t *weights16;        /* fp16: what layers see; in fp32 they see train.weights */
  values p1, p2, f1, df1, dp2, dp1;
  uint8_t *choice1, *choice2;
  float *flat, *flat_gradient, *hidden, *hidden_gradient; /* the linear layers in FP32; in fp32 they are p2, dp2, f1, df1 */
  float *slots;               /* [SLOTS][CONV_GRADIENTS] */
  scratch *scratch;           /* [threads] */
} blas;

static uint32_t offset(rl_tensor tensor) { return rl_tensor_offsets[tensor]; }

static float *gradient_of(blas *b, rl_tensor tensor) { return b->train.gradients + offset(tensor); }

/* Stored values from `at` on as floats: where they lie, or unpacked into spare. */
static float *unpack(const blas *b, values from, size_t at, size_t count, float *spare) {
  if (!b->train.half) return (float *)from.data + at;
  b->simd->from_half(count, (const uint16_t *)from.data + at, spare);
  return spare;
}

/* Where to compute values that pack will store. */
static float *compute_at(const blas *b, values to, size_t at, float *spare) {
  return b->train.half ? spare : (float *)to.data + at;
}

static void pack(const blas *b, values to, size_t at, size_t count, const float *computed) {
  if (b->train.half) b->simd->to_half(count, computed, (uint16_t *)to.data + at);
}

static const float *weights(const blas *b, size_t at, size_t count, float *spare) {
  if (!b->train.half) return b->train.weights + at;
  b->simd->from_half(count, b->weights16 + at, spare);
  return spare;
}

typedef struct batch { /* what the tasks of a launch share */
  blas *b;
  uint32_t n;
} batch;

static void share(rl_cpu_train *train, uint32_t n, uint32_t tasks, rl_task *task) {
  batch shared = {(blas *)train, n};
  rl_threads_run(train->threads, tasks, task, &shared);
}

static uint32_t slot_start(uint32_t n, uint32_t slot) { return (uint32_t)((uint64_t)n * slot / SLOTS); }

/* ---- forward --------------------------------------------------------------------------------------------------------- */

static void conv1_forward_slot(void *context, uint32_t slot, uint32_t thread) {
  const batch *all = context;
  blas *b = all->b;
  scratch *own = &b->scratch[thread];
  float spare_w[9 * RL_C1], spare_b[RL_C1];
  const float *w = weights(b, offset(RL_CONV1_W), 9 * RL_C1, spare_w), *bias = weights(b, offset(RL_CONV1_B), RL_C1, spare_b);
  for (uint32_t i = slot_start(all->n, slot); i < slot_start(all->n, slot + 1); i++) {
    size_t at = (size_t)i * A1;
    float *y = compute_at(b, b->p1, at, own->image);
    b->simd->conv1_forward(b->train.x + (size_t)i * RL_PIXELS, w, bias, y, b->choice1 + at);
    pack(b, b->p1, at, A1, y);
  }
}

static void unfold(const blas *b, scratch *own, uint32_t first, uint32_t images) {
  for (uint32_t k = 0; k < images; k++) {
    const float *x = unpack(b, b->p1, (size_t)(first + k) * A1, A1, own->image);
    b->simd->image_to_columns(x, own->columns + (size_t)k * POSITIONS * DEPTH);
  }
}

static void conv2_forward_slot(void *context, uint32_t slot, uint32_t thread) {
  const batch *all = context;
  blas *b = all->b;
  scratch *own = &b->scratch[thread];
  float spare_b[RL_C2];
  uint32_t end = slot_start(all->n, slot + 1), first = slot_start(all->n, slot);
  if (first == end) return;
  const float *w = weights(b, offset(RL_CONV2_W), DEPTH * RL_C2, own->weights);
  const float *bias = weights(b, offset(RL_CONV2_B), RL_C2, spare_b);
  for (; first < end; first += BLOCK) {
    uint32_t images = end - first < BLOCK ? end - first : BLOCK;
    unfold(b, own, first, images);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)images * POSITIONS, RL_C2, DEPTH, 1, own->columns, DEPTH, w, RL_C2, 0,
                own->c2, RL_C2);
    for (uint32_t k = 0; k < images; k++) {
      size_t at = (size_t)(first + k) * RL_FLAT;
      float *y = compute_at(b, b->p2, at, own->gradient);
      b->simd->pool2_forward(own->c2 + (size_t)k * POSITIONS * RL_C2, bias, y, b->choice2 + at);
      pack(b, b->p2, at, RL_FLAT, y);
    }
  }
}

static void fc1_forward_rows(void *context, uint32_t block, uint32_t thread) {
  const batch *all = context;
  blas *b = all->b;
  const float *w = weights(b, offset(RL_FC1_W) + (size_t)block * ROWS * RL_FLAT, ROWS * RL_FLAT, b->scratch[thread].columns);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)all->n, ROWS, RL_FLAT, 1, b->flat, RL_FLAT, w, RL_FLAT, 0,
              b->hidden + block * ROWS, RL_FC1);
}

static void conv1_forward(rl_cpu_train *train, uint32_t n) { share(train, n, SLOTS, conv1_forward_slot); }
static void conv2_forward(rl_cpu_train *train, uint32_t n) { share(train, n, SLOTS, conv2_forward_slot); }

static void fc1_forward(rl_cpu_train *train, uint32_t n) {
  blas *b = (blas *)train;
  float spare[RL_FC1];
  unpack(b, b->p2, 0, (size_t)n * RL_FLAT, b->flat);
  share(train, n, RL_FC1 / ROWS, fc1_forward_rows);
  b->simd->bias_relu(n, RL_FC1, weights(b, offset(RL_FC1_B), RL_FC1, spare), b->hidden);
  pack(b, b->f1, 0, (size_t)n * RL_FC1, b->hidden);
}

static void round_to_half(const blas *b, size_t count, float *values_) {
  uint16_t part[256];
  for (size_t i = 0; b->train.half && i < count; i += 256) {
    size_t some = count - i < 256 ? count - i : 256;
    b->simd->to_half(some, values_ + i, part);
    b->simd->from_half(some, part, values_ + i);
  }
}

static void fc2_forward(rl_cpu_train *train, uint32_t n) {
  blas *b = (blas *)train;
  float spare[RL_CLASSES * RL_FC1], spare_b[RL_CLASSES];
  unpack(b, b->f1, 0, (size_t)n * RL_FC1, b->hidden);
  const float *w = weights(b, offset(RL_FC2_W), RL_CLASSES * RL_FC1, spare);
  const float *bias = weights(b, offset(RL_FC2_B), RL_CLASSES, spare_b);
  for (uint32_t i = 0; i < n; i++) memcpy(train->logits + i * RL_CLASSES, bias, sizeof(float) * RL_CLASSES);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, RL_CLASSES, RL_FC1, 1, b->hidden, RL_FC1, w, RL_FC1, 1, train->logits,
              RL_CLASSES);
  round_to_half(b, (size_t)n * RL_CLASSES, train->logits);
}

/* ---- backward -------------------------------------------------------------------------------------------------------- */

static void sum_rows(const blas *b, uint32_t n, uint32_t count, const float *rows, float *sum) {
  memset(sum, 0, sizeof *sum * count);
  for (uint32_t i = 0; i < n; i++) b->simd->add(count, rows + (size_t)i * count, sum);
}

static void fc2_backward(rl_cpu_train *train, uint32_t n) {
  blas *b = (blas *)train;
  float spare[RL_CLASSES * RL_FC1];
  const float *w = weights(b, offset(RL_FC2_W), RL_CLASSES * RL_FC1, spare);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_CLASSES, RL_FC1, (int)n, 1, train->dlogits, RL_CLASSES, b->hidden, RL_FC1, 0,
              gradient_of(b, RL_FC2_W), RL_FC1);
  sum_rows(b, n, RL_CLASSES, train->dlogits, gradient_of(b, RL_FC2_B));
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, RL_FC1, RL_CLASSES, 1, train->dlogits, RL_CLASSES, w, RL_FC1, 0,
              b->hidden_gradient, RL_FC1);
  for (size_t i = 0; i < (size_t)n * RL_FC1; i++)
    if (b->hidden[i] <= 0) b->hidden_gradient[i] = 0;
  pack(b, b->df1, 0, (size_t)n * RL_FC1, b->hidden_gradient);
}

static void fc1_backward_columns(void *context, uint32_t block, uint32_t thread) {
  const batch *all = context;
  blas *b = all->b;
  size_t first = (size_t)block * COLUMNS;
  const float *w = b->train.weights + offset(RL_FC1_W) + first;
  int stride = RL_FLAT;
  if (b->train.half) {
    float *own = b->scratch[thread].weights;
    for (int o = 0; o < RL_FC1; o++)
      b->simd->from_half(COLUMNS, b->weights16 + offset(RL_FC1_W) + (size_t)o * RL_FLAT + first, own + o * COLUMNS);
    w = own;
    stride = COLUMNS;
  }
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_FC1, COLUMNS, (int)all->n, 1, b->hidden_gradient, RL_FC1, b->flat + first,
              RL_FLAT, 0, gradient_of(b, RL_FC1_W) + first, RL_FLAT);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)all->n, COLUMNS, RL_FC1, 1, b->hidden_gradient, RL_FC1, w, stride, 0,
              b->flat_gradient + first, RL_FLAT);
}

static void fc1_backward(rl_cpu_train *train, uint32_t n) {
  blas *b = (blas *)train;
  unpack(b, b->df1, 0, (size_t)n * RL_FC1, b->hidden_gradient);
  sum_rows(b, n, RL_FC1, b->hidden_gradient, gradient_of(b, RL_FC1_B));
  share(train, n, RL_FLAT / COLUMNS, fc1_backward_columns);
  pack(b, b->dp2, 0, (size_t)n * RL_FLAT, b->flat_gradient);
}

static void conv2_backward_slot(void *context, uint32_t slot, uint32_t thread) {
  const batch *all = context;
  blas *b = all->b;
  scratch *own = &b->scratch[thread];
  float *sums = b->slots + (size_t)slot * CONV_GRADIENTS;
  float *dw = sums + offset(RL_CONV2_W), *db = sums + offset(RL_CONV2_B);
  memset(dw, 0, sizeof(float) * (DEPTH * RL_C2 + RL_C2));
  uint32_t end = slot_start(all->n, slot + 1), first = slot_start(all->n, slot);
  if (first == end) return;
  const float *w = weights(b, offset(RL_CONV2_W), DEPTH * RL_C2, own->weights);
  for (; first < end; first += BLOCK) {
    uint32_t images = end - first < BLOCK ? end - first : BLOCK;
    int positions = (int)images * POSITIONS;
    unfold(b, own, first, images);
    for (uint32_t k = 0; k < images; k++) {
      size_t at = (size_t)(first + k) * RL_FLAT;
      const float *dy = unpack(b, b->dp2, at, RL_FLAT, own->gradient);
      b->simd->pool2_gradient(dy, b->choice2 + at, own->c2 + (size_t)k * POSITIONS * RL_C2, db);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, DEPTH, RL_C2, positions, 1, own->columns, DEPTH, own->c2, RL_C2, 1, dw, RL_C2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, positions, DEPTH, RL_C2, 1, own->c2, RL_C2, w, RL_C2, 0, own->columns, DEPTH);
    for (uint32_t k = 0; k < images; k++) {
      size_t at = (size_t)(first + k) * A1;
      float *dx = compute_at(b, b->dp1, at, own->image);
      b->simd->columns_to_image(own->columns + (size_t)k * POSITIONS * DEPTH, dx);
      pack(b, b->dp1, at, A1, dx);
    }
  }
}

static void conv1_backward_slot(void *context, uint32_t slot, uint32_t thread) {
  const batch *all = context;
  blas *b = all->b;
  float *sums = b->slots + (size_t)slot * CONV_GRADIENTS;
  memset(sums, 0, sizeof(float) * (9 * RL_C1 + RL_C1));
  for (uint32_t i = slot_start(all->n, slot); i < slot_start(all->n, slot + 1); i++) {
    size_t at = (size_t)i * A1;
    const float *dy = unpack(b, b->dp1, at, A1, b->scratch[thread].image);
    b->simd->conv1_gradient(b->train.x + (size_t)i * RL_PIXELS, dy, b->choice1 + at, sums + offset(RL_CONV1_W),
                            sums + offset(RL_CONV1_B));
  }
}

static void conv2_backward(rl_cpu_train *train, uint32_t n) { share(train, n, SLOTS, conv2_backward_slot); }

static void conv1_backward(rl_cpu_train *train, uint32_t n) {
  blas *b = (blas *)train;
  share(train, n, SLOTS, conv1_backward_slot);
  sum_rows(b, SLOTS, CONV_GRADIENTS, b->slots, train->gradients);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------------- */

static const rl_cpu_layer forward[] = {{"conv1_forward", conv1_forward}, {"conv2_forward", conv2_forward},
                                       {"fc1_forward", fc1_forward},     {"fc2_forward", fc2_forward},
                                       {0}};
static const rl_cpu_layer backward[] = {{"fc2_backward", fc2_backward},
                                        {"fc1_backward", fc1_backward},
                                        {"conv2_backward", conv2_backward},
                                        {"conv1_backward", conv1_backward},
                                        {0}};

static uint32_t place(uint32_t parameter) {
  uint32_t tensor = 0;
  while (parameter >= rl_tensor_offsets[tensor + 1]) tensor++;
  uint32_t i = parameter - rl_tensor_offsets[tensor], base = rl_tensor_offsets[tensor];
  switch (tensor) {
    case RL_CONV1_W: return base + i % 9 * RL_C1 + i / 9;
    case RL_CONV2_W: return base + (i % 9 * RL_C1 + i / 9 % RL_C1) * RL_C2 + i / (9 * RL_C1);
    case RL_FC1_W: {
      uint32_t row = i / RL_FLAT, channel = i % RL_FLAT / (RL_P2 * RL_P2), pixel = i % (RL_P2 * RL_P2);
      return base + row * RL_FLAT + pixel * RL_C2 + channel;
    }
    default: return parameter;
  }
}

/* Products run inside our own threads. The setting is the process's, and others (the sgemm measurement) change it too. */
static void begin(rl_cpu_train *train) {
  (void)train;
  openblas_set_num_threads(1);
}

static void weights_changed(rl_cpu_train *train) {
  blas *b = (blas *)train;
  if (train->half) b->simd->to_half(RL_PARAMETERS, train->weights, b->weights16);
}

static bool gradients_finite(rl_cpu_train *train) { return ((blas *)train)->simd->finite(RL_PARAMETERS, train->gradients); }

typedef struct update {
  blas *b;
  float rate, scale, unbias_m, unbias_v;
} update;

static void adam_part(void *context, uint32_t part, uint32_t thread) {
  (void)thread;
  const update *all = context;
  rl_cpu_train *train = &all->b->train;
  size_t first = (size_t)RL_PARAMETERS * part / SLOTS, count = (size_t)RL_PARAMETERS * (part + 1) / SLOTS - first;
  all->b->simd->adam(count, train->gradients + first, all->scale, all->rate, all->unbias_m, all->unbias_v, train->weights + first,
                     train->m + first, train->v + first);
  if (train->half) all->b->simd->to_half(count, train->weights + first, all->b->weights16 + first);
}

static void adam(rl_cpu_train *train, uint64_t step, double rate, float scale) {
  update shared = {(blas *)train, (float)rate, scale, (float)(1 - pow(0.9, (double)step)), (float)(1 - pow(0.999, (double)step))};
  rl_threads_run(train->threads, SLOTS, adam_part, &shared);
}

static void peek(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out) {
  blas *b = (blas *)train;
  const struct {
    values stored;
    const uint8_t *choice;
    uint32_t pixels, channels;
  } views[] = {[RL_VALUE_P1] = {b->p1, NULL, RL_P1 * RL_P1, RL_C1},
               [RL_VALUE_CHOICE1] = {{NULL}, b->choice1, RL_P1 * RL_P1, RL_C1},
               [RL_VALUE_P2] = {b->p2, NULL, RL_P2 * RL_P2, RL_C2},
               [RL_VALUE_CHOICE2] = {{NULL}, b->choice2, RL_P2 * RL_P2, RL_C2},
               [RL_VALUE_F1] = {b->f1, NULL, 1, RL_FC1},
               [RL_VALUE_DF1] = {b->df1, NULL, 1, RL_FC1},
               [RL_VALUE_DP2] = {b->dp2, NULL, RL_P2 * RL_P2, RL_C2},
               [RL_VALUE_DP1] = {b->dp1, NULL, RL_P1 * RL_P1, RL_C1}};
  uint32_t pixels = views[value].pixels, channels = views[value].channels;
  for (size_t i = 0; i < (size_t)n * pixels * channels; i++) {
    size_t image = i / (pixels * channels), pixel = i / channels % pixels, channel = i % channels;
    float spare;
    out[(image * channels + channel) * pixels + pixel] =
        views[value].choice != NULL ? views[value].choice[i] : *unpack(b, views[value].stored, i, 1, &spare);
  }
}

static int prepare(rl_cpu_train *train, rl_error *err) {
  blas *b = (blas *)train;
  size_t n = (size_t)train->instance.params.batch_size, each = train->half ? sizeof(uint16_t) : sizeof(float);
  const rl_simd *usable[RL_SIMD_TABLES];
  rl_simd_usable(usable);
  b->simd = usable[0];
  const struct {
    void *to;
    rl_purpose purpose;
    size_t bytes;
  } blocks[] = {{&b->p1.data, RL_MEMORY_ACTIVATIONS, n * A1 * each},
                {&b->p2.data, RL_MEMORY_ACTIVATIONS, n * RL_FLAT * each},
                {&b->f1.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1 * each},
                {&b->df1.data, RL_MEMORY_ACTIVATIONS, n * RL_FC1 * each},
                {&b->dp2.data, RL_MEMORY_ACTIVATIONS, n * RL_FLAT * each},
                {&b->dp1.data, RL_MEMORY_ACTIVATIONS, n * A1 * each},
                {&b->choice1, RL_MEMORY_ACTIVATIONS, n * A1},
                {&b->choice2, RL_MEMORY_ACTIVATIONS, n * RL_FLAT},
                {&b->slots, RL_MEMORY_WORKSPACE, sizeof(float) * SLOTS * CONV_GRADIENTS},
                {&b->scratch, RL_MEMORY_WORKSPACE, sizeof(scratch) * rl_threads_count(train->threads)}};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
    if (rl_cpu_allocate(train, blocks[i].purpose, blocks[i].bytes, blocks[i].to, err) != 0) return -1;
  if (!train->half) {
    b->flat = b->p2.data;
    b->flat_gradient = b->dp2.data;
    b->hidden = b->f1.data;
    b->hidden_gradient = b->df1.data;
    return 0;
  }
  if (rl_cpu_allocate(train, RL_MEMORY_WEIGHTS, sizeof(uint16_t) * RL_PARAMETERS, (void **)&b->weights16, err) != 0) return -1;
  float **const wide[4] = {&b->flat, &b->flat_gradient, &b->hidden, &b->hidden_gradient};
  for (int i = 0; i < 4; i++)
    if (rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, sizeof(float) * n * (i < 2 ? RL_FLAT : RL_FC1), (void **)wide[i], err) != 0)
      return -1;
  return 0;
}

static const rl_cpu_math math = {.threaded = true,
                                 .size = sizeof(blas),
                                 .forward = forward,
                                 .backward = backward,
                                 .place = place,
                                 .prepare = prepare,
                                 .begin = begin,
                                 .weights_changed = weights_changed,
                                 .finite = gradients_finite,
                                 .adam = adam,
                                 .peek = peek};

static int open_blas(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_cpu_open(&math, device, params, instance, err);
}

const rl_engine rl_engine_blas = {.name = "blas",
                                  .workload = "mnist_cnn",
                                  .device = RL_DEVICE_CPU,
                                  .summary = "im2col and OpenBLAS on all threads, vectors for the rest",
                                  .supports = rl_cpu_supports,
                                  .open = open_blas};
