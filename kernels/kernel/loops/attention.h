/* Attention with an online softmax; float_and_double.h defines attention_double and attention_float from this file. The scores of
 * a row are computed in blocks of keys, and the sums so far are scaled down when a block has a new maximum. `d` is an index in a
 * row of head_size elements, and `j` the index of a key in its block. */
static void TYPED(attention_row)(const T *query, const T *keys, const T *values, int64_t key_count, int64_t head_size, T *out) {
  enum { BLOCK_KEYS = 64 };
  const T score_scale = 1 / sqrt((T)head_size);
  T maximum = (T)-INFINITY, total = 0, scores[BLOCK_KEYS];
  for (int64_t d = 0; d < head_size; d++) out[d] = 0;
  for (int64_t first_key = 0; first_key < key_count; first_key += BLOCK_KEYS) {
    const int64_t block_keys = key_count - first_key < BLOCK_KEYS ? key_count - first_key : BLOCK_KEYS;
    const T old_maximum = maximum;
    for (int64_t j = 0; j < block_keys; j++) {
      scores[j] = score_scale * TYPED(rl_dot)(query, keys + (first_key + j) * head_size, head_size);
      if (scores[j] > maximum) maximum = scores[j];
    }
    const T scale = exp(old_maximum - maximum);
    total *= scale;
    for (int64_t d = 0; d < head_size; d++) out[d] *= scale;
    for (int64_t j = 0; j < block_keys; j++) {
      const T weight = exp(scores[j] - maximum), *value = values + (first_key + j) * head_size;
      total += weight;
      for (int64_t d = 0; d < head_size; d++) out[d] += weight * value[d];
    }
  }
  for (int64_t d = 0; d < head_size; d++) out[d] /= total;
}

/* in[0]: the queries of the rows; in[1], in[2]: the keys and values of all heads that these rows attend to. Rows are numbered
 * through the whole batch. */
static void TYPED(attention)(const rl_kernel_shape *shape, const T *const *in, int64_t first_row, int64_t row_count, T *out) {
  const int64_t head_size = shape->size[HEAD_SIZE], sequence = shape->size[SEQUENCE], first_head = kv_head(shape, first_row);
  for (int64_t i = 0; i < row_count; i++) {
    const int64_t head_offset = (kv_head(shape, first_row + i) - first_head) * sequence * head_size;
    const int64_t key_count = shape->size[CAUSAL] ? (first_row + i) % sequence + 1 : sequence;
    const T *query = in[0] + i * head_size, *keys = in[1] + head_offset, *values = in[2] + head_offset;
    TYPED(attention_row)(query, keys, values, key_count, head_size, out + i * head_size);
  }
}
