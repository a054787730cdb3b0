/* A convolution and its gradients, channels last and without dilation: x is images×height×width×channels, the weights are
 * filters×kernel×kernel×channels, y is images×p×q×filters with p = (height + 2 padding - kernel) / stride + 1 and q likewise.
 *   conv        y = x ∗ w       from x, w       a piece is a row of y
 *   conv_dgrad  dx = dy ∗ wᵀ    from dy, w      a piece is a row of dx
 *   conv_wgrad  dw = xᵀ ∗ dy    from x, dy      a piece is one tap of one filter
 * Variants as those of gemm. */
#include "kernel/kernel.h"
#include "kernel/sums.h"

static const char *const variants[] = {"heuristic", "searched", NULL};

enum { IMAGES, HEIGHT, WIDTH, CHANNELS, FILTERS, KERNEL, STRIDE, PADDING };
enum { SIDE = 1 << 20, KERNEL_MAX = 1 << 10 };
static const rl_field sizes[] = {
    RL_KERNEL_SIZE(IMAGES, "images", RL_KERNEL_ELEMENTS_MAX, "images"),
    RL_KERNEL_SIZE(HEIGHT, "height", SIDE, "rows of an image"),
    RL_KERNEL_SIZE(WIDTH, "width", SIDE, "columns of an image"),
    RL_KERNEL_SIZE(CHANNELS, "channels", RL_KERNEL_ELEMENTS_MAX, "numbers of a pixel of x"),
    RL_KERNEL_SIZE(FILTERS, "filters", RL_KERNEL_ELEMENTS_MAX, "numbers of a pixel of y"),
    RL_KERNEL_SIZE(KERNEL, "kernel", KERNEL_MAX, "rows and columns of a filter"),
    RL_KERNEL_SIZE(STRIDE, "stride", KERNEL_MAX, "pixels of x from one of y to the next"),
    RL_KERNEL_COUNT(PADDING, "padding", KERNEL_MAX - 1, "zeros around an image on each side; fewer than kernel"),
    {0}};

/* --- what is where ----------------------------------------------------------------------------------------------------- */

static int64_t positions(const rl_kernel_shape *s, int64_t side) {
  return (side + 2 * s->size[PADDING] - s->size[KERNEL]) / s->size[STRIDE] + 1;
}
static int64_t p_of(const rl_kernel_shape *s) { return positions(s, s->size[HEIGHT]); }
static int64_t q_of(const rl_kernel_shape *s) { return positions(s, s->size[WIDTH]); }

static int64_t product(int64_t a, int64_t b, int64_t c, int64_t d) {
  return rl_kernel_times(rl_kernel_times(rl_kernel_times(a, b), c), d);
}
static int64_t x_elements(const rl_kernel_shape *s) {
  return product(s->size[IMAGES], s->size[HEIGHT], s->size[WIDTH], s->size[CHANNELS]);
}
static int64_t w_elements(const rl_kernel_shape *s) {
  return product(s->size[FILTERS], s->size[KERNEL], s->size[KERNEL], s->size[CHANNELS]);
}
static int64_t y_elements(const rl_kernel_shape *s) { return product(s->size[IMAGES], p_of(s), q_of(s), s->size[FILTERS]); }

