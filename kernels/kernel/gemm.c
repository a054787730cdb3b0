/* The operator gemm: C[m×n] = A[m×k] · B[k×n], row-major. An output segment (kernel.h) is a row of C.
 *
 * Variants of this operator, attention and the convolutions: `heuristic` takes the first algorithm that the library's heuristic
 * proposes; `searched` times the proposed algorithms and takes the fastest. */
#include "kernel/kernel.h"
#include "kernel/sums.h"

static const char *const variants[] = {"heuristic", "searched", NULL};

enum { M, N, K }; /* indices of the shape's sizes */
static const rl_field shape_fields[] = {RL_KERNEL_SIZE(M, "m", RL_KERNEL_ELEMENTS_MAX, "rows of A and C"),
                                        RL_KERNEL_SIZE(N, "n", RL_KERNEL_ELEMENTS_MAX, "columns of B and C"),
                                        RL_KERNEL_SIZE(K, "k", RL_SUM_LENGTH_MAX, "columns of A, rows of B"),
                                        {0}};

static int64_t input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return rl_kernel_saturating_mul(shape->size[K], shape->size[input == 0 ? M : N]);
}
static int64_t output_elements(const rl_kernel_shape *shape) { return rl_kernel_saturating_mul(shape->size[M], shape->size[N]); }
static int64_t output_segment_count(const rl_kernel_shape *shape) { return shape->size[M]; }
static void input_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                         int64_t *elements) {
  *start = input == 0 ? first * shape->size[K] : 0;
  *elements = input == 0 ? count * shape->size[K] : shape->size[K] * shape->size[N];
}

static double operations(const rl_kernel_shape *shape) {
  return 2.0 * (double)shape->size[M] * (double)shape->size[N] * (double)shape->size[K];
}
static double tolerance_ulps(const rl_kernel_shape *shape) { return rl_sum_ulps(shape->size[K]); }
static double truncation_ulps(const rl_kernel_shape *shape) { return rl_sum_truncation_ulps(shape->size[K]); }
static double output_scale(const rl_kernel_shape *shape) { return rl_sum_scale(shape->size[K]); }

#define RL_LOOPS_HEADER "kernel/loops/gemm.h"
#include "kernel/float_and_double.h"

static void gemm_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_gemm); }
const rl_kernel_operator rl_kernel_gemm = {.workload = RL_KERNEL_WORKLOAD(gemm, "C = A B"),
                                           .shape_fields = shape_fields,
                                           .dtypes = RL_KERNEL_COMMON_DTYPES | 1u << RL_DTYPE_TF32,
                                           .variants = variants,
                                           .gpu_only_variants = 1u << 1, /* the variant "searched" */
                                           .input_count = 2,
                                           .input_elements = input_elements,
                                           .output_elements = output_elements,
                                           .output_segment_count = output_segment_count,
                                           .input_window = input_window,
                                           .operations = operations,
                                           .tolerance_ulps = tolerance_ulps,
                                           .truncation_ulps = truncation_ulps,
                                           .output_scale = output_scale,
                                           .reference = gemm_double,
                                           .compute_float = gemm_float,
                                           .compute_double = gemm_double};
