/* Implements layer/tensors.h. */
#include "layer/tensors.h"

#include <math.h>

#include "hash.h"
#include "kernel/dtype.h"

const char *const rl_layer_stage_names[] = {"qkv", "attention", "hidden", "gated", "output", NULL};

int64_t rl_layer_stage_columns(const rl_layer_params *p, int stage) {
  const int64_t columns[] = {[RL_LAYER_QKV] = 3 * p->hidden,
                             [RL_LAYER_ATTENTION] = p->hidden,
                             [RL_LAYER_HIDDEN] = p->hidden,
                             [RL_LAYER_GATED] = p->ffn,
                             [RL_LAYER_OUTPUT] = p->hidden};
  return columns[stage];
}

int64_t rl_layer_stage_row_index(const rl_layer_params *p, int stage, int64_t row) {
  return stage == RL_LAYER_QKV ? rl_layer_qkv_row(p, row) : row;
}

int64_t rl_layer_stage_elements(const rl_layer_params *p, int stage) {
  const int64_t rows = stage == RL_LAYER_QKV ? p->batch * rl_layer_context(p) : rl_layer_rows(p);
  return rows * rl_layer_stage_columns(p, stage);
}

int64_t rl_layer_input_elements(const rl_layer_params *p, int input) {
  const int64_t elements[] = {
      [RL_LAYER_X] = rl_layer_rows(p) * p->hidden, [RL_LAYER_NORM1_WEIGHT] = p->hidden,
      [RL_LAYER_NORM1_BIAS] = p->hidden,           [RL_LAYER_NORM2_WEIGHT] = p->hidden,
      [RL_LAYER_NORM2_BIAS] = p->hidden,           [RL_LAYER_QKV_WEIGHT] = 3 * p->hidden * p->hidden,
      [RL_LAYER_O_WEIGHT] = p->hidden * p->hidden, [RL_LAYER_GATE_UP_WEIGHT] = 2 * p->ffn * p->hidden,
      [RL_LAYER_DOWN_WEIGHT] = p->hidden * p->ffn, [RL_LAYER_INITIAL_QKV] = rl_layer_stage_elements(p, RL_LAYER_QKV)};
  return elements[input];
}

/* The elements of an input are uniformly distributed in [center - radius, center + radius), so their variance is radius² / 3. The
 * radius of a weight matrix [outputs][inputs] is √(3 / inputs), which makes the variance 1 / inputs. */
typedef struct range {
  double center, radius;
} range;

static range range_of(const rl_layer_params *p, int input) {
  const double hidden_radius = sqrt(3 / (double)p->hidden), ffn_radius = sqrt(3 / (double)p->ffn);
  switch (input) {
    case RL_LAYER_NORM1_WEIGHT:
    case RL_LAYER_NORM2_WEIGHT: return (range){1, 0.5};
    case RL_LAYER_QKV_WEIGHT:
    case RL_LAYER_O_WEIGHT:
    case RL_LAYER_GATE_UP_WEIGHT: return (range){0, hidden_radius};
    case RL_LAYER_DOWN_WEIGHT: return (range){0, ffn_radius};
    default: return (range){0, 2};
  }
}

void rl_layer_fill_input(const rl_layer_params *p, int input, int64_t start, int64_t count, double *values) {
  const uint64_t key = rl_hash64(rl_hash64((uint64_t)p->seed) + (uint64_t)input);
  const range bounds = range_of(p, input);
  const int dtype = rl_layer_element_dtype(p);
  for (int64_t i = 0; i < count; i++) {
    uint16_t rounded;
    const double uniform = (double)(rl_hash64(key + (uint64_t)(start + i)) >> 11) * 0x1p-52 - 1; /* [-1, 1) */
    rl_dtype_store(dtype, &rounded, 0, bounds.center + bounds.radius * uniform);
    values[i] = rl_dtype_load(dtype, &rounded, 0);
  }
}
