/* Computes the softmax of each row. float_and_double.h includes this file twice to define softmax_double and softmax_float. */
static void TYPED(softmax)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t columns = shape->size[RL_COLUMNS];
  (void)first;
  for (int64_t row = 0; row < count; row++) {
    const T *x = in[0] + row * columns;
    T *y = out + row * columns, maximum = x[0];
    ACCUMULATOR sum = 0;
    for (int64_t i = 1; i < columns; i++) maximum = x[i] > maximum ? x[i] : maximum;
    for (int64_t i = 0; i < columns; i++) sum += y[i] = exp(x[i] - maximum);
    const T scale = (T)(1 / sum);
    for (int64_t i = 0; i < columns; i++) y[i] *= scale;
  }
}
