/* attention (float_and_double.h), with an online softmax: the scores of a row are computed in blocks of keys, and the sums so far
 * are scaled down when a block has a new maximum. d: index in a row of head_size elements, j: index of a key in its block. */
static void TYPED(row)(const T *query, const T *keys, const T *values, int64_t key_count, int64_t size, T *out) {
  enum { BLOCK = 64 };
  const T score_scale = 1 / sqrt((T)size);
  T maximum = (T)-INFINITY, total = 0, weights[BLOCK];
  for (int64_t d = 0; d < size; d++) out[d] = 0;
  for (int64_t first = 0; first < key_count; first += BLOCK) {
    const int64_t block_size = key_count - first < BLOCK ? key_count - first : BLOCK;
    const T old_maximum = maximum;
    for (int64_t j = 0; j < block_size; j++) {
      weights[j] = score_scale * TYPED(rl_dot)(query, keys + (first + j) * size, size);
      if (weights[j] > maximum) maximum = weights[j];
    }
    const T scale = exp(old_maximum - maximum);
    total *= scale;
    for (int64_t d = 0; d < size; d++) out[d] *= scale;
    for (int64_t j = 0; j < block_size; j++) {
      const T weight = exp(weights[j] - maximum), *value = values + (first + j) * size;
      total += weight;
      for (int64_t d = 0; d < size; d++) out[d] += weight * value[d];
    }
  }
  for (int64_t d = 0; d < size; d++) out[d] /= total;
}

static void TYPED(attention)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t size = s->size[HEAD_SIZE], sequence = s->size[SEQUENCE], base = kv_head(s, first);
  for (int64_t i = 0; i < count; i++) {
    const int64_t head = (kv_head(s, first + i) - base) * sequence * size, row = (first + i) % sequence;
    TYPED(row)(in[0] + i * size, in[1] + head, in[2] + head, s->size[CAUSAL] ? row + 1 : sequence, size, out + i * size);
  }
}
