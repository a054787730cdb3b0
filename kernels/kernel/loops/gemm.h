/* A matrix product; float_and_double.h defines product_double and product_float from this file. The inner loop runs along a row
 * of B and is no reduction, so that the compiler vectorises it. */
static void TYPED(product)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t n = s->size[N], k = s->size[K];
  (void)first;
  for (int64_t row = 0; row < count; row++) {
    T *c = out + row * n;
    for (int64_t j = 0; j < n; j++) c[j] = 0;
    for (int64_t l = 0; l < k; l++) {
      const T a = in[0][row * k + l], *b = in[1] + l * n;
      for (int64_t j = 0; j < n; j++) c[j] += a * b[j];
    }
  }
}
