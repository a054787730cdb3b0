/* The elementwise operators:
 *   copy          y = x
 *   relu          y = max(x, 0); NaN stays
 *   residual_add  y = x + r
 *   bias_gelu     y = gelu(x + b), where b is one row; gelu(v) = v Φ(v), computed with erf
 *   silu_mul      y = x / (1 + exp(-x)) · g
 * An output segment (kernel.h) is an element. Variants: scalar processes one element at a time (on CUDA one element per thread,
 * like CuPy's fused kernels); vector processes as many elements as a 16-byte access holds. */
#include <math.h>

#include "kernel/kernel.h"

static const char *const variants[] = {"scalar", "vector", NULL};

enum { N = 0, ROWS = 0, COLUMNS = 1 };
static const rl_field vector[] = {RL_KERNEL_SIZE(N, "n", RL_KERNEL_ELEMENTS_MAX, "elements"), {0}};
static const rl_field matrix[] = {RL_KERNEL_SIZE(ROWS, "rows", RL_KERNEL_ELEMENTS_MAX, "rows"),
                                  RL_KERNEL_SIZE(COLUMNS, "columns", RL_KERNEL_ELEMENTS_MAX, "elements of a row"),
                                  {0}};

/* --- layouts ----------------------------------------------------------------------------------------------------------- */

/* vector: the output and all inputs have n elements. matrix: the output and input 0 have rows × columns elements; input 1 is one
 * row. */
static int64_t vector_output(const rl_kernel_shape *shape) { return shape->size[N]; }
static int64_t vector_input(const rl_kernel_shape *shape, uint32_t input) {
  (void)input;
  return shape->size[N];
}
static void vector_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                          int64_t *elements) {
  (void)shape, (void)input;
  *start = first;
  *elements = count;
}
static int64_t vector_row_length(const rl_kernel_shape *shape) { return shape->size[N]; }

static int64_t matrix_output(const rl_kernel_shape *shape) {
  return rl_kernel_saturating_mul(shape->size[ROWS], shape->size[COLUMNS]);
}
static int64_t matrix_input(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? matrix_output(shape) : shape->size[COLUMNS];
}
static void matrix_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                          int64_t *elements) {
  const int64_t columns = shape->size[COLUMNS], column = first % columns;
  const bool wraps = column + count > columns;
  *start = input == 0 ? first : wraps ? 0 : column;
  *elements = input > 0 && wraps ? columns : count;
}
static int64_t matrix_row_length(const rl_kernel_shape *shape) { return shape->size[COLUMNS]; }

/* --- the operators ------------------------------------------------------------------------------------------------------ */

/* Defines NAME_SUFFIX, which computes EXPRESSION for each element: A is the element of input 0, and B is SECOND, the
 * corresponding element of input 1. The inner loop stays inside one row, so that the compiler can vectorise it; there, in[1][k +
 * shift] is the element of input 1 in the column of k. */
#define DEFINE_LOOP(NAME, SUFFIX, LAYOUT, T, SECOND, EXPRESSION)                                                        \
  static void NAME##_##SUFFIX(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) { \
    int64_t start, elements, stop;                                                                                      \
    LAYOUT##_window(shape, 1, first, count, &start, &elements);                                                         \
    for (int64_t i = 0; i < count; i = stop) {                                                                          \
      const int64_t columns = LAYOUT##_row_length(shape), column = (first + i) % columns, shift = column - start - i;   \
      stop = count - i < columns - column ? count : i + columns - column;                                               \
      for (int64_t k = i; k < stop; k++) {                                                                              \
        const T A = in[0][k], B = SECOND;                                                                               \
        (void)B, (void)shift;                                                                                           \
        out[k] = EXPRESSION;                                                                                            \
      }                                                                                                                 \
    }                                                                                                                   \
  }

/* Arguments for the parameter SECOND of DEFINE_LOOP. */
#define NO_SECOND 0
#define SAME_ELEMENT in[1][k]
#define SAME_COLUMN in[1][k + shift]

