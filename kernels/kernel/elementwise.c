/* Families that compute each element of the output from the same element of their inputs.
 *   copy          y = x                      relu       y = max(x, 0), NaN stays
 *   residual_add  y = x + r                  bias_gelu  y = gelu(x + b), b one row; gelu(v) = v Φ(v), by erf
 *   silu_mul      y = x / (1 + exp(-x)) · g
 * Variants: scalar does one element at a time (on CUDA, one a thread, as CuPy's fused kernels do), vector as many as an access of
 * 16 bytes holds. */
#include <math.h>

#include "kernel/kernel.h"

static const char *const variants[] = {"scalar", "vector", NULL};

#define SIZE(NAME, MEMBER, SUMMARY)                                                                                   \
  { .name = NAME, .type = RL_FIELD_INT, .offset = offsetof(rl_kernel_shape, MEMBER), .size = sizeof(int64_t),         \
    .required = true, .minimum = 1, .maximum = RL_KERNEL_ELEMENTS_MAX, .summary = SUMMARY }
static const rl_field line[] = {SIZE("n", rows, "elements"), {0}};
static const rl_field table[] = {SIZE("rows", rows, "rows"), SIZE("columns", columns, "elements of a row"), {0}};

/* NAME_suffix over some rows; A is the element of the first input, B of the second, which may be shared. */
#define OVER_ROWS(NAME, SUFFIX, T, SECOND, EXPRESSION)                                                                \
  static void NAME##_##SUFFIX(const rl_kernel_shape *shape, const T *const *in, T *out) {                             \
    for (int64_t row = 0; row < shape->rows; row++)                                                                   \
      for (int64_t column = 0; column < shape->columns; column++) {                                                   \
        const int64_t i = row * shape->columns + column;                                                              \
        const T A = in[0][i], B = SECOND;                                                                             \
        (void)B;                                                                                                      \
        out[i] = EXPRESSION;                                                                                          \
      }                                                                                                               \
  }

#define NONE 0
#define EQUAL in[1][i]
#define SHARED in[1][column]

#define FAMILY(NAME, SUMMARY, SHAPE, INPUTS, IS_SHARED, OPERATIONS, EPSILONS)                                                \
  static void NAME##_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_##NAME); }                        \
  const rl_kernel_family rl_kernel_##NAME = {                                                                         \
      .workload = {.name = #NAME, .kind = "kernel", .summary = SUMMARY, .fields = rl_kernel_params_fields,            \
                   .params_size = sizeof(rl_kernel_params), .defaults = NAME##_defaults, .cost = rl_kernel_cost,      \
                   .schedule = rl_kernel_schedule, .iteration = RL_ITERATION_LAUNCH},                                 \
      .shape = SHAPE, .variants = variants, .input_count = INPUTS, .shared = {false, IS_SHARED},                      \
      .operations = OPERATIONS, .tolerance = EPSILONS, .reference = NAME##_reference,                                 \
      .compute_float = NAME##_float, .compute_double = NAME##_double};

OVER_ROWS(copy, reference, double, NONE, A)
OVER_ROWS(copy, float, float, NONE, A)
OVER_ROWS(copy, double, double, NONE, A)
FAMILY(copy, "y = x", line, 1, false, 0, 0)

OVER_ROWS(relu, reference, double, NONE, isnan(A) ? A : fmax(A, 0))
OVER_ROWS(relu, float, float, NONE, A < 0 ? 0 : A)
OVER_ROWS(relu, double, double, NONE, A < 0 ? 0 : A)
FAMILY(relu, "y = max(x, 0)", line, 1, false, 1, 0)

OVER_ROWS(residual_add, reference, double, EQUAL, A + B)
OVER_ROWS(residual_add, float, float, EQUAL, A + B)
OVER_ROWS(residual_add, double, double, EQUAL, A + B)
FAMILY(residual_add, "y = x + r", line, 2, false, 1, 1)

/* By erfc, as 1 + erf would cancel where v is negative. Rounding v moves the small values there by up to v² ulps: the tolerance.
 * Operations: the sum, and gelu as 1/2 v (1 + erf(v / √2)). */
OVER_ROWS(bias_gelu, reference, double, SHARED, (A + B) * 0.5 * erfc(-(A + B) * M_SQRT1_2))
OVER_ROWS(bias_gelu, float, float, SHARED, (A + B) * 0.5f * erfcf(-(A + B) * (float)M_SQRT1_2))
OVER_ROWS(bias_gelu, double, double, SHARED, (A + B) * 0.5 * erfc(-(A + B) * M_SQRT1_2))
FAMILY(bias_gelu, "y = gelu(x + b), one b for each column", table, 2, true, 6, 32)

OVER_ROWS(silu_mul, reference, double, EQUAL, A * B / (1 + exp(-A)))
OVER_ROWS(silu_mul, float, float, EQUAL, A / (1 + expf(-A)) * B)
OVER_ROWS(silu_mul, double, double, EQUAL, A / (1 + exp(-A)) * B)
FAMILY(silu_mul, "y = silu(x) g", line, 2, false, 5, 4)
