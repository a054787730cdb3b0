/* Shape functions of operators that compute each row of the output from the same row of input 0: softmax and the norms. Input 0
 * has rows × columns elements; each other input has one element for each column (weights that all rows share). An output segment
 * (kernel.h) is a row. */
#ifndef RL_KERNELS_KERNEL_ROWS_H
#define RL_KERNELS_KERNEL_ROWS_H

#include "kernel/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_ROWS = 0, RL_COLUMNS = 1 };         /* indices into rl_kernel_shape.size */
enum { RL_COLUMNS_MAX = 1 << 22 };            /* maximum number of columns of a shape */
extern const rl_field rl_kernel_rows_shape[]; /* "rows", "columns" */

/* Implementations of members of rl_kernel_operator (kernel.h), shared by these operators. */
int64_t rl_kernel_rows_output_elements(const rl_kernel_shape *shape);
int64_t rl_kernel_rows_input_elements(const rl_kernel_shape *shape, uint32_t input);
int64_t rl_kernel_rows_segment_count(const rl_kernel_shape *shape);
void rl_kernel_rows_input_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                                 int64_t *elements);

#ifdef __cplusplus
}
#endif
#endif
