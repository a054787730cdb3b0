/* Implements gemm.h: describes a product to cuBLASLt and chooses its algorithm. */
#include "library/gemm.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda_check.h"
#include "library/tune.h"

enum { MAX_ALGORITHMS = 32 };

struct rl_gemm {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t layout_a, layout_b, layout_d;
  cublasLtMatmulAlgo_t algorithm;
  const void *a, *b, *addend;
  void *d, *workspace;
  size_t workspace_bytes;
  bool is_fp64; /* sums, and the factors alpha and beta, are FP64 */
  double us;    /* time of the algorithm, as rl_gemm_algorithm_us returns it */
  int rank;     /* position of the algorithm in the heuristic's order */
};

void rl_gemm_close(rl_gemm *self) {
  if (!self) return;
  if (self->product) cublasLtMatmulDescDestroy(self->product);
  if (self->layout_a) cublasLtMatrixLayoutDestroy(self->layout_a);
  if (self->layout_b) cublasLtMatrixLayoutDestroy(self->layout_b);
  if (self->layout_d) cublasLtMatrixLayoutDestroy(self->layout_d);
  free(self);
}

int rl_gemm_enqueue(rl_gemm *self, rl_stream stream, rl_error *err) {
  static const float fp32_one = 1.0f, fp32_zero = 0.0f;
  static const double fp64_one = 1.0, fp64_zero = 0.0;
  const void *one = self->is_fp64 ? (const void *)&fp64_one : &fp32_one;
  const void *zero = self->is_fp64 ? (const void *)&fp64_zero : &fp32_zero;
  return rl_cublas_check(
      cublasLtMatmul(self->handle, self->product, one, self->a, self->layout_a, self->b, self->layout_b,
                     self->addend ? one : zero, self->addend ? self->addend : self->d, self->layout_d, self->d, self->layout_d,
                     &self->algorithm, self->workspace, self->workspace_bytes, (cudaStream_t)stream),
      "running a matrix product", err);
}

double rl_gemm_algorithm_us(const rl_gemm *self) { return self->us; }
int rl_gemm_algorithm_rank(const rl_gemm *self) { return self->rank; }

static int enqueue_trial(void *arg, rl_stream stream, rl_error *err) { return rl_gemm_enqueue((rl_gemm *)arg, stream, err); }

static int create_layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride,
                         cublasLtMatrixLayout_t *layout, rl_error *err) {
  int32_t count = (int32_t)batch;
  if (rl_cublas_check(cublasLtMatrixLayoutCreate(layout, type, (uint64_t)rows, (uint64_t)columns, ld), "describing a matrix",
                      err) < 0)
    return -1;
  if (batch == 1) return 0;
  if (rl_cublas_check(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                      "describing a matrix", err) < 0)
    return -1;
  return rl_cublas_check(
      cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
      "describing a matrix", err);
}

static int describe(rl_gemm *self, const rl_gemm_shape *shape, rl_error *err) {
  cublasOperation_t a = shape->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, b = shape->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasComputeType_t compute = self->is_fp64       ? CUBLAS_COMPUTE_64F
                                : shape->allow_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : CUBLAS_COMPUTE_32F;
  if (rl_cublas_check(cublasLtMatmulDescCreate(&self->product, compute, self->is_fp64 ? CUDA_R_64F : CUDA_R_32F),
                      "describing a product", err) < 0 ||
      rl_cublas_check(cublasLtMatmulDescSetAttribute(self->product, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a),
                      "describing a product", err) < 0 ||
      rl_cublas_check(cublasLtMatmulDescSetAttribute(self->product, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b),
                      "describing a product", err) < 0 ||
      create_layout(shape->input, shape->transpose_a ? shape->k : shape->m, shape->transpose_a ? shape->m : shape->k, shape->lda,
                    shape->batch_count, shape->stride_a, &self->layout_a, err) < 0 ||
      create_layout(shape->input, shape->transpose_b ? shape->n : shape->k, shape->transpose_b ? shape->k : shape->n, shape->ldb,
                    shape->batch_count, shape->stride_b, &self->layout_b, err) < 0 ||
      create_layout(shape->output, shape->m, shape->n, shape->ldd, shape->batch_count, shape->stride_d, &self->layout_d, err) < 0)
    return -1;
  return 0;
}

