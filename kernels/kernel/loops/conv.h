/* A convolution and its gradients; float_and_double.h defines conv_double, conv_float and the others from this file. Names: s
 * shape; p, q rows and columns of y; h, w rows and columns of x; c channels; k filter; r, t row and column of a tap; l channel;
 * `base` is the first input row in memory. Inner loops run over channels, which are contiguous. */
static void TYPED(conv)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t p = y_rows(s), q = y_columns(s), c = s->size[CHANNELS], side = s->size[KERNEL], base = conv_first_row(s, first);
  for (int64_t i = 0; i < count * q; i++) {
    const int64_t segment = first + i / q, image = segment / p * s->size[HEIGHT] - base;
    const int64_t top = segment % p * s->size[STRIDE] - s->size[PADDING], left = i % q * s->size[STRIDE] - s->size[PADDING];
    const int64_t first_tap = larger(0, -left), taps = smaller(side, s->size[WIDTH] - left) - first_tap;
    for (int64_t k = 0; k < s->size[FILTERS]; k++) {
      T sum = 0;
      for (int64_t r = larger(0, -top); r < smaller(side, s->size[HEIGHT] - top); r++)
        sum += TYPED(rl_dot)(in[0] + ((image + top + r) * s->size[WIDTH] + left + first_tap) * c,
                             in[1] + ((k * side + r) * side + first_tap) * c, taps * c);
      out[i * s->size[FILTERS] + k] = sum;
    }
  }
}

static void TYPED(conv_dgrad)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t p = y_rows(s), q = y_columns(s), h = s->size[HEIGHT], w = s->size[WIDTH], c = s->size[CHANNELS];
  const int64_t side = s->size[KERNEL], base = conv_dgrad_first_row(s, first);
  for (int64_t i = 0; i < count * w; i++) {
    const int64_t y = (first + i / w) % h, x = i % w, image = (first + i / w) / h * p - base;
    T *to = out + i * c;
    for (int64_t l = 0; l < c; l++) to[l] = 0;
    for (int64_t row = first_covering(s, y); row <= last_covering(s, y, p); row++)
      for (int64_t column = first_covering(s, x); column <= last_covering(s, x, q); column++) {
        const T *gradient = in[0] + ((image + row) * q + column) * s->size[FILTERS];
        const int64_t r = y + s->size[PADDING] - row * s->size[STRIDE], t = x + s->size[PADDING] - column * s->size[STRIDE];
        for (int64_t k = 0; k < s->size[FILTERS]; k++) {
          const T *weights = in[1] + ((k * side + r) * side + t) * c;
          for (int64_t l = 0; l < c; l++) to[l] += gradient[k] * weights[l];
        }
      }
  }
}

static void TYPED(conv_wgrad)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t p = y_rows(s), q = y_columns(s), c = s->size[CHANNELS], side = s->size[KERNEL];
  for (int64_t i = 0; i < count; i++) {
    const int64_t k = (first + i) / (side * side), r = (first + i) / side % side, t = (first + i) % side;
    T *to = out + i * c;
    for (int64_t l = 0; l < c; l++) to[l] = 0;
    for (int64_t row = 0; row < s->size[IMAGES] * p; row++) {
      const int64_t y = row % p * s->size[STRIDE] - s->size[PADDING] + r;
      if (y < 0 || y >= s->size[HEIGHT]) continue;
      for (int64_t column = 0; column < q; column++) {
        const int64_t x = column * s->size[STRIDE] - s->size[PADDING] + t;
        if (x < 0 || x >= s->size[WIDTH]) continue;
        const T gradient = in[1][(row * q + column) * s->size[FILTERS] + k];
        const T *pixel = in[0] + ((row / p * s->size[HEIGHT] + y) * s->size[WIDTH] + x) * c;
        for (int64_t l = 0; l < c; l++) to[l] += gradient * pixel[l];
      }
    }
  }
}
