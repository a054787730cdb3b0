/* The operators conv, conv_dgrad and conv_wgrad: a convolution and its two gradients, channels last, without dilation.
 *
 *   x  input   [images][height][width][channels]
 *   w  weights [filters][kernel][kernel][channels]
 *   y  output  [images][y_height][y_width][filters], y_height = (height + 2 padding - kernel) / stride + 1, and likewise
 *              y_width from width
 *
 *   operator     computes                                     inputs   output segment (kernel.h)
 *   conv         y = x ∗ w                                    x, w     a row of y
 *   conv_dgrad   dx, the gradient of x                        dy, w    a row of dx
 *   conv_wgrad   dw, the gradient of w                        x, dy    one tap of one filter
 *
 * dy is the gradient of y. A tap is one of the kernel × kernel positions of a filter. The variants are those of gemm (gemm.c). */
#include "kernel/kernel.h"
#include "kernel/sums.h"

static const char *const variants[] = {"heuristic", "searched", NULL};

enum { IMAGES, HEIGHT, WIDTH, CHANNELS, FILTERS, FILTER_SIDE, STRIDE, PADDING }; /* indices of the shape's sizes */
enum { MAX_SIDE = 1 << 20, MAX_FILTER_SIDE = 1 << 10 };
static const rl_field shape_fields[] = {
    RL_KERNEL_SIZE(IMAGES, "images", RL_KERNEL_ELEMENTS_MAX, "images"),
    RL_KERNEL_SIZE(HEIGHT, "height", MAX_SIDE, "rows of an image"),
    RL_KERNEL_SIZE(WIDTH, "width", MAX_SIDE, "columns of an image"),
    RL_KERNEL_SIZE(CHANNELS, "channels", RL_KERNEL_ELEMENTS_MAX, "channels of x and of the filters"),
    RL_KERNEL_SIZE(FILTERS, "filters", RL_KERNEL_ELEMENTS_MAX, "filters, which are the channels of y"),
    RL_KERNEL_SIZE(FILTER_SIDE, "kernel", MAX_FILTER_SIDE, "rows and columns of a filter"),
    RL_KERNEL_SIZE(STRIDE, "stride", MAX_FILTER_SIDE, "pixels by which a filter moves from one position to the next"),
    RL_KERNEL_COUNT(PADDING, "padding", MAX_FILTER_SIDE - 1, "zeros around an image on each side; fewer than kernel"),
    {0}};

/* --- sizes and windows ------------------------------------------------------------------------------------------------- */

/* Returns the number of positions of a filter along an axis of x with `side` pixels. */
static int64_t positions(const rl_kernel_shape *shape, int64_t side) {
  return (side + 2 * shape->size[PADDING] - shape->size[FILTER_SIDE]) / shape->size[STRIDE] + 1;
}

static int64_t y_rows(const rl_kernel_shape *shape) { return positions(shape, shape->size[HEIGHT]); }
static int64_t y_columns(const rl_kernel_shape *shape) { return positions(shape, shape->size[WIDTH]); }

static int64_t saturating_product(int64_t a, int64_t b, int64_t c, int64_t d) {
  return rl_kernel_saturating_mul(rl_kernel_saturating_mul(rl_kernel_saturating_mul(a, b), c), d);
}
static int64_t x_elements(const rl_kernel_shape *shape) {
  return saturating_product(shape->size[IMAGES], shape->size[HEIGHT], shape->size[WIDTH], shape->size[CHANNELS]);
}
static int64_t w_elements(const rl_kernel_shape *shape) {
  return saturating_product(shape->size[FILTERS], shape->size[FILTER_SIDE], shape->size[FILTER_SIDE], shape->size[CHANNELS]);
}
static int64_t y_elements(const rl_kernel_shape *shape) {
  return saturating_product(shape->size[IMAGES], y_rows(shape), y_columns(shape), shape->size[FILTERS]);
}