#define OPERATOR(NAME, SUMMARY, LAYOUT, INPUTS, OPERATIONS, ULPS)                                                       \
  static void NAME##_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_##NAME); }                          \
  static double NAME##_operations(const rl_kernel_shape *shape) { return OPERATIONS * (double)LAYOUT##_output(shape); } \
  static double NAME##_tolerance(const rl_kernel_shape *shape) { return (void)shape, ULPS; }                            \
  const rl_kernel_operator rl_kernel_##NAME = {.workload = RL_KERNEL_WORKLOAD(NAME, SUMMARY),                           \
                                               .shape_fields = LAYOUT,                                                  \
                                               .dtypes = RL_KERNEL_COMMON_DTYPES,                                       \
                                               .variants = variants,                                                    \
                                               .input_count = INPUTS,                                                   \
                                               .input_elements = LAYOUT##_input,                                        \
                                               .output_elements = LAYOUT##_output,                                      \
                                               .output_segment_count = LAYOUT##_output,                                 \
                                               .input_window = LAYOUT##_window,                                         \
                                               .operations = NAME##_operations,                                         \
                                               .tolerance_ulps = NAME##_tolerance,                                      \
                                               .reference = NAME##_reference,                                           \
                                               .compute_float = NAME##_float,                                           \
                                               .compute_double = NAME##_double};

DEFINE_LOOP(copy, reference, vector, double, NO_SECOND, A)
DEFINE_LOOP(copy, float, vector, float, NO_SECOND, A)
DEFINE_LOOP(copy, double, vector, double, NO_SECOND, A)
OPERATOR(copy, "y = x", vector, 1, 0, 0)

DEFINE_LOOP(relu, reference, vector, double, NO_SECOND, isnan(A) ? A : fmax(A, 0))
DEFINE_LOOP(relu, float, vector, float, NO_SECOND, A < 0 ? 0 : A)
DEFINE_LOOP(relu, double, vector, double, NO_SECOND, A < 0 ? 0 : A)
OPERATOR(relu, "y = max(x, 0)", vector, 1, 1, 0)

DEFINE_LOOP(residual_add, reference, vector, double, SAME_ELEMENT, A + B)
DEFINE_LOOP(residual_add, float, vector, float, SAME_ELEMENT, A + B)
DEFINE_LOOP(residual_add, double, vector, double, SAME_ELEMENT, A + B)
OPERATOR(residual_add, "y = x + r", vector, 2, 1, 1)

/* bias_gelu uses erfc, because 1 + erf would lose digits by cancellation for negative v. For negative v the rounding of v changes
 * the small result by up to v² ulps, which the tolerance allows. Operations: the sum x + b, and gelu as 1/2 v (1 + erf(v / √2)).
 */
DEFINE_LOOP(bias_gelu, reference, matrix, double, SAME_COLUMN, (A + B) * 0.5 * erfc(-(A + B) * M_SQRT1_2))
DEFINE_LOOP(bias_gelu, float, matrix, float, SAME_COLUMN, (A + B) * 0.5f * erfcf(-(A + B) * (float)M_SQRT1_2))
DEFINE_LOOP(bias_gelu, double, matrix, double, SAME_COLUMN, (A + B) * 0.5 * erfc(-(A + B) * M_SQRT1_2))
OPERATOR(bias_gelu, "y = gelu(x + b), one b for each column", matrix, 2, 6, 32)

DEFINE_LOOP(silu_mul, reference, vector, double, SAME_ELEMENT, A *B / (1 + exp(-A)))
DEFINE_LOOP(silu_mul, float, vector, float, SAME_ELEMENT, A / (1 + expf(-A)) * B)
DEFINE_LOOP(silu_mul, double, vector, double, SAME_ELEMENT, A / (1 + exp(-A)) * B)
OPERATOR(silu_mul, "y = silu(x) g", vector, 2, 5, 4)
