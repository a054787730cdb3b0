/* rmsnorm and layernorm in T, their sums in SUM (in_both_types.h). */
static void IN_T(rmsnorm)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t columns = shape->size[RL_COLUMNS];
  const T *w = in[1];
  (void)first;
  for (int64_t row = 0; row < count; row++) {
    const T *x = in[0] + row * columns;
    T *y = out + row * columns;
    SUM squares = 0;
    for (int64_t i = 0; i < columns; i++) squares += (SUM)x[i] * (SUM)x[i];
    const T scale = (T)(1 / sqrt((double)(squares / (SUM)columns) + RL_NORM_EPSILON));
    for (int64_t i = 0; i < columns; i++) y[i] = x[i] * scale * w[i];
  }
}

static void IN_T(layernorm)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t columns = shape->size[RL_COLUMNS];
  const T *w = in[1], *b = in[2];
  (void)first;
  for (int64_t row = 0; row < count; row++) {
    const T *x = in[0] + row * columns;
    T *y = out + row * columns;
    SUM sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; i++) sum += (SUM)x[i];
    const SUM mean = sum / (SUM)columns;
    for (int64_t i = 0; i < columns; i++) squares += ((SUM)x[i] - mean) * ((SUM)x[i] - mean);
    const T scale = (T)(1 / sqrt((double)(squares / (SUM)columns) + RL_NORM_EPSILON)), shift = (T)mean;
    for (int64_t i = 0; i < columns; i++) y[i] = (x[i] - shift) * scale * w[i] + b[i];
  }
}
