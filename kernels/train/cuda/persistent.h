/* The device code of the engine "persistent", which runs all steps of an epoch in one launch (persistent_kernels.cu). It needs
 * thread block clusters and RL_PERSISTENT_BLOCKS co-resident blocks. After an epoch, the losses, weights, moments and
 * rl_train_state have the same layout and meaning as in the launch-graph engines (training.h). */
#ifndef RL_TRAIN_CUDA_PERSISTENT_H
#define RL_TRAIN_CUDA_PERSISTENT_H

#include "train/cuda/kernels.h"

enum {
  RL_PERSISTENT_BLOCK_PAIRS = 64, /* pairs of blocks; a pair processes one image at a time */
  RL_PERSISTENT_BLOCKS = 2 * RL_PERSISTENT_BLOCK_PAIRS,
  RL_TIMESTAMPED_STEPS = 32 /* number of steps that record timestamps, beginning with the first step of an epoch */
};

/* The phases of a step in order, each with the NVTX range to which it belongs. FP32 records conv2_weight_gradient and
 * conv2_input_gradient together as conv2_gradients. forward_barrier is the leader's wait. */
/* clang-format off */
#define RL_TIMED_PHASE_NAMES(X) \
  X(conv1_forward, forward) X(conv2_weights, forward) X(conv2_forward, forward) X(fc1_inputs, forward) X(fc1_forward, forward) \
  X(head, forward) X(fc1_gradients, backward) X(fc1_backward, backward) X(forward_barrier, backward) X(unpool2, backward) \
  X(conv2_weight_gradient, backward) X(conv2_input_gradient, backward) X(conv2_gradients, backward) X(conv1_backward, backward) \
  X(store_sums, backward) X(fc1_weight_gradient, backward) X(rows_barrier, backward) X(add_rows, backward) \
  X(conv2_update, optimizer) X(votes, optimizer) X(adam, optimizer)
/* clang-format on */
#define RL_TIMED_PHASE(NAME, NVTX_RANGE) RL_TIMED_##NAME,
enum { RL_TIMED_PHASE_NAMES(RL_TIMED_PHASE) RL_TIMED_PHASES };
#undef RL_TIMED_PHASE

/* Times of the phases of each block, in ns of a clock that the device's SMs share; 0: not recorded. */
typedef struct rl_persistent_timestamps {
  /* [0]: start of the step; [1 + p]: end of phase p */
  uint64_t phases[RL_PERSISTENT_BLOCKS][RL_TIMESTAMPED_STEPS][1 + RL_TIMED_PHASES];
  uint64_t launch[RL_PERSISTENT_BLOCKS][2]; /* start and end of the block */
  uint64_t cycles[RL_PERSISTENT_BLOCKS][2]; /* the same in cycles of its SM's clock */
} rl_persistent_timestamps;

struct rl_block_exchange;

/* Arguments of a launch. Pointers are to device memory. */
typedef struct rl_persistent_args {
  const uint8_t *images, *labels; /* images and labels of the data set: [number of images][28][28], [number of images] */
  const uint32_t *order;          /* [count]: data set indices in the order of training; NULL: 0, 1, 2, … */
  uint32_t count, batch;          /* images of the epoch, and of a step; in an evaluation, both are the number of test images */
  /* During a launch, adam.weights holds weights as the products multiply them (published_weights in persistent.cuh).
   * adam.fp16_weights is not used. */
  rl_adam adam;
  /* The operands of fc1's weight gradient, rl_persistent_fc1_operands_bytes. NULL in an evaluation. */
  void *fc1_operands;
  /* Partial sums of the gradients of conv2.weight and the head in the last step, in rl_persistent_partial_rows rows. NULL in an
   * evaluation. Those of conv2.weight may be in the memory of adam.first_moment and adam.second_moment: a launch reads the
   * moments at its start and stores them at its end, so they overwrite the sums. */
  void *partial_conv2_weight; /* as rl_persistent_conv2_row_format describes it */
  float *partial_head;
  struct rl_block_exchange *block_exchange; /* rl_persistent_exchange_bytes() bytes of memory; each launch clears it */
  /* Tensors that only tests read; either all are set, or all are NULL and not stored: pooled1 [batch][14][14][32], pooled2
   * [batch][2304], the gradients of pooled1 and pooled2 in the layouts of these, and their argmaxes; the gradient of fc1's
   * product [batch][128]. pooled1_gradient is rl_persistent_pooled1_gradient_parts tensors, one after another, whose sum is the
   * gradient. small_gradients are the gradients of conv1's parameters, conv2.bias and the head, one after another, multiplied by
   * the loss scale. */
  float *small_gradients;
  void *pooled1, *pooled2, *pooled1_gradient, *pooled2_gradient, *fc1_product_gradient;
  uint8_t *argmax1, *argmax2;
  /* If timestamps or pooled1 is not NULL, rl_persistent_epoch launches another version of its kernel, which records timestamps
   * and stores these tensors. It computes the same. */
  rl_persistent_timestamps *timestamps;
} rl_persistent_args;

/* Returns the size of rl_block_exchange (persistent.cuh). */
size_t rl_persistent_exchange_bytes(void);

/* Returns the size of rl_persistent_args.fc1_operands for steps of `batch` images. */
size_t rl_persistent_fc1_operands_bytes(rl_format format, uint32_t batch);

/* Returns the number of tensors in rl_persistent_args.pooled1_gradient. */
uint32_t rl_persistent_pooled1_gradient_parts(rl_format format);

/* Returns the number of rows of partial_conv2_weight for steps of `batch` images. */
uint32_t rl_persistent_partial_rows(uint32_t batch);

typedef struct rl_persistent_row_format {
  bool fp16;   /* the partial sums are FP16, else FP32 */
  float scale; /* factor by which they are multiplied, beside the loss scale */
} rl_persistent_row_format;
/* Returns how the rows of partial_conv2_weight are stored. */
rl_persistent_row_format rl_persistent_conv2_row_format(rl_format format);

/* Returns 0, or -1 with the reason in err if the current device can't run the engine. */
int rl_persistent_supported(rl_format format, rl_error *err);

/* Enqueues an epoch on the stream. Returns 0, or -1 with err. */
int rl_persistent_epoch(rl_format format, const rl_persistent_args *args, cudaStream_t stream, rl_error *err);

/* Enqueues an evaluation on the stream. It stores the loss of each image in losses[count], and 1 in correct[count] if its class
 * was recognised, else 0, and increments state->test_step. Returns 0, or -1 with err. */
int rl_persistent_evaluate(rl_format format, const rl_persistent_args *args, float *losses, uint8_t *correct, cudaStream_t stream,
                           rl_error *err);

#endif