static int check_padding_and_kernel(const rl_kernel_shape *shape, rl_error *err) {
  if (shape->size[PADDING] >= shape->size[FILTER_SIDE])
    return rl_fail_at(err, "/shape/padding", "padding must be smaller than kernel");
  if (shape->size[HEIGHT] + 2 * shape->size[PADDING] < shape->size[FILTER_SIDE] ||
      shape->size[WIDTH] + 2 * shape->size[PADDING] < shape->size[FILTER_SIDE])
    return rl_fail_at(err, "/shape/kernel", "kernel must not be larger than a padded image");
  return 0;
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* first_covering and last_covering return the first and the last output position along an axis at which the filter covers an
 * input pixel. If the filter never covers the pixel, the last position is smaller than the first. count: number of output
 * positions. */
static int64_t first_covering(const rl_kernel_shape *shape, int64_t pixel) {
  /* Filters that begin at this padded coordinate, or before it, end before the pixel. */
  const int64_t last_uncovering_start = pixel + shape->size[PADDING] - shape->size[FILTER_SIDE];
  return last_uncovering_start < 0 ? 0 : last_uncovering_start / shape->size[STRIDE] + 1;
}
static int64_t last_covering(const rl_kernel_shape *shape, int64_t pixel, int64_t count) {
  return smaller((pixel + shape->size[PADDING]) / shape->size[STRIDE], count - 1);
}

/* conv: a segment is a row of y. The window of some segments consists of the rows of x that they need. */
static int64_t conv_segment_count(const rl_kernel_shape *shape) { return shape->size[IMAGES] * y_rows(shape); }
static int64_t conv_first_row(const rl_kernel_shape *shape, int64_t segment) {
  const int64_t y_height = y_rows(shape);
  return segment / y_height * shape->size[HEIGHT] + larger(0, segment % y_height * shape->size[STRIDE] - shape->size[PADDING]);
}
static int64_t conv_end_row(const rl_kernel_shape *shape, int64_t segment) {
  const int64_t y_height = y_rows(shape);
  return segment / y_height * shape->size[HEIGHT] +
         smaller(shape->size[HEIGHT], segment % y_height * shape->size[STRIDE] - shape->size[PADDING] + shape->size[FILTER_SIDE]);
}
static int64_t conv_input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? x_elements(shape) : w_elements(shape);
}
static void conv_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                        int64_t *elements) {
  const int64_t row = shape->size[WIDTH] * shape->size[CHANNELS], from = conv_first_row(shape, first),
                to = conv_end_row(shape, first + count - 1);
  *start = input == 0 ? from * row : 0;
  *elements = input == 0 ? (to - from) * row : w_elements(shape);
}

/* conv_dgrad: a segment is a row of dx. The window of some segments consists of the rows of dy that they need. It has at least
 * one row, because a window must not be empty. */
static int64_t conv_dgrad_segment_count(const rl_kernel_shape *shape) { return shape->size[IMAGES] * shape->size[HEIGHT]; }
static int64_t conv_dgrad_first_row(const rl_kernel_shape *shape, int64_t segment) {
  const int64_t y_height = y_rows(shape), height = shape->size[HEIGHT];
  return segment / height * y_height + smaller(first_covering(shape, segment % height), y_height - 1);
}
static int64_t conv_dgrad_end_row(const rl_kernel_shape *shape, int64_t segment) {
  const int64_t y_height = y_rows(shape), height = shape->size[HEIGHT];
  return segment / height * y_height + last_covering(shape, segment % height, y_height) + 1;
}
static int64_t conv_dgrad_input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? y_elements(shape) : w_elements(shape);
}
static void conv_dgrad_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                              int64_t *elements) {
  const int64_t row = y_columns(shape) * shape->size[FILTERS], from = conv_dgrad_first_row(shape, first);
  const int64_t to = larger(from + 1, conv_dgrad_end_row(shape, first + count - 1));
  *start = input == 0 ? from * row : 0;
  *elements = input == 0 ? (to - from) * row : w_elements(shape);
}

