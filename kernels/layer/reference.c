/* Implements layer/reference.h. */
#include "layer/reference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernel/norm.h"
#include "kernel/parallel.h"
#include "kernel/rope.h"
#include "kernel/sums.h"

#define RL_LOOPS_HEADER "layer/loops/layer.h"
#include "kernel/float_and_double.h"

enum { CHUNK_COLUMNS = 8 }; /* columns of a product that a thread computes per task */

RL_DEFINE_CLEANUP(free_doubles, double *, free, NULL)

static double *allocate(int64_t count, rl_error *err) {
  double *values = malloc((size_t)count * sizeof *values);
  if (values == NULL) rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the reference of a layer");
  return values;
}

/* --- products ---------------------------------------------------------------------------------------------------------- */

/* The product out[count][out_stride] = in[count][inputs] · Wᵀ. W is a weight matrix without its first `first_output` rows. */
typedef struct product {
  const rl_layer_reference *reference;
  int weight; /* the matrix, an rl_layer_input */
  int64_t first_output, inputs;
  const double *in;
  double *out;
  int64_t out_stride;
} product;

static int multiply_columns(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const product *p = context;
  (void)thread;
  RL_CLEANUP(free_doubles) double *weights = allocate(p->inputs, err);
  if (weights == NULL) return -1;
  for (int64_t column = first; column < first + count; column++) {
    rl_layer_fill_input(p->reference->params, p->weight, (p->first_output + column) * p->inputs, p->inputs, weights);
    for (int64_t i = 0; i < p->reference->count; i++)
      p->out[i * p->out_stride + column] = rl_dot_double(p->in + i * p->inputs, weights, p->inputs);
  }
  return 0;
}

static int multiply(product p, int64_t outputs, rl_error *err) {
  return rl_parallel_for(p.reference->thread_pool, p.reference->device, outputs, CHUNK_COLUMNS, multiply_columns, &p, err);
}

/* --- stages ------------------------------------------------------------------------------------------------------------ */

/* Returns layernorm(x) of all rows in malloc'ed memory; NULL and err after a failure. weight: the rl_layer_input with the norm's
 * weights; the next rl_layer_input has its biases. */
static double *normalize(const rl_layer_reference *reference, int weight, const double *x, rl_error *err) {
  const int64_t hidden = reference->params->hidden;
  double *normed = allocate(reference->count * hidden, err);
  RL_CLEANUP(free_doubles) double *weights = allocate(2 * hidden, err);
  if (normed == NULL || weights == NULL) {
    free(normed);
    return NULL;
  }
  rl_layer_fill_input(reference->params, weight, 0, hidden, weights);
  rl_layer_fill_input(reference->params, weight + 1, 0, hidden, weights + hidden);
  for (int64_t i = 0; i < reference->count; i++)
    norm_row_double(x + i * hidden, weights, weights + hidden, hidden, normed + i * hidden);
  return normed;
}

/* Sets rotations[head_size]: cosine and sine of each pair of a head at a position. */
static void set_rotations(const rl_layer_params *p, int64_t position, double *rotations) {
  const int64_t head_size = rl_layer_head_size(p);
  for (int64_t pair = 0; pair < head_size / 2; pair++) {
    const double angle = rl_rope_angle(position, rl_rope_turns_per_position(pair, head_size));
    rotations[2 * pair] = cos(angle);
    rotations[2 * pair + 1] = sin(angle);
  }
}

int rl_layer_reference_qkv(const rl_layer_reference *reference, const double *x, double *qkv, rl_error *err) {
  const rl_layer_params *p = reference->params;
  RL_CLEANUP(free_doubles) double *normed = normalize(reference, RL_LAYER_NORM1_WEIGHT, x, err);
  RL_CLEANUP(free_doubles) double *rotations = allocate(rl_layer_head_size(p), err);
  const product projection = {reference, RL_LAYER_QKV_WEIGHT, 0, p->hidden, normed, qkv, 3 * p->hidden};
  if (normed == NULL || rotations == NULL || multiply(projection, 3 * p->hidden, err) < 0) return -1;
  for (int64_t i = 0; i < reference->count; i++) {
    set_rotations(p, rl_layer_position(p, reference->rows[i]), rotations);
    rope_row_double(qkv + i * 3 * p->hidden, 2 * p->heads, rl_layer_head_size(p), rotations);
  }
  return 0;
}

