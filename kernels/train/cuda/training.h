/* Shared by the launch-graph engines of the GPU (fused, cudnn), which run a step as a sequence of kernel launches; a CUDA graph
 * replays the steps of an epoch. The engines share activations and most launches. They differ in how they compute conv2, and so
 * in the launches of a step; an rl_recipe describes these differences. */
#ifndef RL_TRAIN_CUDA_TRAINING_H
#define RL_TRAIN_CUDA_TRAINING_H

#include "library/gemm.h"
#include "train/cuda/training_state.h"

enum { RL_MAX_STAGE_LAUNCHES = 10, RL_WORKSPACES = 2 /* one for each of the two streams */ };
enum {
  RL_STEP,      /* a training step of a full batch */
  RL_TAIL,      /* the short last training step of an epoch */
  RL_TEST,      /* evaluation of a full batch */
  RL_TEST_TAIL, /* evaluation of the short last batch */
  RL_STAGES
};

typedef struct rl_training rl_training;

/* The launches of a step, or of the evaluation of a batch, for one batch size. Each launch gets its rl_stage as the argument. */
typedef struct rl_stage {
  rl_training *owner;
  int index;                            /* RL_STEP … RL_TEST_TAIL */
  bool train;                           /* RL_STEP or RL_TAIL */
  rl_gather gather;                     /* gather.batch 0: the stage is not used */
  rl_gemm *fc1, *fc1_data, *fc1_weight; /* fc1's products: forward, gradient of the input, gradient of the weights */
  bool fc1_concurrent; /* fc1's two gradients run on two streams, which costs a fork and a join in the graph (some µs) */
  rl_head head;
  rl_gradients gradients;
  rl_launch launches[RL_MAX_STAGE_LAUNCHES];
  size_t launch_count;
} rl_stage;

/* Number of rows of partial sums in which each gradient is stored. conv2_weight 0: the gradient of conv2.weight is stored as one
 * sum, in the activations' type. */
typedef struct rl_partial_rows {
  uint32_t conv1, conv2_weight, conv2_bias, head;
} rl_partial_rows;

/* Description of an engine: its launches, and the sizes and functions in which it differs from other engines. */
typedef struct rl_recipe {
  const rl_launch *launches; /* launches of a step; the first forward_count of them are the evaluation of a batch */
  size_t launch_count, forward_count;
  bool channels_last;  /* true: NHWC in every precision; false: NHWC in TF32 and FP16 (for tensor cores), NCHW in FP32 */
  bool keeps_product;  /* the engine stores conv2's output before bias, ReLU and pooling, and later its gradient, in product2 */
  uint32_t test_batch; /* images evaluated at once */
  rl_partial_rows (*rows)(rl_format format, uint32_t batch);
  /* Functions of the engine; NULL: none. open is called after stages and activations have been allocated; it may raise
   * workspace_bytes. bind is called after the workspaces have been allocated; it may set the instance's `deterministic` to false.
   * close is called even if one of them failed. choices writes the algorithms that tuning chose for the engine's launches
   * (view.h) and returns their number. */
  int (*open)(rl_training *training, rl_error *err);
  int (*bind)(rl_training *training, rl_error *err);
  void (*close)(rl_training *training);
  int (*choices)(const rl_training *training, const rl_stage *stage, rl_training_choice *choices);
} rl_recipe;

struct rl_training : rl_training_base {
  const rl_recipe *recipe;
  void *engine_data; /* owned by the recipe's functions */
  cublasLtHandle_t cublas;
  cudaStream_t side_stream; /* second stream, for gradients that run concurrently */
  cudaEvent_t fork, join;

  /* Activations and gradients. */
  void *pooled1, *pooled2, *product2, *d_pooled1, *d_pooled2, *d_fc1, *d_conv2_weight; /* product2: NULL unless keeps_product */
  uint8_t *argmax1, *argmax2;
  float *fc1_parts, *d_fc1_weight, *partial_conv1, *partial_conv2_bias, *partial_head;
  void *workspace[RL_WORKSPACES];
  size_t workspace_bytes[RL_WORKSPACES];

  rl_stage stages[RL_STAGES];
  rl_launch begin, test_begin;                 /* launches that begin an epoch and an evaluation */
  rl_sequence sequences[3], test_sequences[3]; /* of an epoch and of an evaluation: begin, full batches, short last batch */
};

int rl_training_open(const rl_recipe *recipe, rl_device *device, const void *params, rl_instance **instance, rl_error *err);

/* Launches of a step. arg: the rl_stage. */
int rl_conv1_forward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_conv2_forward_launch(void *arg, rl_stream stream, rl_error *err); /* FP16: conv2_forward.cu, else conv2_float.cu */
int rl_fc1_forward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_head_launch(void *arg, rl_stream stream, rl_error *err);
int rl_fc1_backward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_conv1_backward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_adam_launch(void *arg, rl_stream stream, rl_error *err);
/* Returns the weights of a tensor that matrix products and convolutions read: the FP16 copies if the engine keeps them, else the
 * FP32 weights. */
void *rl_training_compute_weights(const rl_training *training, rl_tensor tensor);
/* Fork and join training->side_stream: work that is enqueued on it between the two calls runs concurrently with the work on
 * `stream`. */
int rl_training_fork(rl_training *training, rl_stream stream, rl_error *err);
int rl_training_join(rl_training *training, rl_stream stream, rl_error *err);
/* Times a launch with *concurrent false and with *concurrent true, and leaves the faster of the two values in it. */
int rl_training_tune_concurrency(rl_stage *stage, int (*launch)(void *arg, rl_stream stream, rl_error *err), bool *concurrent,
                                 rl_error *err);

/* fc1.cu: opens and closes fc1's products of a stage. tune: times several algorithms instead of taking the first that cuBLASLt's
 * heuristic proposes. */
enum {
  RL_MAX_FC1_PART_ROWS = 64 * 18
}; /* maximum of parts × images. Above it, the head needs more time to add up the parts than the split of fc1's product saves */
int rl_fc1_open(rl_stage *stage, bool tune, rl_error *err);
void rl_fc1_close(rl_stage *stage);

#endif