/* conv_wgrad: a segment is a tap of a filter. Each segment needs all of x and dy. */
static int64_t conv_wgrad_segment_count(const rl_kernel_shape *shape) {
  return shape->size[FILTERS] * shape->size[FILTER_SIDE] * shape->size[FILTER_SIDE];
}
static int64_t conv_wgrad_input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? x_elements(shape) : y_elements(shape);
}
static void conv_wgrad_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                              int64_t *elements) {
  (void)first, (void)count;
  *start = 0;
  *elements = conv_wgrad_input_elements(shape, input);
}

/* Returns the number of pixels along an axis of x that some filter position covers. With stride > kernel, positions leave gaps;
 * with any stride > 1, the last pixels may lie behind the last position. */
static int64_t covered_pixels(const rl_kernel_shape *shape, int64_t side) {
  const int64_t count = positions(shape, side);
  int64_t covered = 0;
  for (int64_t pixel = 0; pixel < side; pixel++) covered += first_covering(shape, pixel) <= last_covering(shape, pixel, count);
  return covered;
}

/* Returns the number of taps along an axis of a filter that are inside the image at some position. */
static int64_t used_taps(const rl_kernel_shape *shape, int64_t side) {
  const int64_t stride = shape->size[STRIDE], padding = shape->size[PADDING];
  int64_t used = 0;
  for (int64_t tap = 0; tap < shape->size[FILTER_SIDE]; tap++) {
    const int64_t first_inside = tap < padding ? (padding - tap + stride - 1) / stride : 0; /* first position */
    used += first_inside < positions(shape, side) && first_inside * stride - padding + tap < side;
  }
  return used;
}

static int64_t compulsory_x(const rl_kernel_shape *shape) {
  return shape->size[IMAGES] * covered_pixels(shape, shape->size[HEIGHT]) * covered_pixels(shape, shape->size[WIDTH]) *
         shape->size[CHANNELS];
}
static int64_t compulsory_w(const rl_kernel_shape *shape) {
  return shape->size[FILTERS] * used_taps(shape, shape->size[HEIGHT]) * used_taps(shape, shape->size[WIDTH]) *
         shape->size[CHANNELS];
}
static int64_t conv_compulsory_elements(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? compulsory_x(shape) : compulsory_w(shape);
}
static int64_t conv_dgrad_compulsory_elements(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? y_elements(shape) : compulsory_w(shape);
}
static int64_t conv_wgrad_compulsory_elements(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? compulsory_x(shape) : y_elements(shape);
}

#define RL_LOOPS_HEADER "kernel/loops/conv.h"
#include "kernel/float_and_double.h"

/* --- the operators ------------------------------------------------------------------------------------------------------ */

/* Returns the number of taps that are inside the image along one axis, summed over all output positions. */
static double taps_inside(const rl_kernel_shape *shape, int64_t side) {
  double taps = 0;
  for (int64_t position = 0; position < positions(shape, side); position++) {
    const int64_t start = position * shape->size[STRIDE] - shape->size[PADDING];
    taps += (double)(smaller(side, start + shape->size[FILTER_SIDE]) - larger(0, start));
  }
  return taps;
}

static int check_gpu(const rl_kernel_params *params, rl_error *err) {
  if (params->dtype != RL_DTYPE_FP64) return 0;
  return rl_fail_at(err, "/dtype", "a convolution on a GPU is computed by cuDNN, which supports fp32, tf32, fp16 and bf16");
}

/* Returns two operations (multiply, add) for each tap of each filter at each position, without the taps that are in the
 * padding. */
static double operations(const rl_kernel_shape *shape) {
  return 2.0 * (double)shape->size[IMAGES] * taps_inside(shape, shape->size[HEIGHT]) * taps_inside(shape, shape->size[WIDTH]) *
         (double)shape->size[CHANNELS] * (double)shape->size[FILTERS];
}

