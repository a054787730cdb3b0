/* The MNIST CNN: its layers, parameters, initial weights and shuffle, which all engines share. Terms: an image is 28×28 pixels
 * with a label, the digit 0–9. A batch is the images of one step. A step is the forward pass, the backward pass and one update of
 * the parameters by Adam. An epoch is the steps that train on every image once. The tail is the last batch of an epoch if it has
 * fewer images than the others. An argmax is the index, 0–3 in row-major order, of the input that a 2×2 max-pooling window
 * selected.
 *
 * Layers and shapes (N: images in the batch):
 *   x      N×1×28×28   bytes/255, normalised (x-0.1307)/0.3081
 *   conv1  1→32 3×3 pad 1   N×32×28×28, ReLU, MaxPool 2 → N×32×14×14
 *   conv2  32→64 3×3        N×64×12×12, ReLU, MaxPool 2 → N×64×6×6
 *   fc1    2304→128, ReLU   (input flattened in C,H,W order)
 *   fc2    128→10, softmax cross-entropy, mean over the batch
 *   Adam   lr 1e-3, 0.9, 0.999, 1e-8 with bias correction (Kingma & Ba 2015, algorithm 1, as torch.optim.Adam)
 * Initial weights and biases: torch's default, U(-1/sqrt(fan_in), 1/sqrt(fan_in)). As in PyTorch, the first of several equal
 * inputs in row-major order wins in max-pooling, and ReLU's gradient at 0 is 0. */
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
  RL_IMAGE_SIDE = 28,
  RL_IMAGE_PIXELS = 784,
  RL_CLASSES = 10,
  RL_CONV1_CHANNELS = 32, /* output channels of conv1 */
  RL_CONV2_CHANNELS = 64, /* output channels of conv2 */
  RL_CONV1_SIDE = 28,     /* side of conv1's output, before pooling */
  RL_POOLED1_SIDE = 14,   /* side of conv1's output, after pooling */
  RL_CONV2_SIDE = 12,     /* side of conv2's output, before pooling */
  RL_POOLED2_SIDE = 6,    /* side of conv2's output, after pooling */
  RL_POOLED1_PIXELS = RL_POOLED1_SIDE * RL_POOLED1_SIDE,
  RL_CONV2_PIXELS = RL_CONV2_SIDE * RL_CONV2_SIDE,
  RL_POOLED2_PIXELS = RL_POOLED2_SIDE * RL_POOLED2_SIDE,
  RL_FC1_INPUTS = RL_CONV2_CHANNELS * RL_POOLED2_SIDE * RL_POOLED2_SIDE, /* 2304 */
  RL_FC1_OUTPUTS = 128,
  RL_ARGMAX_RELU_ZERO = 4 /* argmax of a window without a positive input, whose output is 0 */
};

/* The parameters are one array of floats, one tensor after another, in PyTorch's layouts (OIHW, [out][in]). */
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
extern const uint32_t rl_tensor_offsets[RL_TENSORS + 1]; /* offset of each tensor in the array; the last entry is RL_PARAMETERS */
enum { RL_PARAMETERS = 315146 };

typedef enum rl_precision { RL_FP32, RL_TF32, RL_FP16 } rl_precision;
extern const char *const rl_precision_names[]; /* "fp32" "tf32" "fp16" */

typedef struct rl_train_params {
  int precision;    /* rl_precision */
  char engine[16];  /* "auto" or an engine's name */
  char dataset[16]; /* "auto" (the files if a folder is configured, else synthetic), "files", "synthetic" */
  int64_t epochs, warmup_epochs, batch_size, seed;
  int64_t max_images; /* number of images to train on, the first ones; 0: all. A run on fewer than all is marked partial. */
  double learning_rate;
} rl_train_params;
extern const rl_field rl_train_fields[];
extern const rl_workload rl_mnist_cnn;

/* Writes the initial parameters to weights[RL_PARAMETERS], in PyTorch's layouts. They depend only on the seed. */
void rl_model_initialise(uint64_t seed, float *weights);

/* Returns the number of floating-point operations of the forward and backward pass of one image. conv1's input needs no gradient.
 * Multiplications by zero count. */
double rl_model_operations_per_image(void);
/* Returns a lower bound of the number of floating-point operations of one image that holds for any data. The gradients of a
 * convolution depend only on the outputs that max-pooling selected: at most one in four, and none if ReLU zeroed all of them. So
 * the bound counts no operations for these gradients. */
double rl_model_min_operations_per_image(void);

/* --- for host and device code ------------------------------------------------------------------------------------------ */

/* Returns the index of the image at position i of an epoch. key: the epoch's rl_shuffle_key. Every epoch contains every image
 * once, in a different order. The function is a keyed bijection of [0, count), so it needs no sort and no array: an 8-round
 * Feistel network on the smallest even number of bits that suffices, repeated until the result is below count (cycle walking,
 * Black & Rogaway 2002). */
RL_HOST_DEVICE uint32_t rl_permute(uint32_t i, uint32_t count, uint64_t key) {
  uint32_t half_bits = 1;
  while (((uint32_t)1 << (2 * half_bits)) < count && half_bits < 16) half_bits++;
  uint32_t mask = ((uint32_t)1 << half_bits) - 1;
  do {
    uint32_t left = i >> half_bits, right = i & mask;
    for (uint32_t round = 0; round < 8; round++) {
      uint32_t next = left ^ ((uint32_t)(rl_hash64(key + ((uint64_t)round << 32) + right) >> 20) & mask);
      left = right;
      right = next;
    }
    i = (left << half_bits) | right;
  } while (i >= count);
  return i;
}

/* Returns the key of an epoch for rl_permute. */
RL_HOST_DEVICE uint64_t rl_shuffle_key(uint64_t seed, uint64_t epoch) { return rl_hash64(seed) ^ rl_hash64(epoch + 1); }

/* --- for tests --------------------------------------------------------------------------------------------------------- */

/* The instance struct of every training engine begins with this struct. Tests read and set the engine's arrays through its
 * functions, which return 0, or -1 with err. */
typedef struct rl_train_instance {
  rl_instance base;
  rl_train_params params;
  uint32_t images; /* images in an epoch */
  uint32_t steps;  /* steps in an epoch, including the tail's */
  uint32_t tail;   /* images in the tail; 0: no tail */
  uint32_t test_images;
  /* Writes the losses of the last epoch's steps to losses[steps]. */
  int (*losses)(struct rl_train_instance *instance, float *losses, rl_error *err);
  /* Copy the engine's parameters, or the gradients of its last step (divided by the loss scale), to an array of RL_PARAMETERS
   * floats in PyTorch's layouts, or set the parameters from such an array. */
  int (*parameters)(struct rl_train_instance *instance, float *weights, rl_error *err);
  int (*gradients)(struct rl_train_instance *instance, float *gradients, rl_error *err);
  int (*set_parameters)(struct rl_train_instance *instance, const float *weights, rl_error *err);
  /* Copies Adam's first and second moments to two such arrays. */
  int (*moments)(struct rl_train_instance *instance, float *first, float *second, rl_error *err);
} rl_train_instance;

#ifdef __cplusplus
}
#endif
#endif