typedef struct attention_row {
  const rl_layer_params *params;
  const double *query, *sequence; /* sequence: [tokens][3 · hidden] */
  int64_t attended;
  double *out;
} attention_row;

static int attend_heads(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const attention_row *row = context;
  const int64_t hidden = row->params->hidden, head_size = rl_layer_head_size(row->params);
  (void)thread;
  RL_CLEANUP(free_doubles) double *weights = allocate(row->attended, err);
  if (weights == NULL) return -1;
  for (int64_t head = first; head < first + count; head++) {
    const int64_t offset = head * head_size;
    attention_head_double(row->query + offset, row->sequence + hidden + offset, row->sequence + 2 * hidden + offset, 3 * hidden,
                          row->attended, head_size, weights, row->out + offset);
  }
  return 0;
}

int rl_layer_reference_attention(const rl_layer_reference *reference, int64_t index, const double *sequence, double *attention,
                                 rl_error *err) {
  const rl_layer_params *p = reference->params;
  attention_row row = {.params = p,
                       .query = sequence + rl_layer_position(p, reference->rows[index]) * 3 * p->hidden,
                       .sequence = sequence,
                       .attended = rl_layer_attended_tokens(p, reference->rows[index]),
                       .out = attention};
  return rl_parallel_for(reference->thread_pool, reference->device, p->heads, 1, attend_heads, &row, err);
}

/* Computes out[count][hidden] = residual + in · Wᵀ, where W is the input `weight` of the layer. */
static int project_and_add(const rl_layer_reference *reference, int weight, int64_t inputs, const double *in,
                           const double *residual, double *out, rl_error *err) {
  const int64_t hidden = reference->params->hidden;
  if (multiply((product){reference, weight, 0, inputs, in, out, hidden}, hidden, err) < 0) return -1;
  for (int64_t i = 0; i < reference->count * hidden; i++) out[i] += residual[i];
  return 0;
}

int rl_layer_reference_hidden(const rl_layer_reference *reference, const double *x, const double *attention, double *h,
                              rl_error *err) {
  return project_and_add(reference, RL_LAYER_O_WEIGHT, reference->params->hidden, attention, x, h, err);
}

int rl_layer_reference_gated(const rl_layer_reference *reference, const double *h, double *gated, rl_error *err) {
  const rl_layer_params *p = reference->params;
  RL_CLEANUP(free_doubles) double *normed = normalize(reference, RL_LAYER_NORM2_WEIGHT, h, err);
  RL_CLEANUP(free_doubles) double *up = allocate(reference->count * p->ffn, err);
  if (normed == NULL || up == NULL) return -1;
  const product gate_projection = {reference, RL_LAYER_GATE_UP_WEIGHT, 0, p->hidden, normed, gated, p->ffn};
  const product up_projection = {reference, RL_LAYER_GATE_UP_WEIGHT, p->ffn, p->hidden, normed, up, p->ffn};
  if (multiply(gate_projection, p->ffn, err) < 0 || multiply(up_projection, p->ffn, err) < 0) return -1;
  for (int64_t i = 0; i < reference->count * p->ffn; i++) gated[i] = gated_double(gated[i], up[i]);
  return 0;
}

int rl_layer_reference_output(const rl_layer_reference *reference, const double *h, const double *gated, double *output,
                              rl_error *err) {
  return project_and_add(reference, RL_LAYER_DOWN_WEIGHT, reference->params->ffn, gated, h, output, err);
}