/* Return upper bounds of the number of products that are summed for an output element. */
static int64_t conv_max_products(const rl_kernel_shape *shape) {
  return shape->size[FILTER_SIDE] * shape->size[FILTER_SIDE] * shape->size[CHANNELS];
}
static int64_t conv_dgrad_max_products(const rl_kernel_shape *shape) {
  const int64_t taps = (shape->size[FILTER_SIDE] + shape->size[STRIDE] - 1) / shape->size[STRIDE];
  return taps * taps * shape->size[FILTERS];
}
static int64_t conv_wgrad_max_products(const rl_kernel_shape *shape) {
  return saturating_product(shape->size[IMAGES], y_rows(shape), y_columns(shape), 1);
}

/* The tolerance is rl_sum_ulps times this factor. cuDNN transforms inputs and splits sums, which adds rounding errors: in fp32,
 * sums of 3136 products had errors of up to 24 ulps, and rl_sum_ulps allows 29. Four times that bound is still far below the
 * error of TF32 arithmetic. */
enum { TOLERANCE_FACTOR = 4 };

#define OPERATOR(NAME, SUMMARY, OUTPUT_ELEMENTS)                                                                               \
  static int NAME##_check(const rl_kernel_shape *shape, rl_error *err) {                                                       \
    if (check_padding_and_kernel(shape, err) < 0) return -1;                                                                   \
    return NAME##_max_products(shape) <= RL_SUM_LENGTH_MAX                                                                     \
               ? 0                                                                                                             \
               : rl_fail_at(err, "/shape", "a sum may have at most %d products", RL_SUM_LENGTH_MAX);                           \
  }                                                                                                                            \
  static double NAME##_tolerance_ulps(const rl_kernel_shape *shape) {                                                          \
    return TOLERANCE_FACTOR * rl_sum_ulps(NAME##_max_products(shape));                                                         \
  }                                                                                                                            \
  static double NAME##_truncation(const rl_kernel_shape *shape) { return rl_sum_truncation_ulps(NAME##_max_products(shape)); } \
  static double NAME##_output_scale(const rl_kernel_shape *shape) {                                                            \
    return rl_sum_scale(1) * sqrt(operations(shape) / 2 / (double)OUTPUT_ELEMENTS(shape));                                     \
  }                                                                                                                            \
  static void NAME##_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_##NAME); }                                 \
  const rl_kernel_operator rl_kernel_##NAME = {.workload = RL_KERNEL_WORKLOAD(NAME, SUMMARY),                                  \
                                               .shape_fields = shape_fields,                                                   \
                                               .shape_check = NAME##_check,                                                    \
                                               .dtypes = RL_KERNEL_COMMON_DTYPES | 1u << RL_DTYPE_TF32,                        \
                                               .variants = variants,                                                           \
                                               .gpu_only_variants = 1u << 1,                                                   \
                                               .gpu_check = check_gpu,                                                         \
                                               .input_count = 2,                                                               \
                                               .input_elements = NAME##_input_elements,                                        \
                                               .output_elements = OUTPUT_ELEMENTS,                                             \
                                               .compulsory_elements = NAME##_compulsory_elements,                              \
                                               .output_segment_count = NAME##_segment_count,                                   \
                                               .input_window = NAME##_window,                                                  \
                                               .operations = operations,                                                       \
                                               .tolerance_ulps = NAME##_tolerance_ulps,                                        \
                                               .truncation_ulps = NAME##_truncation,                                           \
                                               .output_scale = NAME##_output_scale,                                            \
                                               .reference = NAME##_double,                                                     \
                                               .compute_float = NAME##_float,                                                  \
                                               .compute_double = NAME##_double};
OPERATOR(conv, "y = x * w, channels last", y_elements)
OPERATOR(conv_dgrad, "the gradient of x from that of y, channels last", x_elements)
OPERATOR(conv_wgrad, "the gradient of w from that of y, channels last", w_elements)