static int filters_meet_images(const rl_kernel_shape *s, rl_error *err) {
  if (s->size[PADDING] >= s->size[KERNEL]) return rl_fail_at(err, "/shape/padding", "padding must be smaller than kernel");
  if (s->size[HEIGHT] + 2 * s->size[PADDING] < s->size[KERNEL] || s->size[WIDTH] + 2 * s->size[PADDING] < s->size[KERNEL])
    return rl_fail_at(err, "/shape/kernel", "kernel must not be larger than a padded image");
  return 0;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The first and the last position along an axis whose filters reach a pixel; none: last < first. */
static int64_t first_over(const rl_kernel_shape *s, int64_t pixel) {
  const int64_t beyond = pixel + s->size[PADDING] - s->size[KERNEL]; /* a filter that begins there ends before the pixel */
  return beyond < 0 ? 0 : beyond / s->size[STRIDE] + 1;
}
static int64_t last_over(const rl_kernel_shape *s, int64_t pixel, int64_t count) {
  return least((pixel + s->size[PADDING]) / s->size[STRIDE], count - 1);
}

/* Rows of y, and what of x they are made from. */
static int64_t conv_pieces(const rl_kernel_shape *s) { return s->size[IMAGES] * p_of(s); }
static int64_t conv_first_row(const rl_kernel_shape *s, int64_t piece) {
  const int64_t p = p_of(s);
  return piece / p * s->size[HEIGHT] + most(0, piece % p * s->size[STRIDE] - s->size[PADDING]);
}
static int64_t conv_end_row(const rl_kernel_shape *s, int64_t piece) {
  const int64_t p = p_of(s);
  return piece / p * s->size[HEIGHT] + least(s->size[HEIGHT], piece % p * s->size[STRIDE] - s->size[PADDING] + s->size[KERNEL]);
}
static int64_t conv_inputs(const rl_kernel_shape *s, uint32_t input) { return input == 0 ? x_elements(s) : w_elements(s); }
static void conv_window(const rl_kernel_shape *s, uint32_t input, int64_t first, int64_t count, int64_t *start,
                        int64_t *elements) {
  const int64_t row = s->size[WIDTH] * s->size[CHANNELS], from = conv_first_row(s, first),
                to = conv_end_row(s, first + count - 1);
  *start = input == 0 ? from * row : 0;
  *elements = input == 0 ? (to - from) * row : w_elements(s);
}

/* Rows of dx, and what of dy they are made from; at least one row, so that a window is never empty. */
static int64_t conv_dgrad_pieces(const rl_kernel_shape *s) { return s->size[IMAGES] * s->size[HEIGHT]; }
static int64_t conv_dgrad_first_row(const rl_kernel_shape *s, int64_t piece) {
  const int64_t p = p_of(s), h = s->size[HEIGHT];
  return piece / h * p + least(first_over(s, piece % h), p - 1);
}
static int64_t conv_dgrad_end_row(const rl_kernel_shape *s, int64_t piece) {
  const int64_t p = p_of(s), h = s->size[HEIGHT];
  return piece / h * p + last_over(s, piece % h, p) + 1;
}
static int64_t conv_dgrad_inputs(const rl_kernel_shape *s, uint32_t input) { return input == 0 ? y_elements(s) : w_elements(s); }
static void conv_dgrad_window(const rl_kernel_shape *s, uint32_t input, int64_t first, int64_t count, int64_t *start,
                              int64_t *elements) {
  const int64_t row = q_of(s) * s->size[FILTERS], from = conv_dgrad_first_row(s, first);
  const int64_t to = most(from + 1, conv_dgrad_end_row(s, first + count - 1));
  *start = input == 0 ? from * row : 0;
  *elements = input == 0 ? (to - from) * row : w_elements(s);
}

/* Taps of filters; each is made from all of x and dy. */
static int64_t conv_wgrad_pieces(const rl_kernel_shape *s) { return s->size[FILTERS] * s->size[KERNEL] * s->size[KERNEL]; }
static int64_t conv_wgrad_inputs(const rl_kernel_shape *s, uint32_t input) { return input == 0 ? x_elements(s) : y_elements(s); }
static void conv_wgrad_window(const rl_kernel_shape *s, uint32_t input, int64_t first, int64_t count, int64_t *start,
                              int64_t *elements) {
  (void)first, (void)count;
  *start = 0;
  *elements = conv_wgrad_inputs(s, input);
}

#define LOOPS "kernel/loops/conv.h"
#include "kernel/in_both_types.h"

/* --- the families ------------------------------------------------------------------------------------------------------ */

/* Taps that meet an image along one axis, from all positions. */
static double taps_inside(const rl_kernel_shape *s, int64_t side) {
  double taps = 0;
  for (int64_t at = 0; at < positions(s, side); at++) {
    const int64_t start = at * s->size[STRIDE] - s->size[PADDING];
    taps += (double)(least(side, start + s->size[KERNEL]) - most(0, start));
  }
  return taps;
}

/* A multiply-add for each pair of a filter's tap and a pixel that it meets: zeros around images cost nothing. */
static double operations(const rl_kernel_shape *s) {
  return 2.0 * (double)s->size[IMAGES] * taps_inside(s, s->size[HEIGHT]) * taps_inside(s, s->size[WIDTH]) *
         (double)s->size[CHANNELS] * (double)s->size[FILTERS];
}

/* Products in the longest sums, at most. */
static int64_t conv_length(const rl_kernel_shape *s) { return s->size[KERNEL] * s->size[KERNEL] * s->size[CHANNELS]; }
static int64_t conv_dgrad_length(const rl_kernel_shape *s) {
  const int64_t reached = (s->size[KERNEL] + s->size[STRIDE] - 1) / s->size[STRIDE];
  return reached * reached * s->size[FILTERS];
}
static int64_t conv_wgrad_length(const rl_kernel_shape *s) { return product(s->size[IMAGES], p_of(s), q_of(s), 1); }

/* Engines transform their inputs and split sums in ways of their own; in fp32 they were seen at 24 ulps for sums of 3136
 * products, where rl_sum_ulps says 29. So much more is still far from what TF32 would do. */
enum { SLACK = 4 };

#define FAMILY(NAME, SUMMARY, ELEMENTS)                                                                          \
  static int NAME##_check(const rl_kernel_shape *s, rl_error *err) {                                             \
    if (filters_meet_images(s, err) < 0) return -1;                                                              \
    return NAME##_length(s) <= RL_SUM_LENGTH_MAX                                                                 \
               ? 0                                                                                               \
               : rl_fail_at(err, "/shape", "a sum may have at most %d products", RL_SUM_LENGTH_MAX);             \
  }                                                                                                              \
  static double NAME##_tolerance(const rl_kernel_shape *s) { return SLACK * rl_sum_ulps(NAME##_length(s)); }     \
  static double NAME##_truncation(const rl_kernel_shape *s) { return rl_sum_truncation_ulps(NAME##_length(s)); } \
  static double NAME##_scale(const rl_kernel_shape *s) {                                                         \
    return rl_sum_scale(1) * sqrt(operations(s) / 2 / (double)ELEMENTS(s));                                      \
  }                                                                                                              \
  static void NAME##_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_##NAME); }                   \
  const rl_kernel_family rl_kernel_##NAME = {.workload = RL_KERNEL_WORKLOAD(NAME, SUMMARY),                      \
                                             .shape = sizes,                                                     \
                                             .shape_check = NAME##_check,                                        \
                                             .dtypes = RL_KERNEL_FLOATS | 1u << RL_DTYPE_TF32,                   \
                                             .variants = variants,                                               \
                                             .gpu_only = 1u << 1,                                                \
                                             .input_count = 2,                                                   \
                                             .input_elements = NAME##_inputs,                                    \
                                             .output_elements = ELEMENTS,                                        \
                                             .pieces = NAME##_pieces,                                            \
                                             .window = NAME##_window,                                            \
                                             .operations = operations,                                           \
                                             .tolerance = NAME##_tolerance,                                      \
                                             .truncation = NAME##_truncation,                                    \
                                             .scale = NAME##_scale,                                              \
                                             .reference = NAME##_double,                                         \
                                             .compute_float = NAME##_float,                                      \
                                             .compute_double = NAME##_double};
FAMILY(conv, "y = x * w, channels last", y_elements)
FAMILY(conv_dgrad, "the gradient of x from those of y, channels last", x_elements)
FAMILY(conv_wgrad, "the gradient of w from those of y, channels last", w_elements)
