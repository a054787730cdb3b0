/* A matrix product by cuBLASLt: the algorithms that its heuristic offers are timed inside a graph on the device, and the fastest
 * is kept (tune.h). Column-major, as cuBLAS has it: D[m×n] = op(A)[m×k] · op(B)[k×n]. Belongs to one thread; buffers are
 * borrowed. */
#ifndef RL_LIBRARY_GEMM_H
#define RL_LIBRARY_GEMM_H

#include <cublasLt.h>

#include "device/device.h"

typedef struct rl_gemm_shape {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t lda, ldb, ldd;
  int64_t batch, stride_a, stride_b, stride_d; /* several products side by side; 1: one */
  cudaDataType_t input, output;                /* of A and B; of D. Sums are FP32, of FP64 input FP64 */
  bool tensor_float;                           /* FP32 input: TF32 tensor cores are allowed */
  bool exact_parts; /* where the sum over k is split, parts are added before they are rounded to D's type */
} rl_gemm_shape;

typedef struct rl_gemm rl_gemm;

/* Times up to `most` algorithms (1: takes the first that runs), each with at most workspace_bytes of workspace, on whatever the
 * buffers hold; D is overwritten. Where cuBLASLt can't do the shape: RL_CUBLAS, CUBLAS_STATUS_NOT_SUPPORTED. */
int rl_gemm_open(cublasLtHandle_t handle, const rl_gemm_shape *shape, const void *a, const void *b, void *d, void *workspace,
                 size_t workspace_bytes, int most, rl_stream stream, rl_gemm **gemm, rl_error *err);
void rl_gemm_close(rl_gemm *gemm); /* NULL is allowed */
int rl_gemm_enqueue(rl_gemm *gemm, rl_stream stream, rl_error *err);
double rl_gemm_us(const rl_gemm *gemm); /* as timed at open; 0: chosen before in this process */
int rl_gemm_rank(const rl_gemm *gemm);  /* of the algorithm in the heuristic's order; 0: its first */

#endif