/* Writes the algorithms that the heuristic proposes to `found`, best first, and their number to *count. */
static int find_algorithms(const rl_gemm *self, bool exact_split_k, cublasLtMatmulHeuristicResult_t found[MAX_ALGORITHMS],
                           int *count, rl_error *err) {
  cublasLtMatmulPreference_t preference = NULL;
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (rl_cublas_check(cublasLtMatmulPreferenceCreate(&preference), "asking for algorithms", err) < 0) return -1;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &self->workspace_bytes,
                                       sizeof self->workspace_bytes);
  if (exact_split_k)
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
  cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(self->handle, self->product, self->layout_a, self->layout_b, self->layout_d, self->layout_d,
                                     preference, MAX_ALGORITHMS, found, count);
  cublasLtMatmulPreferenceDestroy(preference);
  return rl_cublas_check(status, "asking for algorithms", err);
}

/* Sets self->algorithm to the choice in the tuning cache, or else to the fastest algorithm. */
static int choose(rl_gemm *self, const char *key, bool exact_split_k, int max_trials, rl_stream stream, rl_error *err) {
  cublasLtMatmulHeuristicResult_t found[MAX_ALGORITHMS];
  int count = 0, best = -1;
  if (find_algorithms(self, exact_split_k, found, &count, err) < 0) return -1;
  int64_t cached = rl_tuning_cache_find(key);
  if (cached >= 0 && cached < count) {
    self->algorithm = found[cached].algo;
    self->rank = (int)cached;
    return 0;
  }
  for (int i = 0, tried = 0; i < count && tried < max_trials; i++) {
    double us;
    self->algorithm = found[i].algo;
    if (rl_tune_measure_us(enqueue_trial, self, stream, &us, NULL) < 0) continue;
    tried++;
    if (best < 0 || us < self->us) {
      best = i;
      self->us = us;
    }
  }
  if (best < 0)
    return rl_fail(err, RL_CUBLAS, CUBLAS_STATUS_NOT_SUPPORTED, "cuBLASLt has no algorithm for this product (%d tried)", count);
  self->algorithm = found[best].algo;
  self->rank = best;
  rl_tuning_cache_add(key, best);
  return 0;
}

int rl_gemm_open(cublasLtHandle_t handle, const rl_gemm_shape *shape, const void *a, const void *b, void *d, void *workspace,
                 size_t workspace_bytes, int max_trials, rl_stream stream, rl_gemm **gemm, rl_error *err) {
  rl_gemm *self = (rl_gemm *)calloc(1, sizeof *self);
  if (!self) return rl_fail_errno(err, "describing a product");
  self->handle = handle;
  self->a = a;
  self->b = b;
  self->d = d;
  self->workspace = workspace;
  self->workspace_bytes = workspace_bytes;
  self->is_fp64 = shape->input == CUDA_R_64F;
  self->addend = shape->addend;
  char key[160];
  snprintf(key, sizeof key, "gemm %lld %lld %lld %d %d %lld %d %d %d %d %lld %d %d", (long long)shape->m, (long long)shape->n,
           (long long)shape->k, shape->transpose_a, shape->transpose_b, (long long)shape->batch_count, shape->input,
           shape->output, shape->allow_tf32, shape->exact_split_k, (long long)shape->ldd, shape->addend != NULL, max_trials);
  if (describe(self, shape, err) < 0 || choose(self, key, shape->exact_split_k, max_trials, stream, err) < 0) {
    rl_gemm_close(self);
    return -1;
  }
  *gemm = self;
  return 0;
}
