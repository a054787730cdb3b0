/* A convolution and its gradients; float_and_double.h defines conv_double, conv_float and the functions of the gradients from
 * this file. conv.c has the layouts. in[0] begins at row first_input_row of the first input, whose rows are numbered through all
 * images; image_row is the index in in[0] of the first row of an image. Inner loops run over channels, which are contiguous. */
static void TYPED(conv)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t y_height = y_rows(shape), y_width = y_columns(shape), channels = shape->size[CHANNELS],
                side = shape->size[FILTER_SIDE], first_input_row = conv_first_row(shape, first);
  for (int64_t i = 0; i < count * y_width; i++) {
    const int64_t segment = first + i / y_width, image_row = segment / y_height * shape->size[HEIGHT] - first_input_row;
    const int64_t top = segment % y_height * shape->size[STRIDE] - shape->size[PADDING],
                  left = i % y_width * shape->size[STRIDE] - shape->size[PADDING];
    const int64_t first_tap_column = larger(0, -left), tap_columns = smaller(side, shape->size[WIDTH] - left) - first_tap_column;
    for (int64_t filter = 0; filter < shape->size[FILTERS]; filter++) {
      T sum = 0;
      for (int64_t tap_row = larger(0, -top); tap_row < smaller(side, shape->size[HEIGHT] - top); tap_row++)
        sum += TYPED(rl_dot)(in[0] + ((image_row + top + tap_row) * shape->size[WIDTH] + left + first_tap_column) * channels,
                             in[1] + ((filter * side + tap_row) * side + first_tap_column) * channels, tap_columns * channels);
      out[i * shape->size[FILTERS] + filter] = sum;
    }
  }
}

static void TYPED(conv_dgrad)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t y_height = y_rows(shape), y_width = y_columns(shape), x_height = shape->size[HEIGHT],
                x_width = shape->size[WIDTH], channels = shape->size[CHANNELS];
  const int64_t side = shape->size[FILTER_SIDE], first_input_row = conv_dgrad_first_row(shape, first);
  for (int64_t i = 0; i < count * x_width; i++) {
    const int64_t x_row = (first + i / x_width) % x_height, x_column = i % x_width,
                  image_row = (first + i / x_width) / x_height * y_height - first_input_row;
    T *to = out + i * channels;
    for (int64_t channel = 0; channel < channels; channel++) to[channel] = 0;
    for (int64_t y_row = first_covering(shape, x_row); y_row <= last_covering(shape, x_row, y_height); y_row++)
      for (int64_t y_column = first_covering(shape, x_column); y_column <= last_covering(shape, x_column, y_width); y_column++) {
        const T *gradient = in[0] + ((image_row + y_row) * y_width + y_column) * shape->size[FILTERS];
        const int64_t tap_row = x_row + shape->size[PADDING] - y_row * shape->size[STRIDE],
                      tap_column = x_column + shape->size[PADDING] - y_column * shape->size[STRIDE];
        for (int64_t filter = 0; filter < shape->size[FILTERS]; filter++) {
          const T *weights = in[1] + ((filter * side + tap_row) * side + tap_column) * channels;
          for (int64_t channel = 0; channel < channels; channel++) to[channel] += gradient[filter] * weights[channel];
        }
      }
  }
}

static void TYPED(conv_wgrad)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t y_height = y_rows(shape), y_width = y_columns(shape), channels = shape->size[CHANNELS],
                side = shape->size[FILTER_SIDE];
  for (int64_t i = 0; i < count; i++) {
    const int64_t filter = (first + i) / (side * side), tap_row = (first + i) / side % side, tap_column = (first + i) % side;
    T *to = out + i * channels;
    for (int64_t channel = 0; channel < channels; channel++) to[channel] = 0;
    for (int64_t y_row = 0; y_row < shape->size[IMAGES] * y_height; y_row++) {
      const int64_t x_row = y_row % y_height * shape->size[STRIDE] - shape->size[PADDING] + tap_row;
      if (x_row < 0 || x_row >= shape->size[HEIGHT]) continue;
      for (int64_t y_column = 0; y_column < y_width; y_column++) {
        const int64_t x_column = y_column * shape->size[STRIDE] - shape->size[PADDING] + tap_column;
        if (x_column < 0 || x_column >= shape->size[WIDTH]) continue;
        const T gradient = in[1][(y_row * y_width + y_column) * shape->size[FILTERS] + filter];
        const T *pixel = in[0] + ((y_row / y_height * shape->size[HEIGHT] + x_row) * shape->size[WIDTH] + x_column) * channels;
        for (int64_t channel = 0; channel < channels; channel++) to[channel] += gradient * pixel[channel];
      }
    }
  }
}
