/* Families that compute each element of the output from the same element of their inputs.
 *   copy          y = x                      relu       y = max(x, 0), NaN stays
 *   residual_add  y = x + r                  bias_gelu  y = gelu(x + b), b one row; gelu(v) = v Φ(v), by erf
 *   silu_mul      y = x / (1 + exp(-x)) · g
 * A piece is an element. Variants: scalar does one element at a time (on CUDA, one a thread, as CuPy's fused kernels do), vector
 * as many as an access of 16 bytes holds. */
#include <math.h>

#include "kernel/kernel.h"

static const char *const variants[] = {"scalar", "vector", NULL};

enum { N = 0, ROWS = 0, COLUMNS = 1 };
static const rl_field line[] = {RL_KERNEL_SIZE(N, "n", RL_KERNEL_ELEMENTS_MAX, "elements"), {0}};
static const rl_field table[] = {RL_KERNEL_SIZE(ROWS, "rows", RL_KERNEL_ELEMENTS_MAX, "rows"),
                                 RL_KERNEL_SIZE(COLUMNS, "columns", RL_KERNEL_ELEMENTS_MAX, "elements of a row"),
                                 {0}};

/* --- what is where: line has inputs like the output, table one such and one that is a row for all rows ----------------- */

static int64_t line_output(const rl_kernel_shape *shape) { return shape->size[N]; }
static int64_t line_input(const rl_kernel_shape *shape, uint32_t input) {
  (void)input;
  return shape->size[N];
}
static void line_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                        int64_t *elements) {
  (void)shape, (void)input;
  *start = first;
  *elements = count;
}
static int64_t line_row(const rl_kernel_shape *shape) { return shape->size[N]; }

static int64_t table_output(const rl_kernel_shape *shape) { return rl_kernel_times(shape->size[ROWS], shape->size[COLUMNS]); }
static int64_t table_input(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? table_output(shape) : shape->size[COLUMNS];
}
static void table_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                         int64_t *elements) {
  const int64_t columns = shape->size[COLUMNS], column = first % columns;
  const bool wraps = column + count > columns;
  *start = input == 0 ? first : wraps ? 0 : column;
  *elements = input > 0 && wraps ? columns : count;
}
static int64_t table_row(const rl_kernel_shape *shape) { return shape->size[COLUMNS]; }

/* --- the families ------------------------------------------------------------------------------------------------------ */

/* NAME_suffix, a stretch of a row at a time; A is the element of the first input, B of the second, which may be the row for
 * all. */
#define OVER_ROWS(NAME, SUFFIX, LAYOUT, T, SECOND, EXPRESSION)                                                          \
  static void NAME##_##SUFFIX(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) { \
    int64_t start, elements, stop;                                                                                      \
    LAYOUT##_window(shape, 1, first, count, &start, &elements);                                                         \
    for (int64_t i = 0; i < count; i = stop) {                                                                          \
      const int64_t columns = LAYOUT##_row(shape), column = (first + i) % columns, shift = column - start - i;          \
      stop = count - i < columns - column ? count : i + columns - column;                                               \
      for (int64_t k = i; k < stop; k++) {                                                                              \
        const T A = in[0][k], B = SECOND;                                                                               \
        (void)B, (void)shift;                                                                                           \
        out[k] = EXPRESSION;                                                                                            \
      }                                                                                                                 \
    }                                                                                                                   \
  }

#define NONE 0
#define EQUAL in[1][k]
#define SHARED in[1][k + shift]

#define FAMILY(NAME, SUMMARY, LAYOUT, INPUTS, OPERATIONS, ULPS)                                                         \
  static void NAME##_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_##NAME); }                          \
  static double NAME##_operations(const rl_kernel_shape *shape) { return OPERATIONS * (double)LAYOUT##_output(shape); } \
  static double NAME##_tolerance(const rl_kernel_shape *shape) { return (void)shape, ULPS; }                            \
  const rl_kernel_family rl_kernel_##NAME = {.workload = RL_KERNEL_WORKLOAD(NAME, SUMMARY),                             \
                                             .shape = LAYOUT,                                                           \
                                             .dtypes = RL_KERNEL_FLOATS,                                                \
                                             .variants = variants,                                                      \
                                             .input_count = INPUTS,                                                     \
                                             .input_elements = LAYOUT##_input,                                          \
                                             .output_elements = LAYOUT##_output,                                        \
                                             .pieces = LAYOUT##_output,                                                 \
                                             .window = LAYOUT##_window,                                                 \
                                             .operations = NAME##_operations,                                           \
                                             .tolerance = NAME##_tolerance,                                             \
                                             .reference = NAME##_reference,                                             \
                                             .compute_float = NAME##_float,                                             \
                                             .compute_double = NAME##_double};

OVER_ROWS(copy, reference, line, double, NONE, A)
OVER_ROWS(copy, float, line, float, NONE, A)
OVER_ROWS(copy, double, line, double, NONE, A)
FAMILY(copy, "y = x", line, 1, 0, 0)

OVER_ROWS(relu, reference, line, double, NONE, isnan(A) ? A : fmax(A, 0))
OVER_ROWS(relu, float, line, float, NONE, A < 0 ? 0 : A)
OVER_ROWS(relu, double, line, double, NONE, A < 0 ? 0 : A)
FAMILY(relu, "y = max(x, 0)", line, 1, 1, 0)

OVER_ROWS(residual_add, reference, line, double, EQUAL, A + B)
OVER_ROWS(residual_add, float, line, float, EQUAL, A + B)
OVER_ROWS(residual_add, double, line, double, EQUAL, A + B)
FAMILY(residual_add, "y = x + r", line, 2, 1, 1)

/* By erfc, as 1 + erf would cancel where v is negative. Rounding v moves the small values there by up to v² ulps: the tolerance.
 * Operations: the sum, and gelu as 1/2 v (1 + erf(v / √2)). */
OVER_ROWS(bias_gelu, reference, table, double, SHARED, (A + B) * 0.5 * erfc(-(A + B) * M_SQRT1_2))
OVER_ROWS(bias_gelu, float, table, float, SHARED, (A + B) * 0.5f * erfcf(-(A + B) * (float)M_SQRT1_2))
OVER_ROWS(bias_gelu, double, table, double, SHARED, (A + B) * 0.5 * erfc(-(A + B) * M_SQRT1_2))
FAMILY(bias_gelu, "y = gelu(x + b), one b for each column", table, 2, 6, 32)

OVER_ROWS(silu_mul, reference, line, double, EQUAL, A *B / (1 + exp(-A)))
OVER_ROWS(silu_mul, float, line, float, EQUAL, A / (1 + expf(-A)) * B)
OVER_ROWS(silu_mul, double, line, double, EQUAL, A / (1 + exp(-A)) * B)
FAMILY(silu_mul, "y = silu(x) g", line, 2, 5, 4)
