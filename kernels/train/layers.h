/* What the engines blas and fused share: values stored in either precision, the linear layers as OpenBLAS products, the batch in
 * slots, Adam.
 *
 * Layouts: activations N,H,W,C; conv1 [tap][out], fc1 [out][y][x][channel], fc2 as in PyTorch; conv2 is the engine's.
 * fp16: what is stored between layers (activations, their gradients, the copy of the weights) is binary16; products run in FP32.
 * Order of summation: a batch is cut into RL_SLOTS parts whatever the number of threads, each product runs on one thread, and
 * parts are added in order, so losses are bit-identical for any number of threads. */
#ifndef RL_TRAIN_LAYERS_H
#define RL_TRAIN_LAYERS_H

#include "train/cpu.h"
#include "train/simd.h"

enum {
  RL_SLOTS = 16,
  RL_A1 = RL_P1 * RL_P1 * RL_C1,
  RL_DEPTH = 9 * RL_C1,                                            /* inputs of an output of conv2 */
  RL_CONV_GRADIENTS = 9 * RL_C1 + RL_C1 + RL_DEPTH * RL_C2 + RL_C2 /* the first four tensors, which lie together */
};

typedef struct rl_values { /* stored between layers: float or binary16 */
  void *data;
} rl_values;

typedef struct rl_layers { /* an engine's struct starts with it */
  rl_cpu_train train;
  const rl_simd *simd;
  uint16_t *weights16; /* fp16: what layers see; in fp32 they see train.weights */
  rl_values p1, p2, f1, df1, dp2;
  uint8_t *choice1, *choice2;
  float *flat, *flat_gradient, *hidden, *hidden_gradient; /* the linear layers in FP32; in fp32 they are p2, dp2, f1, df1 */
  float *slots;                                           /* [RL_SLOTS][RL_CONV_GRADIENTS] */
  float *fc1_parts;                                       /* fp16: for each thread, the part of fc1's weights in its task */
} rl_layers;

static inline uint32_t rl_offset(rl_tensor tensor) { return rl_tensor_offsets[tensor]; }

/* `count` stored values from `at` on as floats: where they lie, or unpacked into spare. */
float *rl_unpack(const rl_layers *layers, rl_values from, size_t at, size_t count, float *spare);
/* Where to compute values that rl_pack will store. */
float *rl_compute_at(const rl_layers *layers, rl_values to, size_t at, float *spare);
void rl_pack(const rl_layers *layers, rl_values to, size_t at, size_t count, const float *computed);
/* The weights that layers see, as rl_unpack. */
const float *rl_weights(const rl_layers *layers, size_t at, size_t count, float *spare);

typedef struct rl_slot { /* images first .. end-1 of a batch */
  uint32_t first, end;
  float *sums; /* [RL_CONV_GRADIENTS] */
} rl_slot;
typedef void rl_slot_work(rl_layers *layers, rl_slot slot, uint32_t thread);
void rl_share_slots(rl_layers *layers, uint32_t n, rl_slot_work *work);
/* train.gradients of the convolutions become the sum of the slots'. */
void rl_sum_slots(rl_layers *layers);

/* Launches */
void rl_fc1_forward(rl_cpu_train *train, uint32_t n);
void rl_fc2_forward(rl_cpu_train *train, uint32_t n);
void rl_fc2_backward(rl_cpu_train *train, uint32_t n);
void rl_fc1_backward(rl_cpu_train *train, uint32_t n);

/* Members of rl_cpu_math. An engine whose conv2 lies otherwise, or that keeps dp1, answers for these itself. */
int rl_layers_prepare(rl_cpu_train *train, rl_error *err);
void rl_layers_begin(rl_cpu_train *train);
uint32_t rl_layers_place(uint32_t parameter); /* all but conv2.weight */
void rl_layers_changed(rl_cpu_train *train);
bool rl_layers_finite(rl_cpu_train *train);
void rl_layers_adam(rl_cpu_train *train, uint64_t step, double rate, float scale);
bool rl_layers_peek(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out); /* all but RL_VALUE_DP1 */
/* Stored values, or choices where they are not NULL, [n][pixels][channels] -> out[n][channels][pixels] */
void rl_peek_planes(const rl_layers *layers, rl_values stored, const uint8_t *choice, uint32_t n, uint32_t pixels,
                    uint32_t channels, double *out);

#endif
