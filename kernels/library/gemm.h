/* A matrix product by cuBLASLt, with the fastest of the algorithms that cuBLASLt's heuristic proposes (timed by tune.h).
 * Matrices are column-major, as in cuBLAS: D[m×n] = op(A)[m×k] · op(B)[k×n]. An rl_gemm belongs to one thread. The caller owns
 * the buffers and keeps them until rl_gemm_close. */
#ifndef RL_LIBRARY_GEMM_H
#define RL_LIBRARY_GEMM_H

#include <cublasLt.h>

#include "device/device.h"

typedef struct rl_gemm_shape {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t lda, ldb, ldd;
  int64_t batch_count, stride_a, stride_b, stride_d; /* strided batch; batch_count 1: a single product */
  cudaDataType_t input, output;                      /* types of A and B, and of D. Sums are FP32; with FP64 input FP64 */
  bool allow_tf32;                                   /* for FP32 input: allows TF32 tensor cores */
  bool exact_split_k;                                /* split-K algorithms must add partial sums before rounding to D's type */
  const void *addend;                                /* D = op(A) · op(B) + addend, which has D's layout and type; NULL: none */
} rl_gemm_shape;

typedef struct rl_gemm rl_gemm;

/* Times up to max_trials algorithms (1: takes the first that runs), each with at most workspace_bytes of workspace, on the
 * current contents of the buffers. Overwrites D. Returns -1 with RL_CUBLAS, CUBLAS_STATUS_NOT_SUPPORTED when cuBLASLt does not
 * support the shape. */
int rl_gemm_open(cublasLtHandle_t handle, const rl_gemm_shape *shape, const void *a, const void *b, void *d, void *workspace,
                 size_t workspace_bytes, int max_trials, rl_stream stream, rl_gemm **gemm, rl_error *err);
void rl_gemm_close(rl_gemm *gemm); /* NULL is allowed */
int rl_gemm_enqueue(rl_gemm *gemm, rl_stream stream, rl_error *err);
double rl_gemm_algorithm_us(const rl_gemm *gemm); /* time measured by open; 0: the algorithm came from the tuning cache */
int rl_gemm_algorithm_rank(const rl_gemm *gemm);  /* position of the algorithm in the heuristic's order, from 0 */

#endif
