/* Defines the operator transpose: y[column][row] = x[row][column]. transpose.cu has its CUDA variants: naive reads rows and
 * writes columns, one element at a time; shared transposes tiles of 32 × 32 elements in shared memory, with bank conflicts on
 * each column; padded has no bank conflicts and moves 16 bytes at a time. An output segment (kernel.h) is a row of y. */
#include "kernel/rows.h"

static const char *const variants[] = {"naive", "shared", "padded", NULL};

static const rl_field shape_fields[] = {RL_KERNEL_SIZE(RL_ROWS, "rows", RL_KERNEL_ELEMENTS_MAX, "rows of the input"),
                                        RL_KERNEL_SIZE(RL_COLUMNS, "columns", RL_KERNEL_ELEMENTS_MAX, "columns of the input"),
                                        {0}};

#define RL_LOOPS_HEADER "kernel/loops/transpose.h"
#include "kernel/float_and_double.h"

static int64_t output_segment_count(const rl_kernel_shape *shape) { return shape->size[RL_COLUMNS]; }
static void input_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                         int64_t *elements) {
  (void)input, (void)first, (void)count; /* a column needs every row of the input */
  *start = 0;
  *elements = rl_kernel_rows_output_elements(shape);
}
static double zero(const rl_kernel_shape *shape) { return (void)shape, 0; }

static void transpose_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_transpose); }
const rl_kernel_operator rl_kernel_transpose = {
    .workload = RL_KERNEL_WORKLOAD(transpose, "y = x with rows and columns exchanged"),
    .shape_fields = shape_fields,
    .dtypes = RL_KERNEL_COMMON_DTYPES,
    .variants = variants,
    .gpu_only_variants = 1u << 2, /* the variant "padded" */
    .input_count = 1,
    .input_elements = rl_kernel_rows_input_elements,
    .output_elements = rl_kernel_rows_output_elements,
    .output_segment_count = output_segment_count,
    .input_window = input_window,
    .reference = transpose_double,
    .compute_double = transpose_double,
    .compute_float = transpose_float,
    .operations = zero,
    .tolerance_ulps = zero};
