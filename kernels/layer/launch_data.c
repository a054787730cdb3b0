/* Declares the data that each launch of the layer reads and writes. The names of the launches are those of all engines.
 * Workspaces are not data: launches that run at the same time can get separate ones. */
#include "layer/layer.h"

#include <string.h>

#include "kernel/dtype.h"
#include "layer/tensors.h"

/* The data of a layer, as bits of a set. */
enum {
  X = 1 << 0,
  NORM1 = 1 << 1, /* weight and bias */
  NORM2 = 1 << 2,
  Q_WEIGHT = 1 << 3,
  K_WEIGHT = 1 << 4,
  V_WEIGHT = 1 << 5,
  O_WEIGHT = 1 << 6,
  GATE_WEIGHT = 1 << 7,
  UP_WEIGHT = 1 << 8,
  DOWN_WEIGHT = 1 << 9,
  CACHE = 1 << 10, /* k and v of the cached tokens */
  NORMED = 1 << 11,
  Q = 1 << 12, /* of the new tokens, like K and V */
  K = 1 << 13,
  V = 1 << 14,
  ATTENTION = 1 << 15,
  PROJECTED = 1 << 16, /* a product before the residual is added */
  HIDDEN = 1 << 17,
  GATE = 1 << 18,
  UP = 1 << 19,
  GATED = 1 << 20,
  OUTPUT = 1 << 21,
  QKV_WEIGHT = Q_WEIGHT | K_WEIGHT | V_WEIGHT,
  GATE_UP_WEIGHT = GATE_WEIGHT | UP_WEIGHT
};

static const struct {
  const char *launch;
  uint32_t reads, writes;
} launches[] = {{"norm1", X | NORM1, NORMED},
                {"q", NORMED | Q_WEIGHT, Q},
                {"k", NORMED | K_WEIGHT, K},
                {"v", NORMED | V_WEIGHT, V},
                {"qkv", NORMED | QKV_WEIGHT, Q | K | V},
                {"rope", Q | K, Q | K},
                {"qkv_rope", NORMED | QKV_WEIGHT, Q | K | V},
                {"norm1_qkv_rope", X | NORM1 | QKV_WEIGHT, Q | K | V},
                {"attention", Q | K | V | CACHE, ATTENTION},
                {"o", ATTENTION | O_WEIGHT, PROJECTED},
                {"residual1", X | PROJECTED, HIDDEN},
                {"o_residual", X | ATTENTION | O_WEIGHT, HIDDEN},
                {"norm2", HIDDEN | NORM2, NORMED},
                {"gate", NORMED | GATE_WEIGHT, GATE},
                {"up", NORMED | UP_WEIGHT, UP},
                {"gate_up", NORMED | GATE_UP_WEIGHT, GATE | UP},
                {"gate_beside_up", NORMED | GATE_UP_WEIGHT, GATE | UP},
                {"silu_mul", GATE | UP, GATED},
                {"gate_up_silu", NORMED | GATE_UP_WEIGHT, GATED},
                {"norm2_gate_up_silu", HIDDEN | NORM2 | GATE_UP_WEIGHT, GATED},
                {"down", GATED | DOWN_WEIGHT, PROJECTED},
                {"residual2", HIDDEN | PROJECTED, OUTPUT},
                {"down_residual", HIDDEN | GATED | DOWN_WEIGHT, OUTPUT}};

/* Returns the number of elements of all data in the set. */
static int64_t elements_of(const rl_layer_params *p, uint32_t set) {
  const struct {
    uint32_t set;
    int64_t elements; /* of each member of the set */
  } sizes[] = {{X | NORMED | Q | K | V | ATTENTION | PROJECTED | HIDDEN | OUTPUT, rl_layer_input_elements(p, RL_LAYER_X)},
               {GATE | UP | GATED, rl_layer_stage_elements(p, RL_LAYER_GATED)},
               {NORM1 | NORM2, 2 * rl_layer_input_elements(p, RL_LAYER_NORM1_WEIGHT)},
               {QKV_WEIGHT | O_WEIGHT, rl_layer_input_elements(p, RL_LAYER_O_WEIGHT)},
               {GATE_UP_WEIGHT | DOWN_WEIGHT, rl_layer_input_elements(p, RL_LAYER_DOWN_WEIGHT)},
               {CACHE, 2 * p->batch * p->cached_tokens * p->hidden}};
  int64_t elements = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    elements += __builtin_popcount(set & sizes[i].set) * sizes[i].elements;
  return elements;
}

bool rl_layer_launch_data(const void *params, const char *launch, rl_launch_data *data) {
  const rl_layer_params *p = params;
  for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
    if (strcmp(launches[i].launch, launch) != 0) continue;
    const int64_t elements = elements_of(p, launches[i].reads) + elements_of(p, launches[i].writes);
    *data = (rl_launch_data){launches[i].reads, launches[i].writes,
                             (double)elements * (double)rl_dtype_size(rl_layer_element_dtype(p))};
    return true;
  }
  return false;
}
