/* The device code of the engine "persistent", which runs all steps of an epoch in one launch (persistent_kernels.cu). It needs
 * thread block clusters and RL_PERSISTENT_BLOCKS co-resident blocks. After an epoch, the losses, weights, moments and
 * rl_train_state have the same layout and meaning as with the launch-graph engines (training.h). */
#ifndef RL_TRAIN_CUDA_PERSISTENT_H
#define RL_TRAIN_CUDA_PERSISTENT_H

#include "train/cuda/kernels.h"

enum {
  RL_PERSISTENT_BLOCK_PAIRS = 64, /* pairs of blocks; a pair processes one image at a time */
  RL_PERSISTENT_BLOCKS = 2 * RL_PERSISTENT_BLOCK_PAIRS,
  RL_TIMESTAMPED_STEPS = 32 /* steps that record timestamps: the first ones of an epoch */
};

/* Phases of a step in order, each with the NVTX range that contains it. In TF32, conv2_input_gradient includes the weight
 * gradient, which is computed after the input gradient. */
/* clang-format off */
#define RL_TIMED_PHASE_NAMES(X) \
  X(conv1_forward, forward) X(conv2_weights, forward) X(conv2_forward, forward) X(fc1_inputs, forward) X(fc1_forward, forward) \
  X(head, forward) X(fc1_gradients, backward) X(fc1_backward, backward) X(unpool2, backward) X(conv2_weight_gradient, backward) \
  X(conv2_input_gradient, backward) X(forward_barrier, backward) X(conv1_backward, backward) X(store_sums, backward) \
  X(fc1_weight_gradient, backward) X(backward_barrier, backward) X(adam, optimizer)
/* clang-format on */
#define RL_TIMED_PHASE(NAME, NVTX_RANGE) RL_TIMED_##NAME,
enum { RL_TIMED_PHASE_NAMES(RL_TIMED_PHASE) RL_TIMED_PHASES };
#undef RL_TIMED_PHASE

/* Times of the phases of each block, in ns of a clock that the device's SMs share; 0: not recorded. */
typedef struct rl_persistent_timestamps {
  uint64_t phases[RL_PERSISTENT_BLOCKS][RL_TIMESTAMPED_STEPS]
                 [1 + RL_TIMED_PHASES];     /* start of the step, then the end of each phase */
  uint64_t launch[RL_PERSISTENT_BLOCKS][2]; /* start and end of the block */
  uint64_t cycles[RL_PERSISTENT_BLOCKS][2]; /* start and end of the block in cycles of its SM's clock */
} rl_persistent_timestamps;

struct rl_block_exchange;

/* Arguments of a launch. Pointers are to device memory. */
typedef struct rl_persistent_args {
  const uint8_t *images, *labels; /* images and labels of the data set, [number of images][28][28] and [number of images] */
  const uint32_t *order;          /* [count] indices of images in the order in which they are trained; NULL: stored order */
  uint32_t count, batch;          /* images of the epoch, and of a step. In an evaluation, both are the number of test images */
  /* During a launch, adam.weights holds the weights in the type that is multiplied; FP16 weights begin at fc1.weight's offset.
   * adam.fp16_weights is not used. */
  rl_adam adam;
  void *pooled2, *d_fc1; /* fc1's inputs [batch][2304] and the gradient of its product [batch][128]; NULL in an evaluation */
  /* Partial sums of the gradients of the last step, in rows as in rl_gradients: 2 · rl_persistent_partial_rows rows of conv1,
   * rl_persistent_partial_rows rows of the others. NULL in an evaluation. partial_conv2_weight may lie in the memory of
   * adam.first_moment and adam.second_moment: a launch reads the moments at its start and stores them at its end, and then
   * overwrites the sums. */
  float *partial_conv1, *partial_conv2_weight, *partial_conv2_bias, *partial_head;
  struct rl_block_exchange *block_exchange; /* memory of rl_persistent_exchange_bytes() bytes; each launch clears it */
  /* For tests, all set or all NULL (not stored): the outputs of both pools and their gradients, [batch][14][14][32] and
   * [batch][6][6][64], and the argmaxes of the pools. d_pooled1 has rl_persistent_d_pooled1_parts of them, for the step's images,
   * whose sum is the gradient. */
  void *pooled1, *d_pooled1, *d_pooled2;
  uint8_t *argmax1, *argmax2;
  rl_persistent_timestamps *timestamps; /* NULL: not recorded */
} rl_persistent_args;

size_t rl_persistent_exchange_bytes(void);

/* Returns the number of parts of d_pooled1 (rl_persistent_args). */
uint32_t rl_persistent_d_pooled1_parts(rl_format format);

/* Returns the rows of partial sums for steps of `batch` images. */
uint32_t rl_persistent_partial_rows(uint32_t batch);

/* Returns 0, or -1 and the reason if the current device can't run the engine. */
int rl_persistent_supported(rl_format format, rl_error *err);

/* Enqueues an epoch on the stream. Returns 0, or -1 with the error in err. */
int rl_persistent_epoch(rl_format format, const rl_persistent_args *args, cudaStream_t stream, rl_error *err);

/* Enqueues an evaluation on the stream: stores the loss of each image in losses[count], and 1 in correct[count] if its class was
 * recognised, else 0. Increments state->test_step. */
int rl_persistent_evaluate(rl_format format, const rl_persistent_args *args, float *losses, uint8_t *correct, cudaStream_t stream,
                           rl_error *err);

#endif
