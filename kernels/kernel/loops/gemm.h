/* A matrix product; float_and_double.h defines gemm_double and gemm_float from this file. The inner loop runs along a row
 * of B and is no reduction, so that the compiler vectorises it. */
static void TYPED(gemm)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t n = shape->size[N], k = shape->size[K];
  (void)first;
  for (int64_t row = 0; row < count; row++) {
    T *c = out + row * n;
    for (int64_t j = 0; j < n; j++) c[j] = 0;
    for (int64_t i = 0; i < k; i++) {
      const T a = in[0][row * k + i], *b = in[1] + i * n;
      for (int64_t j = 0; j < n; j++) c[j] += a * b[j];
    }
  }
}
