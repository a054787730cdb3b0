/* The shell of a training engine on the GPU: data set, parameters, activations, training state, programs, report, and the
 * launches of a step that engines share. Engines differ in how they do conv2 and fc1, and so in the launches that a step consists
 * of: an rl_recipe says both. */
#ifndef RL_TRAIN_CUDA_TRAINING_H
#define RL_TRAIN_CUDA_TRAINING_H

#include "library/gemm.h"
#include "train/cuda/training_state.h"

enum { RL_MOST_LAUNCHES = 10, RL_LANES = 2 /* branches side by side, each with a workspace */ };
enum { RL_STEP, RL_TAIL, RL_TEST, RL_TEST_TAIL, RL_STAGES };

typedef struct rl_training rl_training;

typedef struct rl_stage { /* everything for one batch size; what a step's launches get */
  rl_training *owner;
  int index; /* RL_STEP… */
  bool train;
  rl_gather gather; /* batch 0: there is no such stage */
  rl_gemm *fc1, *fc1_data, *fc1_weight;
  bool fc1_beside; /* the two gradients run side by side: a fork and a join in the graph cost some µs */
  rl_head head;
  rl_gradients gradients;
  rl_launch launches[RL_MOST_LAUNCHES];
  size_t launch_count;
} rl_stage;

typedef struct rl_partial_rows { /* of partial sums of gradients; 0 rows of conv2.weight: whole, in the activations' type */
  uint32_t conv1, conv2_weight, conv2_bias, head;
} rl_partial_rows;

typedef struct rl_recipe {
  const rl_launch *launches; /* of a step, arg: the stage's; the first forward_count are those of an evaluated batch */
  size_t launch_count, forward_count;
  bool channels_last;  /* in every precision, not just where tensor cores want it */
  bool keeps_product;  /* conv2's product, then its gradient, lies in product2 */
  uint32_t test_batch; /* images evaluated at once */
  rl_partial_rows (*rows)(rl_format format, uint32_t batch);
  /* The engine's own part, each NULL where there is none. open: when stages and activations are there; may raise workspace_bytes.
   * bind: when the workspace is there; may say that the instance is not deterministic. close: whatever open got to. */
  int (*open)(rl_training *training, rl_error *err);
  int (*bind)(rl_training *training, rl_error *err);
  void (*close)(rl_training *training);
  int (*choices)(const rl_training *training, const rl_stage *stage, rl_training_choice *choices); /* returns how many */
} rl_recipe;

struct rl_training : rl_training_base {
  const rl_recipe *recipe;
  void *own; /* the engine's */
  cublasLtHandle_t cublas;
  cudaStream_t side;
  cudaEvent_t fork, join;

  /* Activations and gradients. */
  void *pooled1, *pooled2, *product2, *d_pooled1, *d_pooled2, *d_fc1, *d_conv2_weight; /* product2: NULL unless kept */
  uint8_t *codes1, *codes2;
  float *parts, *d_fc1_weight, *partial_conv1, *partial_conv2, *partial_head;
  void *workspace[RL_LANES];
  size_t workspace_bytes[RL_LANES];

  rl_stage stages[RL_STAGES];
  rl_launch begin, test_begin;
  rl_sequence sequences[3], test_sequences[3];
};

int rl_training_open(const rl_recipe *recipe, rl_device *device, const void *params, rl_instance **instance, rl_error *err);

/* Launches, arg: rl_stage. */
int rl_conv1_forward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_conv2_forward_launch(void *arg, rl_stream stream, rl_error *err); /* by conv2_forward.cu or conv2_float.cu */
int rl_fc1_forward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_head_launch(void *arg, rl_stream stream, rl_error *err);
int rl_fc1_backward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_conv1_backward_launch(void *arg, rl_stream stream, rl_error *err);
int rl_adam_launch(void *arg, rl_stream stream, rl_error *err);
/* The weights as they are multiplied: FP16 copies where there are any. */
void *rl_training_multiplied(const rl_training *training, rl_tensor tensor);
/* Work queued on training->side between these two runs beside the main stream's. */
int rl_training_fork(rl_training *training, rl_stream stream, rl_error *err);
int rl_training_join(rl_training *training, rl_stream stream, rl_error *err);
/* Whether a launch's two parts, side by side while *beside, are faster so. */
int rl_training_beside(rl_stage *stage, int (*launch)(void *arg, rl_stream stream, rl_error *err), bool *beside, rl_error *err);

/* fc1.cu: fc1's products of a stage. tune: try many algorithms. */
enum { RL_PART_ROWS = 64 * 18 }; /* parts × images that `head` may have to add up: what splitting fc1 is worth */
int rl_fc1_open(rl_stage *stage, bool tune, rl_error *err);
void rl_fc1_close(rl_stage *stage);

#endif
