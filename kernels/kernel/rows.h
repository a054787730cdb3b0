/* Families that turn each row of a table into a row, perhaps with weights for the columns that all rows share: input 0 is rows ×
 * columns, the others are columns long. A piece is a row. */
#ifndef RL_KERNELS_KERNEL_ROWS_H
#define RL_KERNELS_KERNEL_ROWS_H

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_ROWS = 0, RL_COLUMNS = 1, RL_COLUMNS_MAX = 1 << 22 };
extern const rl_field rl_kernel_rows_shape[]; /* "rows", "columns" */

/* Elements of the output and of an input, pieces of the output, and where in an input the pieces [first, first + count) need how
 * many elements: what rl_kernel_family asks for. */
int64_t rl_kernel_rows_output(const rl_kernel_shape *shape);
int64_t rl_kernel_rows_input(const rl_kernel_shape *shape, uint32_t input);
int64_t rl_kernel_rows_pieces(const rl_kernel_shape *shape);
void rl_kernel_rows_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                           int64_t *elements);

#ifdef __cplusplus
}
#endif
#endif
