/* The blas engine: convolution 2 and the linear layers as OpenBLAS products, everything else in simd.c, images shared out among
 * threads.
 *
 * conv2 lies as [tap][in][out]: a kernel row is 96 floats side by side, im2col is three copies a pixel, and pooling works on
 * whole channel vectors. Budget of an image: 18.6 MFLOP, of which 95 % are products. */
#include <cblas.h>
#include <string.h>

#include "train/layers.h"

enum {
  BLOCK = 4, /* images in a product of conv2: im2col of four is 664 kB, which stays in L2 */
  POSITIONS = RL_H2 * RL_H2
};

typedef struct scratch { /* of one thread */
  float columns[BLOCK * POSITIONS * RL_DEPTH], c2[BLOCK * POSITIONS * RL_C2];
  float image[RL_A1], weights[RL_DEPTH * RL_C2]; /* of conv2 */
  float gradient[RL_FLAT];
} scratch;

typedef struct blas {
  rl_layers layers;
  rl_values dp1;
  scratch *scratch; /* [threads] */
} blas;

/* --- forward ----------------------------------------------------------------------------------------------------------- */

static void conv1_forward_slot(rl_layers *l, rl_slot slot, uint32_t thread) {
  scratch *own = &((blas *)l)->scratch[thread];
  float spare_w[9 * RL_C1], spare_b[RL_C1];
  const float *w = rl_weights(l, rl_offset(RL_CONV1_W), 9 * RL_C1, spare_w),
              *bias = rl_weights(l, rl_offset(RL_CONV1_B), RL_C1, spare_b);
  for (uint32_t i = slot.first; i < slot.end; i++) {
    size_t at = (size_t)i * RL_A1;
    float *y = rl_compute_at(l, l->p1, at, own->image);
    l->simd->conv1_forward(l->train.x + (size_t)i * RL_PIXELS, w, bias, y, l->choice1 + at);
    rl_pack(l, l->p1, at, RL_A1, y);
  }
}

static void unfold(const rl_layers *l, scratch *own, uint32_t first, uint32_t images) {
  for (uint32_t k = 0; k < images; k++) {
    const float *x = rl_unpack(l, l->p1, (size_t)(first + k) * RL_A1, RL_A1, own->image);
    l->simd->image_to_columns(x, own->columns + (size_t)k * POSITIONS * RL_DEPTH);
  }
}

static void conv2_forward_slot(rl_layers *l, rl_slot slot, uint32_t thread) {
  scratch *own = &((blas *)l)->scratch[thread];
  float spare_b[RL_C2];
  if (slot.first == slot.end) return;
  const float *w = rl_weights(l, rl_offset(RL_CONV2_W), RL_DEPTH * RL_C2, own->weights);
  const float *bias = rl_weights(l, rl_offset(RL_CONV2_B), RL_C2, spare_b);
  for (uint32_t first = slot.first; first < slot.end; first += BLOCK) {
    uint32_t images = slot.end - first < BLOCK ? slot.end - first : BLOCK;
    unfold(l, own, first, images);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)images * POSITIONS, RL_C2, RL_DEPTH, 1, own->columns, RL_DEPTH, w,
                RL_C2, 0, own->c2, RL_C2);
    for (uint32_t k = 0; k < images; k++) {
      size_t at = (size_t)(first + k) * RL_FLAT;
      float *y = rl_compute_at(l, l->p2, at, own->gradient);
      l->simd->pool2_forward(own->c2 + (size_t)k * POSITIONS * RL_C2, bias, y, l->choice2 + at);
      rl_pack(l, l->p2, at, RL_FLAT, y);
    }
  }
}

static void conv1_forward(rl_cpu_train *train, uint32_t n) { rl_share_slots((rl_layers *)train, n, conv1_forward_slot); }
static void conv2_forward(rl_cpu_train *train, uint32_t n) { rl_share_slots((rl_layers *)train, n, conv2_forward_slot); }

/* --- backward ---------------------------------------------------------------------------------------------------------- */

