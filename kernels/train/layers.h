/* The code that the CPU engines blas and fused share: values that are stored as FP32 or binary16, the linear layers as OpenBLAS
 * products, the division of a batch into chunks, and Adam.
 *
 * model.h defines image, batch and argmax. n is the number of images in the batch. A batch chunk is a contiguous part of the
 * batch, which one thread processes. Chunk sums are gradients summed over the images of a chunk. x_gradient is the gradient of x.
 *
 * Layouts: activations NHWC; conv1.weight [tap][out], fc1.weight [out][y][x][channel], fc2.weight as in PyTorch; the layout of
 * conv2.weight depends on the engine.
 *
 * fp16: values that are stored between layers (activations, their gradients, a copy of the weights) are binary16; products run in
 * FP32.
 *
 * Order of summation: a batch always has RL_BATCH_CHUNKS chunks, each product runs on one thread, and the chunk sums are added in
 * order. So the losses are bit-identical for any number of threads. */
#ifndef RL_TRAIN_LAYERS_H
#define RL_TRAIN_LAYERS_H

#include "train/cpu.h"
#include "train/simd.h"

enum {
  RL_BATCH_CHUNKS = 16,
  RL_POOLED1_FLOATS = RL_POOLED1_PIXELS * RL_CONV1_CHANNELS, /* conv1's pooled output of one image */
  RL_CONV2_K = 9 * RL_CONV1_CHANNELS,                        /* number of products that are added up for one output of conv2 */
  /* Number of parameters of conv1 and conv2, which are contiguous. */
  RL_CONV_GRADIENTS = 9 * RL_CONV1_CHANNELS + RL_CONV1_CHANNELS + RL_CONV2_K * RL_CONV2_CHANNELS + RL_CONV2_CHANNELS
};

typedef struct rl_values { /* values that are stored between layers */
  void *data;              /* fp32: float *; fp16: uint16_t *, binary16 */
} rl_values;

typedef struct rl_layers { /* base of the structs of the engines blas and fused */
  rl_cpu_train train;
  const rl_simd *simd;
  uint16_t *fp16_weights;                           /* fp16: the weights that layers use; fp32: NULL, layers use train.weights */
  rl_values pooled1, pooled2;                       /* outputs of conv1 and conv2 after ReLU and pooling */
  rl_values hidden;                                 /* output of fc1 after ReLU */
  rl_values fc1_product_gradient, pooled2_gradient; /* gradients of fc1's output before bias and ReLU, and of pooled2 */
  uint8_t *argmax1, *argmax2;                       /* positions of the maxima of pooled1 and pooled2, in their layouts */
  /* The arrays pooled2 and pooled2_gradient [n][2304], hidden and fc1_product_gradient [n][128] as floats. In fp16 they are
   * converted copies; in fp32 they are the arrays themselves. */
  float *pooled2_floats, *pooled2_gradient_floats, *hidden_floats, *fc1_product_gradient_floats;
  float *chunk_sums;  /* [RL_BATCH_CHUNKS][RL_CONV_GRADIENTS] */
  float *fc1_weights; /* fp16: for each thread, the weights of fc1 that its current task uses, as floats */
} rl_layers;

static inline uint32_t rl_tensor_offset(rl_tensor tensor) { return rl_tensor_offsets[tensor]; }

/* Returns `count` stored values from `offset` on as floats. In fp32, returns a pointer to the values; in fp16, converts them
 * into buffer[count]. */
float *rl_values_as_floats(const rl_layers *layers, rl_values values, size_t offset, size_t count, float *buffer);
/* Returns the array in which the caller computes values as floats before it calls rl_store_values: in fp32 the stored values
 * themselves, in fp16 `buffer`. */
float *rl_values_float_buffer(const rl_layers *layers, rl_values values, size_t offset, float *buffer);
/* Stores values that were computed in rl_values_float_buffer. In fp16, converts them; in fp32, does nothing, because they are
 * in place. */
void rl_store_values(const rl_layers *layers, rl_values values, size_t offset, size_t count, const float *computed);
/* Returns `count` parameters from `offset` on as floats, in the engine's layout. In fp32, returns a pointer to them; in fp16,
 * converts fp16_weights into buffer[count]. */
const float *rl_weights_as_floats(const rl_layers *layers, size_t offset, size_t count, float *buffer);

typedef struct rl_batch_chunk { /* images first .. end-1 of a batch */
  uint32_t first, end;
  float *sums; /* [RL_CONV_GRADIENTS] */
} rl_batch_chunk;
typedef void rl_batch_chunk_task(rl_layers *layers, rl_batch_chunk chunk, uint32_t thread);
/* Runs the task for every chunk of a batch of n images, on all threads, and waits until all tasks have finished. Some chunks are
 * empty if n < RL_BATCH_CHUNKS. */
void rl_run_batch_chunks(rl_layers *layers, uint32_t n, rl_batch_chunk_task *task);
/* Adds the chunk sums and stores the result in train.gradients. */
void rl_sum_batch_chunks(rl_layers *layers);

/* Implement rl_cpu_layer.run for the linear layers. */
void rl_fc1_forward(rl_cpu_train *train, uint32_t n);
void rl_fc2_forward(rl_cpu_train *train, uint32_t n);
void rl_fc2_backward(rl_cpu_train *train, uint32_t n);
void rl_fc1_backward(rl_cpu_train *train, uint32_t n);

/* Implementations of members of rl_cpu_engine_ops. An engine itself handles conv2.weight, whose layout depends on the engine, and
 * RL_VALUE_POOLED1_GRADIENT. */
int rl_layers_prepare(rl_cpu_train *train, rl_error *err);
void rl_layers_on_start(rl_cpu_train *train);
uint32_t rl_layers_parameter_index(uint32_t parameter); /* not for conv2.weight */
void rl_layers_on_weights_changed(rl_cpu_train *train);
bool rl_layers_all_finite(rl_cpu_train *train);
void rl_layers_adam(rl_cpu_train *train, uint64_t step, double rate, float scale);
bool rl_layers_read_value(rl_cpu_train *train, rl_cpu_value value, uint32_t n,
                          double *out); /* false for RL_VALUE_POOLED1_GRADIENT */
/* Transposes values, or argmax unless it is NULL, from [n][pixels][channels] to out[n][channels][pixels]. */
void rl_layers_read_planes(const rl_layers *layers, rl_values values, const uint8_t *argmax, uint32_t n, uint32_t pixels,
                           uint32_t channels, double *out);

#endif
