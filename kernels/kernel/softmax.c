/* The operator softmax: y = exp(x - max) / Σ exp(x - max), row by row.
 * Variants (softmax.cu): scalar reads a row twice, one element at a time; vector reads it once, 16 bytes at a time. */
#include <math.h>

#include "kernel/rows.h"

static const char *const variants[] = {"scalar", "vector", NULL};

#define RL_LOOPS_HEADER "kernel/loops/softmax.h"
#include "kernel/float_and_double.h"

/* For each element: maximum, difference, exponential, sum, quotient. */
static double operations(const rl_kernel_shape *shape) { return 5 * (double)rl_kernel_rows_output_elements(shape); }
static double tolerance_ulps(const rl_kernel_shape *shape) { return 16 + sqrt((double)shape->size[RL_COLUMNS]) / 16; }

static void softmax_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_softmax); }
const rl_kernel_operator rl_kernel_softmax = {.workload = RL_KERNEL_WORKLOAD(softmax, "y = exp(x) / sum of exp(x) over the row"),
                                              .shape_fields = rl_kernel_rows_shape,
                                              .dtypes = RL_KERNEL_COMMON_DTYPES,
                                              .variants = variants,
                                              .input_count = 1,
                                              .input_elements = rl_kernel_rows_input_elements,
                                              .output_elements = rl_kernel_rows_output_elements,
                                              .output_segment_count = rl_kernel_rows_segment_count,
                                              .input_window = rl_kernel_rows_input_window,
                                              .reference = softmax_double,
                                              .compute_double = softmax_double,
                                              .compute_float = softmax_float,
                                              .operations = operations,
                                              .tolerance_ulps = tolerance_ulps};
