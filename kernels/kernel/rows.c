/* Implements rows.h. */
#include "kernel/rows.h"

const rl_field rl_kernel_rows_shape[] = {
    RL_KERNEL_SIZE(RL_ROWS, "rows", RL_KERNEL_ELEMENTS_MAX, "rows"),
    RL_KERNEL_SIZE(RL_COLUMNS, "columns", RL_COLUMNS_MAX, "elements of a row, at most 4194304"),
    {0}};

int64_t rl_kernel_rows_output_elements(const rl_kernel_shape *shape) {
  return rl_kernel_saturating_mul(shape->size[RL_ROWS], shape->size[RL_COLUMNS]);
}

int64_t rl_kernel_rows_input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return input == 0 ? rl_kernel_rows_output_elements(shape) : shape->size[RL_COLUMNS];
}

int64_t rl_kernel_rows_segment_count(const rl_kernel_shape *shape) { return shape->size[RL_ROWS]; }

void rl_kernel_rows_input_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                                 int64_t *elements) {
  *start = input == 0 ? first * shape->size[RL_COLUMNS] : 0;
  *elements = (input == 0 ? count : 1) * shape->size[RL_COLUMNS];
}
