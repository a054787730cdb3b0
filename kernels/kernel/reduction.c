/* The operator reduction: the sum of each row. A shape of one row gives the sum of all elements.
 * Variants (reduction.cu): in `scalar` one thread block sums a row, one element at a time; `vector` divides long rows among
 * blocks and reads 16 bytes at a time. */
#include <math.h>

#include "kernel/rows.h"

static const char *const variants[] = {"scalar", "vector", NULL};

/* fp16 sums must stay below 65504. A sum of COLUMNS_MAX inputs has a standard deviation of 13377, 4.9 times less. */
enum { COLUMNS_MAX = 1 << 27 };
static const rl_field shape_fields[] = {
    RL_KERNEL_SIZE(RL_ROWS, "rows", RL_KERNEL_ELEMENTS_MAX, "number of rows; each row has one sum"),
    RL_KERNEL_SIZE(RL_COLUMNS, "columns", COLUMNS_MAX, "elements of a row, at most 134217728"),
    {0}};

/* Sums pairwise, so that the error grows only with the logarithm of the count. */
static double sum_double(const double *x, int64_t count) {
  enum { LEAF = 32 };
  double sum = 0;
  if (count > LEAF) return sum_double(x, count / 2) + sum_double(x + count / 2, count - count / 2);
  for (int64_t i = 0; i < count; i++) sum += x[i];
  return sum;
}

static float sum_float(const float *x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)x[i];
  return (float)sum;
}

/* Defines reduction_double and reduction_float. */
#define RL_LOOPS_HEADER "kernel/loops/reduction.h"
#include "kernel/float_and_double.h"

static int64_t output_elements(const rl_kernel_shape *shape) { return shape->size[RL_ROWS]; }
static double operations(const rl_kernel_shape *shape) { return (double)rl_kernel_rows_output_elements(shape); }
static double tolerance_ulps(const rl_kernel_shape *shape) { return 8 + sqrt((double)shape->size[RL_COLUMNS]) / 16; }
/* Returns the standard deviation of a sum: inputs are uniform in [-2, 2), with mean 0 and variance 4/3. */
static double output_scale(const rl_kernel_shape *shape) { return sqrt(4.0 / 3 * (double)shape->size[RL_COLUMNS]); }

static void reduction_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_reduction); }
const rl_kernel_operator rl_kernel_reduction = {.workload = RL_KERNEL_WORKLOAD(reduction, "y = sum of x over the row"),
                                                .shape_fields = shape_fields,
                                                .dtypes = RL_KERNEL_COMMON_DTYPES,
                                                .variants = variants,
                                                .input_count = 1,
                                                .input_elements = rl_kernel_rows_input_elements,
                                                .output_elements = output_elements,
                                                .output_segment_count = output_elements,
                                                .input_window = rl_kernel_rows_input_window,
                                                .reference = reduction_double,
                                                .compute_double = reduction_double,
                                                .compute_float = reduction_float,
                                                .operations = operations,
                                                .tolerance_ulps = tolerance_ulps,
                                                .output_scale = output_scale};
