/* Shared by the engines blas and fused: values stored in either precision, the linear layers as OpenBLAS products, the batch in
 * chunks, Adam.
 *
 * Layouts: activations N,H,W,C; conv1 [tap][out], fc1 [out][y][x][channel], fc2 as in PyTorch; conv2 depends on the engine.
 * fp16: values stored between layers (activations, their gradients, the copy of the weights) are binary16; products run in FP32.
 * Order of summation: a batch is always split into RL_BATCH_CHUNKS chunks, each product runs on one thread, and the sums of the
 * chunks are added in order, so losses are bit-identical for any number of threads. */
#ifndef RL_TRAIN_LAYERS_H
#define RL_TRAIN_LAYERS_H

#include "train/cpu.h"
#include "train/simd.h"

enum {
  RL_BATCH_CHUNKS = 16,
  RL_P1_FLOATS = RL_P1 * RL_P1 * RL_C1,
  RL_CONV2_K = 9 * RL_C1,                                            /* products summed for an output of conv2 */
  RL_CONV_GRADIENTS = 9 * RL_C1 + RL_C1 + RL_CONV2_K * RL_C2 + RL_C2 /* the first four tensors, which are contiguous */
};

typedef struct rl_values { /* stored between layers: float or binary16 */
  void *data;
} rl_values;

typedef struct rl_layers { /* an engine's struct starts with it */
  rl_cpu_train train;
  const rl_simd *simd;
  uint16_t *weights16; /* fp16: the weights that layers use; in fp32 they use train.weights */
  rl_values p1, p2, f1, df1, dp2;
  uint8_t *argmax1, *argmax2;
  float *flat, *flat_gradient, *hidden, *hidden_gradient; /* of the linear layers, FP32; in fp32 they are p2, dp2, f1, df1 */
  float *chunk_sums;                                      /* [RL_BATCH_CHUNKS][RL_CONV_GRADIENTS] */
  float *fc1_weights;                                     /* fp16: for each thread, the weights of fc1 that its task uses */
} rl_layers;

static inline uint32_t rl_offset(rl_tensor tensor) { return rl_tensor_offsets[tensor]; }

/* `count` stored values from `offset` on as floats: in place (fp32), or unpacked into buffer (fp16). */
float *rl_unpack(const rl_layers *layers, rl_values values, size_t offset, size_t count, float *buffer);
/* Where to compute values that rl_pack then stores: in place (fp32), or buffer (fp16). */
float *rl_compute_buffer(const rl_layers *layers, rl_values values, size_t offset, float *buffer);
void rl_pack(const rl_layers *layers, rl_values values, size_t offset, size_t count, const float *computed);
/* The weights that layers use, as rl_unpack. */
const float *rl_weights(const rl_layers *layers, size_t offset, size_t count, float *buffer);

typedef struct rl_batch_chunk { /* images first .. end-1 of a batch */
  uint32_t first, end;
  float *sums; /* [RL_CONV_GRADIENTS] */
} rl_batch_chunk;
typedef void rl_batch_chunk_task(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread);
/* Runs the task for every chunk of a batch of n images, on all threads. */
void rl_run_batch_chunks(rl_layers *layers, uint32_t n, rl_batch_chunk_task *task);
/* Stores the sum of the chunks' sums as train.gradients of the convolutions. */
void rl_sum_batch_chunks(rl_layers *layers);

/* Launches */
void rl_fc1_forward(rl_cpu_train *train, uint32_t n);
void rl_fc2_forward(rl_cpu_train *train, uint32_t n);
void rl_fc2_backward(rl_cpu_train *train, uint32_t n);
void rl_fc1_backward(rl_cpu_train *train, uint32_t n);

/* Members of rl_cpu_math. An engine with another layout of conv2, or that stores dp1, handles these itself. */
int rl_layers_prepare(rl_cpu_train *train, rl_error *err);
void rl_layers_on_start(rl_cpu_train *train);
uint32_t rl_layers_parameter_index(uint32_t parameter); /* all but conv2.weight */
void rl_layers_on_weights_changed(rl_cpu_train *train);
bool rl_layers_all_finite(rl_cpu_train *train);
void rl_layers_adam(rl_cpu_train *train, uint64_t step, double rate, float scale);
bool rl_layers_read_value(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out); /* all but RL_VALUE_DP1 */
/* Transposes values, or argmax where it is not NULL, from [n][pixels][channels] to out[n][channels][pixels]. */
void rl_layers_read_planes(const rl_layers *layers, rl_values values, const uint8_t *argmax, uint32_t n, uint32_t pixels,
                           uint32_t channels, double *out);

#endif
