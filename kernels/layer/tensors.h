/* The sizes of the layer's tensors, and the contents of its inputs and weights, which are generated from the seed. Any thread
 * can generate any part of an input. */
#ifndef RL_KERNELS_LAYER_TENSORS_H
#define RL_KERNELS_LAYER_TENSORS_H

#include "layer/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_layer_input {
  RL_LAYER_X,            /* [rows][hidden] */
  RL_LAYER_NORM1_WEIGHT, /* [hidden], like the three other parameters of the norms */
  RL_LAYER_NORM1_BIAS,
  RL_LAYER_NORM2_WEIGHT,
  RL_LAYER_NORM2_BIAS,
  RL_LAYER_QKV_WEIGHT,     /* [3 · hidden][hidden] */
  RL_LAYER_O_WEIGHT,       /* [hidden][hidden] */
  RL_LAYER_GATE_UP_WEIGHT, /* [2 · ffn][hidden]: the gate's rows, then those of up */
  RL_LAYER_DOWN_WEIGHT,    /* [hidden][ffn] */
  RL_LAYER_INITIAL_QKV,    /* initial contents of the buffer qkv; only k and v of the cached tokens are used */
  RL_LAYER_INPUT_COUNT
} rl_layer_input;

/* The buffers that every variant fills: four intermediate results and the layer's output. */
typedef enum rl_layer_stage {
  RL_LAYER_QKV,
  RL_LAYER_ATTENTION,
  RL_LAYER_HIDDEN, /* h, after the first residual */
  RL_LAYER_GATED,
  RL_LAYER_OUTPUT,
  RL_LAYER_STAGE_COUNT
} rl_layer_stage;
extern const char *const rl_layer_stage_names[]; /* "qkv" "attention" "hidden" "gated" "output" */

int64_t rl_layer_input_elements(const rl_layer_params *params, int input);
int64_t rl_layer_stage_elements(const rl_layer_params *params, int stage); /* elements of the whole buffer */
int64_t rl_layer_stage_columns(const rl_layer_params *params, int stage);  /* elements of a row */
/* Returns the index of row `row` of the layer in the stage's buffer. The first element of the row is at this index times
 * rl_layer_stage_columns. The index differs from `row` only for RL_LAYER_QKV, whose buffer also has rows of the cached tokens. */
int64_t rl_layer_stage_row_index(const rl_layer_params *params, int stage, int64_t row);
/* Generates elements [start, start + count) of an input, rounded to the layer's type. All elements are uniformly distributed. The
 * elements of a weight matrix [outputs][inputs] have the variance 1 / inputs, so that its product with a normalized row has a
 * variance of about 1. The norms' weights are in [0.5, 1.5), and the elements of all other inputs in [-2, 2). */
void rl_layer_fill_input(const rl_layer_params *params, int input, int64_t start, int64_t count, double *values);

#ifdef __cplusplus
}
#endif
#endif
