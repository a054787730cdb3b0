/* Normalisation of each row, with weights for the columns.
 *   rmsnorm    y = x / √(mean of x² + ε) · w
 *   layernorm  y = (x - mean) / √(variance + ε) · w + b
 * ε is 1e-5. Variants (norm.cu): scalar reads a row twice, one element at a time; vector reads it once, 16 bytes at a time. */
#include <math.h>

#include "kernel/norm.h"
#include "kernel/rows.h"

static const char *const variants[] = {"scalar", "vector", NULL};

#define RL_LOOPS_HEADER "kernel/loops/norm.h"
#include "kernel/float_and_double.h"

/* Operations for each element. rmsnorm: square, add, two products. layernorm: add (mean), subtract, square, add, two products,
 * add the bias. */
static double rmsnorm_operations(const rl_kernel_shape *shape) { return 4 * (double)rl_kernel_rows_output_elements(shape); }
static double layernorm_operations(const rl_kernel_shape *shape) { return 7 * (double)rl_kernel_rows_output_elements(shape); }

static double rmsnorm_tolerance_ulps(const rl_kernel_shape *shape) { return 8 + sqrt((double)shape->size[RL_COLUMNS]) / 16; }

/* In short rows the values can be so close together that dividing by their standard deviation magnifies rounding errors, by up to
 * 1 / √ε. */
static double layernorm_tolerance_ulps(const rl_kernel_shape *shape) {
  const double columns = (double)shape->size[RL_COLUMNS];
  return 8 + sqrt(columns) / 16 + 1024 / columns;
}
static double layernorm_output_scale(const rl_kernel_shape *shape) { return (void)shape, 1; }

#define OPERATOR(NAME, SUMMARY, INPUTS, SCALE)                                                       \
  static void NAME##_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_##NAME); }       \
  const rl_kernel_operator rl_kernel_##NAME = {.workload = RL_KERNEL_WORKLOAD(NAME, SUMMARY),        \
                                               .shape_fields = rl_kernel_rows_shape,                 \
                                               .dtypes = RL_KERNEL_COMMON_DTYPES,                    \
                                               .variants = variants,                                 \
                                               .input_count = INPUTS,                                \
                                               .input_elements = rl_kernel_rows_input_elements,      \
                                               .output_elements = rl_kernel_rows_output_elements,    \
                                               .output_segment_count = rl_kernel_rows_segment_count, \
                                               .input_window = rl_kernel_rows_input_window,          \
                                               .reference = NAME##_double,                           \
                                               .compute_double = NAME##_double,                      \
                                               .compute_float = NAME##_float,                        \
                                               .operations = NAME##_operations,                      \
                                               .tolerance_ulps = NAME##_tolerance_ulps,              \
                                               .output_scale = SCALE};
OPERATOR(rmsnorm, "y = x / sqrt(mean of x^2 over the row + 1e-5) w, one w for each column", 2, NULL)
OPERATOR(layernorm, "y = (x - mean) / sqrt(variance + 1e-5) w + b, row by row, one w and one b for each column", 3,
         layernorm_output_scale)
