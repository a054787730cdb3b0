/* The element types of kernels: their representation in memory, and conversions. */
#ifndef RL_KERNELS_KERNEL_DTYPE_H
#define RL_KERNELS_KERNEL_DTYPE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The API lists the types in this order. tf32 is stored as a float whose mantissa is rounded to 10 bits; results computed from it
 * are floats. */
typedef enum rl_dtype { RL_DTYPE_FP64, RL_DTYPE_FP32, RL_DTYPE_TF32, RL_DTYPE_FP16, RL_DTYPE_BF16, RL_DTYPE_COUNT } rl_dtype;
extern const char *const rl_dtype_names[]; /* "fp64" "fp32" "tf32" "fp16" "bf16", NULL */

size_t rl_dtype_size(int dtype);            /* in bytes */
double rl_dtype_epsilon(int dtype);         /* distance from 1 to the next larger value; tf32: epsilon of float */
double rl_dtype_smallest_normal(int dtype); /* smaller numbers are subnormal */

double rl_dtype_load(int dtype, const void *memory, size_t index);
void rl_dtype_store(int dtype, void *memory, size_t index, double value); /* rounds to nearest even */

/* Conversions of `count` elements. */
void rl_dtype_to_double(int dtype, const void *memory, int64_t count, double *to);
void rl_dtype_to_float(int dtype, const void *memory, int64_t count, float *to);
void rl_dtype_from_double(int dtype, const double *from, int64_t count, void *memory);
void rl_dtype_from_float(int dtype, const float *from, int64_t count, void *memory);

#ifdef __cplusplus
}
#endif
#endif
