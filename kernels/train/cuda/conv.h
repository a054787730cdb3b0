/* A 3×3 convolution (stride 1, no dilation) and its two gradients by cuDNN's backend interface: every engine configuration
 * that cuDNN offers for the shape is timed inside a graph on the device, and the fastest one is kept.
 * Belongs to one thread; buffers are borrowed. */
#ifndef RL_TRAIN_CONV_H
#define RL_TRAIN_CONV_H

#include <cudnn.h>

#include "device.h"

typedef enum rl_conv_pass { RL_CONV_FORWARD, RL_CONV_BACKWARD_DATA, RL_CONV_BACKWARD_FILTER } rl_conv_pass;

typedef struct rl_conv_shape {
  rl_conv_pass pass;
  int64_t n, c, h, w, k, pad;  /* x: n×c×h×w, weights: k×c×3×3, y: n×k×(h-2+2pad)×(w-2+2pad) */
  bool channels_last;          /* x and y NHWC, weights k×3×3×c; else NCHW, k×c×3×3 */
  cudnnDataType_t type;        /* of x, weights and y: FLOAT or HALF; products are summed in FP32 */
  cudnnDataType_t weight_type; /* of the weights (their gradient in BACKWARD_FILTER) */
  bool tensor_float;           /* FLOAT: TF32 tensor cores are allowed */
} rl_conv_shape;

typedef struct rl_conv_choice { /* one engine configuration, as timed */
  char name[96];                /* cuDNN's tag of engine and knobs: "eng3_k2=1" */
  double us;                    /* 0: chosen before in this process, not timed again */
  size_t workspace_bytes;
  bool deterministic, tensor_cores, winograd;
} rl_conv_choice;

typedef struct rl_conv rl_conv;

typedef struct rl_conv_search {
  size_t workspace_limit; /* configurations that need more are left out */
  int most;               /* times at most so many configurations; 1: takes the first that runs */
  bool thorough;          /* also what the heuristics leave out */
  void (*seen)(void *context, const rl_conv_choice *choice); /* told about every configuration that ran; may be NULL */
  void *context;
} rl_conv_search;

/* The pass's output is overwritten by the trials; fill the inputs with noise first. A deterministic configuration is preferred when it is
 * within 5 % of the fastest. rl_conv_bind must follow before the first enqueue. */
int rl_conv_open(cudnnHandle_t handle, const rl_conv_shape *shape, void *x, void *weights, void *y,
                 const rl_conv_search *search, rl_stream stream, rl_conv **conv, rl_error *err);
/* workspace: at least the chosen workspace_bytes; borrowed. */
int rl_conv_bind(rl_conv *conv, void *workspace, rl_error *err);
void rl_conv_close(rl_conv *conv); /* NULL is allowed */
int rl_conv_enqueue(rl_conv *conv, rl_stream stream, rl_error *err);
const rl_conv_choice *rl_conv_chosen(const rl_conv *conv);

#endif
