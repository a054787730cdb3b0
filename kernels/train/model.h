/* The MNIST CNN, its parameters and what every engine shares. Shapes (N: batch):
 *   x      N×1×28×28   bytes/255, normalised (x-0.1307)/0.3081
 *   conv1  1→32 3×3 pad 1   N×32×28×28, ReLU, MaxPool 2 → N×32×14×14
 *   conv2  32→64 3×3        N×64×12×12, ReLU, MaxPool 2 → N×64×6×6
 *   fc1    2304→128, ReLU   (input flattened in C,H,W order)
 *   fc2    128→10, softmax cross-entropy, mean over the batch
 *   Adam   lr 1e-3, 0.9, 0.999, 1e-8 with bias correction (Kingma & Ba 2015, algorithm 1, as torch.optim.Adam)
 * Initial weights: torch's default, U(-1/sqrt(fan_in), 1/sqrt(fan_in)) for weight and bias.
 * Max-pool ties go to the first element in row-major order; ReLU's gradient at 0 is 0 (both as PyTorch). */
#ifndef RL_TRAIN_MODEL_H
#define RL_TRAIN_MODEL_H

#include <stdint.h>

#include "base/fields.h"
#include "hash.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RL_IMAGE = 28,
  RL_PIXELS = 784,
  RL_CLASSES = 10,
  RL_C1 = 32,
  RL_C2 = 64,
  RL_H1 = 28,
  RL_P1 = 14,
  RL_H2 = 12,
  RL_P2 = 6,
  RL_FLAT = RL_C2 * RL_P2 * RL_P2, /* 2304 */
  RL_FC1 = 128
};

/* Parameters in one flat array of floats, in PyTorch's layouts (OIHW, [out][in]). */
typedef enum rl_tensor {
  RL_CONV1_W,
  RL_CONV1_B,
  RL_CONV2_W,
  RL_CONV2_B,
  RL_FC1_W,
  RL_FC1_B,
  RL_FC2_W,
  RL_FC2_B,
  RL_TENSORS
} rl_tensor;
extern const char *const rl_tensor_names[]; /* "conv1.weight" ... */
extern const uint32_t rl_tensor_sizes[RL_TENSORS];
extern const uint32_t rl_tensor_offsets[RL_TENSORS + 1]; /* the last is RL_PARAMETERS */
enum { RL_PARAMETERS = 315146 };

typedef enum rl_precision { RL_FP32, RL_TF32, RL_FP16 } rl_precision;
extern const char *const rl_precision_names[]; /* "fp32" "tf32" "fp16" */

typedef struct rl_train_params {
  int precision;    /* rl_precision */
  char engine[16];  /* "auto" or an engine's name */
  char dataset[16]; /* "auto" (files if they are there, else synthetic), "files", "synthetic" */
  int64_t epochs, warmup_epochs, batch_size, seed;
  int64_t max_images; /* train on the first so many images only; 0: all. A run with fewer than all is marked partial */
  double learning_rate;
} rl_train_params;
extern const rl_field rl_train_fields[];
extern const rl_workload rl_mnist_cnn;

/* Initial parameters: weights[RL_PARAMETERS] from the seed, the same on every engine. */
void rl_model_initialise(uint64_t seed, float *weights);

/* Floating-point operations of one image, forward and backward (no gradient for the input of conv1), zeros multiplied too. */
double rl_model_operations_per_image(void);
/* The least of them: the gradients of the convolutions need only the winners of the pools, at most one value in four, and how
 * many there are is up to the data: none are counted. */
double rl_model_least_operations_per_image(void);

/* --- usable in device code too ----------------------------------------------------------------------------------------- */
/* The shuffle: position i of epoch e shows image rl_permute(i, count, key), key = rl_hash64(seed) ^ rl_hash64(e + 1).
 * A keyed bijection of [0, count): an 8-round Feistel network on the next even number of bits, walked until it falls inside
 * (Black & Rogaway 2002). Every image exactly once an epoch, a fresh order every epoch, no sort and no array. */
RL_HOST_DEVICE uint32_t rl_permute(uint32_t i, uint32_t count, uint64_t key) {
  uint32_t half = 1;
  while (((uint32_t)1 << (2 * half)) < count && half < 16) half++;
  uint32_t mask = ((uint32_t)1 << half) - 1;
  do {
    uint32_t left = i >> half, right = i & mask;
    for (uint32_t round = 0; round < 8; round++) {
      uint32_t next = left ^ ((uint32_t)(rl_hash64(key + ((uint64_t)round << 32) + right) >> 20) & mask);
      left = right;
      right = next;
    }
    i = (left << half) | right;
  } while (i >= count);
  return i;
}

RL_HOST_DEVICE uint64_t rl_shuffle_key(uint64_t seed, uint64_t epoch) { return rl_hash64(seed) ^ rl_hash64(epoch + 1); }

/* --- for tests --------------------------------------------------------------------------------------------------------- */

/* What an engine lets a test see; an engine's instance starts with rl_train_instance. */
typedef struct rl_train_instance {
  rl_instance base;
  rl_train_params params;
  uint32_t images, steps, tail; /* images of an epoch, steps with the tail, size of the last short batch (0: none) */
  uint32_t test_images;
  /* Losses of the last epoch's steps into losses[steps]. */
  int (*losses)(struct rl_train_instance *instance, float *losses, rl_error *err);
  /* Parameters, or gradients of the last step, unscaled, as floats [RL_PARAMETERS] in PyTorch's layouts. */
  int (*parameters)(struct rl_train_instance *instance, float *weights, rl_error *err);
  int (*gradients)(struct rl_train_instance *instance, float *gradients, rl_error *err);
  int (*set_parameters)(struct rl_train_instance *instance, const float *weights, rl_error *err);
} rl_train_instance;

#ifdef __cplusplus
}
#endif
#endif
