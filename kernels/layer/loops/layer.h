/* The layer's operations on one row; float_and_double.h defines each for double and for float from this file. */

/* Computes y = layernorm(x) of one row. y may be x. */
static inline void TYPED(norm_row)(const T *x, const T *weight, const T *bias, int64_t columns, T *y) {
  ACCUMULATOR sum = 0, squares = 0;
  for (int64_t i = 0; i < columns; i++) sum += (ACCUMULATOR)x[i];
  const ACCUMULATOR mean = sum / (ACCUMULATOR)columns;
  for (int64_t i = 0; i < columns; i++) squares += ((ACCUMULATOR)x[i] - mean) * ((ACCUMULATOR)x[i] - mean);
  const T scale = (T)(1 / sqrt((double)(squares / (ACCUMULATOR)columns) + RL_NORM_EPSILON)), shift = (T)mean;
  for (int64_t i = 0; i < columns; i++) y[i] = (x[i] - shift) * scale * weight[i] + bias[i];
}

/* Rotates all heads of a row in place. rotations: cosine and sine of each pair of a head at the row's position. */
static inline void TYPED(rope_row)(T *row, int64_t heads, int64_t head_size, const T *rotations) {
  const int64_t half = head_size / 2;
  for (int64_t head = 0; head < heads; head++)
    for (int64_t pair = 0; pair < half; pair++) {
      T *first = row + head * head_size + pair, x = first[0], y = first[half];
      first[0] = x * rotations[2 * pair] - y * rotations[2 * pair + 1];
      first[half] = y * rotations[2 * pair] + x * rotations[2 * pair + 1];
    }
}

/* Computes the attention of one head of one row. keys, values: the head's part of row 0; rows are `stride` elements apart.
 * weights[key_count]: temporary memory. */
static inline void TYPED(attention_head)(const T *query, const T *keys, const T *values, int64_t stride, int64_t key_count,
                                         int64_t head_size, T *weights, T *out) {
  const T score_scale = 1 / sqrt((T)head_size);
  T maximum = (T)-INFINITY, total = 0;
  for (int64_t key = 0; key < key_count; key++) {
    weights[key] = score_scale * TYPED(rl_dot)(query, keys + key * stride, head_size);
    if (weights[key] > maximum) maximum = weights[key];
  }
  for (int64_t d = 0; d < head_size; d++) out[d] = 0;
  for (int64_t key = 0; key < key_count; key++) {
    const T weight = exp(weights[key] - maximum), *value = values + key * stride;
    total += weight;
    for (int64_t d = 0; d < head_size; d++) out[d] += weight * value[d];
  }
  for (int64_t d = 0; d < head_size; d++) out[d] /= total;
}

/* Returns silu(gate) · up. */
static inline T TYPED(gated)(T gate, T up) { return gate / (1 + exp(-gate)) * up; }
