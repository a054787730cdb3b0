/* softmax: y = exp(x - max) / Σ exp(x - max), row by row.
 * Variants: scalar reads a row twice, element by element; vector reads it once, 16 bytes at a time (softmax.cu). */
#include <math.h>

#include "kernel/rows.h"

static const char *const variants[] = {"scalar", "vector", NULL};

/* In T with function EXP; the sum is taken in SUM. */
#define SOFTMAX(SUFFIX, T, EXP, SUM)                                                                                         \
  static void softmax_##SUFFIX(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {     \
    const int64_t columns = shape->size[RL_COLUMNS];                                                                         \
    (void)first;                                                                                                             \
    for (int64_t row = 0; row < count; row++) {                                                                              \
      const T *x = in[0] + row * columns;                                                                                    \
      T *y = out + row * columns, most = x[0];                                                                               \
      SUM sum = 0;                                                                                                           \
      for (int64_t i = 1; i < columns; i++) most = x[i] > most ? x[i] : most;                                                \
      for (int64_t i = 0; i < columns; i++) sum += y[i] = EXP(x[i] - most);                                                  \
      const T scale = (T)(1 / sum);                                                                                          \
      for (int64_t i = 0; i < columns; i++) y[i] *= scale;                                                                   \
    }                                                                                                                        \
  }
SOFTMAX(double, double, exp, long double)
SOFTMAX(float, float, expf, double)

/* Maximum, difference, exponential, sum, quotient. */
static double operations(const rl_kernel_shape *shape) { return 5 * (double)rl_kernel_rows_output(shape); }
static double tolerance(const rl_kernel_shape *shape) { return 16 + sqrt((double)shape->size[RL_COLUMNS]) / 16; }

static void softmax_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_softmax); }
const rl_kernel_family rl_kernel_softmax = {
    .workload = RL_KERNEL_WORKLOAD(softmax, "y = exp(x) / sum of exp(x) over the row"), .shape = rl_kernel_rows_shape,
    .dtypes = RL_KERNEL_FLOATS, .variants = variants, .input_count = 1, .input_elements = rl_kernel_rows_input,
    .output_elements = rl_kernel_rows_output, .pieces = rl_kernel_rows_pieces, .window = rl_kernel_rows_window,
    .reference = softmax_double, .compute_double = softmax_double, .compute_float = softmax_float, .operations = operations,
    .tolerance = tolerance};
