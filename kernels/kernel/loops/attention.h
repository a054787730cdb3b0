/* attention in T (in_both_types.h). A row's scores are taken in blocks; what is summed so far is scaled down when a block has a
 * greater one. */
static void IN_T(row)(const T *query, const T *keys, const T *values, int64_t seen, int64_t size, T *out) {
  enum { BLOCK = 64 };
  const T factor = 1 / sqrt((T)size);
  T greatest = (T)-INFINITY, total = 0, weights[BLOCK];
  for (int64_t d = 0; d < size; d++) out[d] = 0;
  for (int64_t first = 0; first < seen; first += BLOCK) {
    const int64_t some = seen - first < BLOCK ? seen - first : BLOCK;
    T before = greatest;
    for (int64_t j = 0; j < some; j++) {
      weights[j] = factor * IN_T(rl_dot)(query, keys + (first + j) * size, size);
      if (weights[j] > greatest) greatest = weights[j];
    }
    const T down = exp(before - greatest);
    total *= down;
    for (int64_t d = 0; d < size; d++) out[d] *= down;
    for (int64_t j = 0; j < some; j++) {
      const T weight = exp(weights[j] - greatest), *value = values + (first + j) * size;
      total += weight;
      for (int64_t d = 0; d < size; d++) out[d] += weight * value[d];
    }
  }
  for (int64_t d = 0; d < size; d++) out[d] /= total;
}

static void IN_T(attention)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t size = s->size[HEAD_SIZE], sequence = s->size[SEQUENCE], base = kv_head(s, first);
  for (int64_t i = 0; i < count; i++) {
    const int64_t head = (kv_head(s, first + i) - base) * sequence * size, row = (first + i) % sequence;
    IN_T(row)(in[0] + i * size, in[1] + head, in[2] + head, s->size[CAUSAL] ? row + 1 : sequence, size, out + i * size);
  }
}