static void conv2_backward_slot(rl_layers *l, rl_slot slot, uint32_t thread) {
  blas *b = (blas *)l;
  scratch *own = &b->scratch[thread];
  float *dw = slot.sums + rl_offset(RL_CONV2_W), *db = slot.sums + rl_offset(RL_CONV2_B);
  memset(dw, 0, sizeof(float) * (RL_DEPTH * RL_C2 + RL_C2));
  if (slot.first == slot.end) return;
  const float *w = rl_weights(l, rl_offset(RL_CONV2_W), RL_DEPTH * RL_C2, own->weights);
  for (uint32_t first = slot.first; first < slot.end; first += BLOCK) {
    uint32_t images = slot.end - first < BLOCK ? slot.end - first : BLOCK;
    int positions = (int)images * POSITIONS;
    unfold(l, own, first, images);
    for (uint32_t k = 0; k < images; k++) {
      size_t at = (size_t)(first + k) * RL_FLAT;
      const float *dy = rl_unpack(l, l->dp2, at, RL_FLAT, own->gradient);
      l->simd->pool2_gradient(dy, l->choice2 + at, own->c2 + (size_t)k * POSITIONS * RL_C2, db);
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, RL_DEPTH, RL_C2, positions, 1, own->columns, RL_DEPTH, own->c2, RL_C2, 1,
                dw, RL_C2);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, positions, RL_DEPTH, RL_C2, 1, own->c2, RL_C2, w, RL_C2, 0, own->columns,
                RL_DEPTH);
    for (uint32_t k = 0; k < images; k++) {
      size_t at = (size_t)(first + k) * RL_A1;
      float *dx = rl_compute_at(l, b->dp1, at, own->image);
      l->simd->columns_to_image(own->columns + (size_t)k * POSITIONS * RL_DEPTH, dx);
      rl_pack(l, b->dp1, at, RL_A1, dx);
    }
  }
}

static void conv1_backward_slot(rl_layers *l, rl_slot slot, uint32_t thread) {
  blas *b = (blas *)l;
  memset(slot.sums, 0, sizeof(float) * (9 * RL_C1 + RL_C1));
  for (uint32_t i = slot.first; i < slot.end; i++) {
    size_t at = (size_t)i * RL_A1;
    const float *dy = rl_unpack(l, b->dp1, at, RL_A1, b->scratch[thread].image);
    l->simd->conv1_gradient(l->train.x + (size_t)i * RL_PIXELS, dy, l->choice1 + at, slot.sums + rl_offset(RL_CONV1_W),
                            slot.sums + rl_offset(RL_CONV1_B));
  }
}

static void conv2_backward(rl_cpu_train *train, uint32_t n) { rl_share_slots((rl_layers *)train, n, conv2_backward_slot); }

static void conv1_backward(rl_cpu_train *train, uint32_t n) {
  rl_share_slots((rl_layers *)train, n, conv1_backward_slot);
  rl_sum_slots((rl_layers *)train);
}

/* --- the rest ---------------------------------------------------------------------------------------------------------- */

static const rl_cpu_layer forward[] = {{"conv1_forward", conv1_forward},
                                       {"conv2_forward", conv2_forward},
                                       {"fc1_forward", rl_fc1_forward},
                                       {"fc2_forward", rl_fc2_forward},
                                       {0}};
static const rl_cpu_layer backward[] = {{"fc2_backward", rl_fc2_backward},
                                        {"fc1_backward", rl_fc1_backward},
                                        {"conv2_backward", conv2_backward},
                                        {"conv1_backward", conv1_backward},
                                        {0}};

static uint32_t place(uint32_t parameter) {
  if (parameter < rl_offset(RL_CONV2_W) || parameter >= rl_offset(RL_CONV2_B)) return rl_layers_place(parameter);
  uint32_t i = parameter - rl_offset(RL_CONV2_W);
  return rl_offset(RL_CONV2_W) + (i % 9 * RL_C1 + i / 9 % RL_C1) * RL_C2 + i / RL_DEPTH;
}

static bool peek(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out) {
  if (value != RL_VALUE_DP1) return rl_layers_peek(train, value, n, out);
  rl_peek_planes((rl_layers *)train, ((blas *)train)->dp1, NULL, n, RL_P1 * RL_P1, RL_C1, out);
  return true;
}

static int prepare(rl_cpu_train *train, rl_error *err) {
  blas *b = (blas *)train;
  size_t dp1 = (size_t)train->instance.params.batch_size * RL_A1 * (train->half ? sizeof(uint16_t) : sizeof(float));
  if (rl_layers_prepare(train, err) != 0 || rl_cpu_allocate(train, RL_MEMORY_ACTIVATIONS, dp1, &b->dp1.data, err) != 0) return -1;
  size_t bytes = sizeof(scratch) * rl_threads_count(train->threads);
  return rl_cpu_allocate(train, RL_MEMORY_WORKSPACE, bytes, (void **)&b->scratch, err);
}

static const rl_cpu_math math = {.threaded = true,
                                 .size = sizeof(blas),
                                 .forward = forward,
                                 .backward = backward,
                                 .place = place,
                                 .prepare = prepare,
                                 .begin = rl_layers_begin,
                                 .weights_changed = rl_layers_changed,
                                 .finite = rl_layers_finite,
                                 .adam = rl_layers_adam,
                                 .peek = peek};

static int open_blas(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  return rl_cpu_open(&math, device, params, instance, err);
}

const rl_engine rl_engine_blas = {.description = &rl_train_blas, .open = open_blas};
