/* What the launch-graph engines of the GPU (fused, cudnn) share. They run a step as a sequence of kernel launches, and a CUDA
 * graph replays the steps of an epoch. They share activations and most launches, and differ in how they compute conv2, and so in
 * the launches of a step. An rl_launch_graph_engine describes these differences. */
#ifndef RL_TRAIN_CUDA_TRAINING_H
#define RL_TRAIN_CUDA_TRAINING_H

#include "library/gemm.h"
#include "train/cuda/training_state.h"

enum { RL_MAX_STAGE_LAUNCHES = 10, RL_WORKSPACES = 2 /* number of workspaces: one for each of the two streams */ };
enum {
  RL_STEP,      /* a training step with a full batch */
  RL_TAIL,      /* the training step with the short last batch of an epoch */
  RL_TEST,      /* the evaluation of a full batch */
  RL_TEST_TAIL, /* the evaluation of the short last batch */
  RL_STAGES
};

typedef struct rl_training rl_training;

/* The launches of a step, or of the evaluation of a batch, for one batch size. `arg` of each launch is its rl_stage. */
typedef struct rl_stage {
  rl_training *owner;
  int index;        /* RL_STEP … RL_TEST_TAIL */
  bool train;       /* true in RL_STEP and RL_TAIL */
  rl_gather gather; /* gather.batch 0: the stage is not used */
  /* Products of fc1. NULL: fc1_half.cu computes it. */
  rl_gemm *fc1_forward, *fc1_input_gradient, *fc1_weight_gradient;
  bool fc1_concurrent; /* fc1's two gradients run on two streams; the fork and the join in the graph cost some µs */
  rl_head head;
  rl_gradients gradients;
  rl_launch launches[RL_MAX_STAGE_LAUNCHES];
  size_t launch_count;
} rl_stage;

/* Number of rows of partial sums of each gradient. conv2_weight 0: the gradient of conv2.weight is not stored as partial sums but
 * as one sum, in the type of activations. */
typedef struct rl_partial_rows {
  uint32_t conv1, conv2_weight, conv2_bias, head;
} rl_partial_rows;

/* Description of a launch-graph engine: its launches, and the sizes and functions in which it differs from other engines. */
typedef struct rl_launch_graph_engine {
  const rl_launch *launches; /* launches of a step; the first forward_count of them evaluate a batch */
  size_t launch_count, forward_count;
  bool channels_last;        /* true: NHWC in every precision; false: NHWC in TF32 and FP16 (for tensor cores), NCHW in FP32 */
  bool stores_conv2_product; /* the engine stores conv2's product, and later its gradient, in conv2_product */
  /* One launch, the last before Adam, computes the gradients of fc1 and of both convolutions. It stores conv1's pooled gradient
   * only after expose_tensors. */
  bool fuses_backward;
  uint32_t test_batch; /* images in a batch of the evaluation */
  rl_partial_rows (*partial_rows)(rl_format format, uint32_t batch);
  /* Functions of the engine; NULL: none. open is called after stages and activations have been allocated; it may raise
   * workspace_bytes. bind is called after the workspaces have been allocated; it may set the instance's `deterministic` to false.
   * close is called even if one of these failed. choices writes the algorithms that tuning chose for the engine's launches
   * (view.h) and returns their number. */
  int (*open)(rl_training *training, rl_error *err);
  int (*bind)(rl_training *training, rl_error *err);
  void (*close)(rl_training *training);
  int (*choices)(const rl_training *training, const rl_stage *stage, rl_training_choice *choices);
} rl_launch_graph_engine;

struct rl_training : rl_training_base {
  const rl_launch_graph_engine *engine;
  void *engine_data; /* owned by the functions of the rl_launch_graph_engine */
  cublasLtHandle_t cublas;
  cudaStream_t side_stream; /* second stream, for gradients that are computed concurrently */
  cudaEvent_t fork, join;

  /* Activations and gradients. */
  void *pooled1, *pooled2, *conv2_product, *pooled1_gradient, *pooled2_gradient, *fc1_product_gradient,
      *conv2_weight_gradient; /* conv2_product: NULL unless stores_conv2_product */
  uint8_t *argmax1, *argmax2;
  float *fc1_parts, *fc1_weight_gradient, *partial_conv1, *partial_conv2_bias, *partial_head;
  void *workspace[RL_WORKSPACES];
  size_t workspace_bytes[RL_WORKSPACES];

  rl_stage stages[RL_STAGES];
  rl_launch epoch_begin, test_begin;           /* launches that begin an epoch, and an evaluation */
  rl_sequence sequences[3], test_sequences[3]; /* of an epoch and of an evaluation: begin, full batches, short last batch */
};

/* Implements rl_engine.open for a launch-graph engine. */
int rl_training_open(const rl_launch_graph_engine *engine, rl_device *device, const void *params, rl_instance **instance,
                     rl_error *err);

/* Launches of a step. They implement rl_launch.enqueue; arg: the rl_stage. */
int rl_conv1_forward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_conv2_forward_launch(void *arg, rl_stream stream, rl_error *err); /* FP16: conv2_forward.cu, else conv2_float.cu */
int rl_fc1_forward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_head_launch(void *arg, rl_stream stream, rl_error *err);
int rl_fc1_backward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_conv1_backward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_adam_launch(void *arg, rl_stream stream, rl_error *err);
/* Returns the weights of a tensor in the type that matrix products and convolutions multiply: the FP16 copies if the engine keeps
 * them, else the FP32 weights. */
void *rl_training_weights_for_products(const rl_training *training, rl_tensor tensor);
/* Work that is enqueued on training->side_stream between these two calls runs concurrently with the work that is enqueued on
 * `stream` between them. fork makes side_stream wait for the earlier work on `stream`; join makes `stream` wait for
 * side_stream. */
int rl_training_fork(rl_training *training, rl_stream stream, rl_error *err);
int rl_training_join(rl_training *training, rl_stream stream, rl_error *err);
/* Times a launch with *concurrent false and with *concurrent true, and leaves the faster of the two values in *concurrent. */
int rl_training_tune_concurrency(rl_stage *stage, int (*launch)(void *arg, rl_stream stream, rl_error *err), bool *concurrent,
                                 rl_error *err);

/* Maximum of parts × images of fc1's product. Above it, the head takes longer to add up the parts than the split saves. */
enum { RL_MAX_FC1_PART_ROWS = 64 * 18 };
/* fc1.cu: opens and closes fc1's products of a stage. tune: times several algorithms; otherwise takes the first one that
 * cuBLASLt's heuristic proposes. */
int rl_fc1_open(rl_stage *stage, bool tune, rl_error *err);
void rl_fc1_close(rl_stage *stage);
/* Enqueues the input gradient, and, if our kernel computes both gradients (stage->fc1_weight_gradient is NULL), the weight
 * gradient too. */
int rl_fc1_input_gradient_enqueue(rl_stage *stage, rl_stream stream, rl_error *err);

#endif
