/* rmsnorm and layernorm of rows; float_and_double.h defines both for double and for float from this file. */
static void TYPED(rmsnorm)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t columns = shape->size[RL_COLUMNS];
  const T *w = in[1];
  (void)first;
  for (int64_t row = 0; row < count; row++) {
    const T *x = in[0] + row * columns;
    T *y = out + row * columns;
    ACCUMULATOR squares = 0;
    for (int64_t i = 0; i < columns; i++) squares += (ACCUMULATOR)x[i] * (ACCUMULATOR)x[i];
    const T scale = (T)(1 / sqrt((double)(squares / (ACCUMULATOR)columns) + RL_NORM_EPSILON));
    for (int64_t i = 0; i < columns; i++) y[i] = x[i] * scale * w[i];
  }
}

static void TYPED(layernorm)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t columns = shape->size[RL_COLUMNS];
  const T *w = in[1], *b = in[2];
  (void)first;
  for (int64_t row = 0; row < count; row++) {
    const T *x = in[0] + row * columns;
    T *y = out + row * columns;
    ACCUMULATOR sum = 0, squared_deviations = 0;
    for (int64_t i = 0; i < columns; i++) sum += (ACCUMULATOR)x[i];
    const ACCUMULATOR mean = sum / (ACCUMULATOR)columns;
    for (int64_t i = 0; i < columns; i++) squared_deviations += ((ACCUMULATOR)x[i] - mean) * ((ACCUMULATOR)x[i] - mean);
    const T scale = (T)(1 / sqrt((double)(squared_deviations / (ACCUMULATOR)columns) + RL_NORM_EPSILON)), shift = (T)mean;
    for (int64_t i = 0; i < columns; i++) y[i] = (x[i] - shift) * scale * w[i] + b[i];
  }
}
