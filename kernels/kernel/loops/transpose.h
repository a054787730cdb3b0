/* The transpose of a matrix; float_and_double.h defines transpose_double and transpose_float from this file. */
static void TYPED(transpose)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t rows = shape->size[RL_ROWS], columns = shape->size[RL_COLUMNS];
  for (int64_t row = 0; row < rows; row++)
    for (int64_t i = 0; i < count; i++) out[i * rows + row] = in[0][row * columns + first + i];
}
