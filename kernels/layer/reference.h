/* The reference of the layer in double precision. Each function computes one stage (rl_layer_stage) of some rows from the
 * results of the previous stage. Weights are generated from the seed, not read from the device. A row is an index in [0, batch ·
 * tokens). */
#ifndef RL_KERNELS_LAYER_REFERENCE_H
#define RL_KERNELS_LAYER_REFERENCE_H

#include "layer/tensors.h"
#include "thread_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_layer_reference {
  const rl_layer_params *params;
  rl_thread_pool *thread_pool;
  const rl_device *device; /* its observer can cancel the computation */
  const int64_t *rows;     /* [count] */
  int64_t count;
} rl_layer_reference;

/* The functions below return 0, or -1 with RL_ERRNO (ENOMEM or ECANCELED). */
/* Computes qkv[count][3 · hidden] from x[count][hidden]. */
int rl_layer_reference_qkv(const rl_layer_reference *reference, const double *x, double *qkv, rl_error *err);
/* Computes attention[hidden] of rows[index]. sequence: qkv of all tokens of the row's sequence, [tokens][3 · hidden]. */
int rl_layer_reference_attention(const rl_layer_reference *reference, int64_t index, const double *sequence, double *attention,
                                 rl_error *err);
/* Computes h[count][hidden] from x[count][hidden] and attention[count][hidden]. */
int rl_layer_reference_hidden(const rl_layer_reference *reference, const double *x, const double *attention, double *h,
                              rl_error *err);
/* Computes gated[count][ffn] from h[count][hidden]. */
int rl_layer_reference_gated(const rl_layer_reference *reference, const double *h, double *gated, rl_error *err);
/* Computes output[count][hidden] from h[count][hidden] and gated[count][ffn]. */
int rl_layer_reference_output(const rl_layer_reference *reference, const double *h, const double *gated, double *output,
                              rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
