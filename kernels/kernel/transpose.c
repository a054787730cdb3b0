/* transpose: y[column][row] = x[row][column].
 * Variants: naive reads rows and writes columns, element by element; shared turns a tile of 32 × 32 over in shared memory, whose
 * columns lie in one bank; padded has tiles whose columns do not, and moves 16 bytes at a time (transpose.cu). A piece is a row
 * of y. */
#include "kernel/rows.h"

static const char *const variants[] = {"naive", "shared", "padded", NULL};

static const rl_field shape_fields[] = {RL_KERNEL_SIZE(RL_ROWS, "rows", RL_KERNEL_ELEMENTS_MAX, "rows of the input"),
                                        RL_KERNEL_SIZE(RL_COLUMNS, "columns", RL_KERNEL_ELEMENTS_MAX, "elements of such a row"),
                                        {0}};

#define LOOPS "kernel/loops/transpose.h"
#include "kernel/in_both_types.h"

static int64_t pieces(const rl_kernel_shape *shape) { return shape->size[RL_COLUMNS]; }
static void window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                   int64_t *elements) {
  (void)input, (void)first, (void)count; /* from the first row to the last */
  *start = 0;
  *elements = rl_kernel_rows_output(shape);
}
static double nothing(const rl_kernel_shape *shape) { return (void)shape, 0; }

static void transpose_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_transpose); }
const rl_kernel_family rl_kernel_transpose = {.workload = RL_KERNEL_WORKLOAD(transpose, "y = x with rows and columns exchanged"),
                                              .shape = shape_fields,
                                              .dtypes = RL_KERNEL_FLOATS,
                                              .variants = variants,
                                              .gpu_only = 1u << 2,
                                              .input_count = 1,
                                              .input_elements = rl_kernel_rows_input,
                                              .output_elements = rl_kernel_rows_output,
                                              .pieces = pieces,
                                              .window = window,
                                              .reference = transpose_double,
                                              .compute_double = transpose_double,
                                              .compute_float = transpose_float,
                                              .operations = nothing,
                                              .tolerance = nothing};
