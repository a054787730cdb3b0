/* Sums of rows; float_and_double.h defines reduction_double and reduction_float from this file. sum_double and sum_float are in
 * reduction.c. */
static void TYPED(reduction)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  (void)first;
  for (int64_t row = 0; row < count; row++) out[row] = TYPED(sum)(in[0] + row * shape->size[RL_COLUMNS], shape->size[RL_COLUMNS]);
}
