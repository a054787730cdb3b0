/* The sums of a convolution and of its gradients, one line of channels or filters at a time. In T (in_both_types.h). */
static void IN_T(conv)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t p = p_of(s), q = q_of(s), c = s->size[CHANNELS], side = s->size[KERNEL], base = conv_first_row(s, first);
  for (int64_t i = 0; i < count * q; i++) {
    const int64_t piece = first + i / q, image = piece / p * s->size[HEIGHT] - base;
    const int64_t top = piece % p * s->size[STRIDE] - s->size[PADDING], left = i % q * s->size[STRIDE] - s->size[PADDING];
    const int64_t skipped = most(0, -left), kept = least(side, s->size[WIDTH] - left) - skipped;
    for (int64_t k = 0; k < s->size[FILTERS]; k++) {
      T sum = 0;
      for (int64_t r = most(0, -top); r < least(side, s->size[HEIGHT] - top); r++)
        sum += IN_T(rl_dot)(in[0] + ((image + top + r) * s->size[WIDTH] + left + skipped) * c,
                            in[1] + ((k * side + r) * side + skipped) * c, kept * c);
      out[i * s->size[FILTERS] + k] = sum;
    }
  }
}

static void IN_T(conv_dgrad)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t p = p_of(s), q = q_of(s), h = s->size[HEIGHT], w = s->size[WIDTH], c = s->size[CHANNELS];
  const int64_t side = s->size[KERNEL], base = conv_dgrad_first_row(s, first);
  for (int64_t i = 0; i < count * w; i++) {
    const int64_t y = (first + i / w) % h, x = i % w, image = (first + i / w) / h * p - base;
    T *to = out + i * c;
    for (int64_t l = 0; l < c; l++) to[l] = 0;
    for (int64_t row = first_over(s, y); row <= last_over(s, y, p); row++)
      for (int64_t column = first_over(s, x); column <= last_over(s, x, q); column++) {
        const T *gradient = in[0] + ((image + row) * q + column) * s->size[FILTERS];
        const int64_t r = y + s->size[PADDING] - row * s->size[STRIDE], t = x + s->size[PADDING] - column * s->size[STRIDE];
        for (int64_t k = 0; k < s->size[FILTERS]; k++) {
          const T *weights = in[1] + ((k * side + r) * side + t) * c;
          for (int64_t l = 0; l < c; l++) to[l] += gradient[k] * weights[l];
        }
      }
  }
}

static void IN_T(conv_wgrad)(const rl_kernel_shape *s, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t p = p_of(s), q = q_of(s), c = s->size[CHANNELS], side = s->size[KERNEL];
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
