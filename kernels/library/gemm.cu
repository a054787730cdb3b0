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
  bool is_fp64; /* sums and factors are FP64 */
  double us;
  int rank;
};

void rl_gemm_close(rl_gemm *g) {
  if (!g) return;
  if (g->product) cublasLtMatmulDescDestroy(g->product);
  if (g->layout_a) cublasLtMatrixLayoutDestroy(g->layout_a);
  if (g->layout_b) cublasLtMatrixLayoutDestroy(g->layout_b);
  if (g->layout_d) cublasLtMatrixLayoutDestroy(g->layout_d);
  free(g);
}

int rl_gemm_enqueue(rl_gemm *g, rl_stream stream, rl_error *err) {
  static const float one = 1.0f, zero = 0.0f;
  static const double fp64_one = 1.0, fp64_zero = 0.0;
  const void *all = g->is_fp64 ? (const void *)&fp64_one : &one, *none = g->is_fp64 ? (const void *)&fp64_zero : &zero;
  return rl_cublas_check(cublasLtMatmul(g->handle, g->product, all, g->a, g->layout_a, g->b, g->layout_b, g->addend ? all : none,
                                        g->addend ? g->addend : g->d, g->layout_d, g->d, g->layout_d, &g->algorithm, g->workspace,
                                        g->workspace_bytes, (cudaStream_t)stream),
                         "running a matrix product", err);
}

double rl_gemm_algorithm_us(const rl_gemm *g) { return g->us; }
int rl_gemm_algorithm_rank(const rl_gemm *g) { return g->rank; }

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

static int describe(rl_gemm *g, const rl_gemm_shape *s, rl_error *err) {
  cublasOperation_t a = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, b = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasComputeType_t compute = g->is_fp64      ? CUBLAS_COMPUTE_64F
                                : s->allow_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                : CUBLAS_COMPUTE_32F;
  if (rl_cublas_check(cublasLtMatmulDescCreate(&g->product, compute, g->is_fp64 ? CUDA_R_64F : CUDA_R_32F),
                      "describing a product", err) < 0 ||
      rl_cublas_check(cublasLtMatmulDescSetAttribute(g->product, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a),
                      "describing a product", err) < 0 ||
      rl_cublas_check(cublasLtMatmulDescSetAttribute(g->product, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b),
                      "describing a product", err) < 0 ||
      create_layout(s->input, s->transpose_a ? s->k : s->m, s->transpose_a ? s->m : s->k, s->lda, s->batch_count, s->stride_a,
                    &g->layout_a, err) < 0 ||
      create_layout(s->input, s->transpose_b ? s->n : s->k, s->transpose_b ? s->k : s->n, s->ldb, s->batch_count, s->stride_b,
                    &g->layout_b, err) < 0 ||
      create_layout(s->output, s->m, s->n, s->ldd, s->batch_count, s->stride_d, &g->layout_d, err) < 0)
    return -1;
  return 0;
}

/* Returns the algorithms that the heuristic proposes, best first. */
static int find_algorithms(const rl_gemm *g, bool exact_split_k, cublasLtMatmulHeuristicResult_t found[MAX_ALGORITHMS],
                           int *count, rl_error *err) {
  cublasLtMatmulPreference_t preference = NULL;
  const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (rl_cublas_check(cublasLtMatmulPreferenceCreate(&preference), "asking for algorithms", err) < 0) return -1;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &g->workspace_bytes,
                                       sizeof g->workspace_bytes);
  if (exact_split_k)
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(g->handle, g->product, g->layout_a, g->layout_b, g->layout_d,
                                                         g->layout_d, preference, MAX_ALGORITHMS, found, count);
  cublasLtMatmulPreferenceDestroy(preference);
  return rl_cublas_check(status, "asking for algorithms", err);
}

/* Sets g->algorithm to the cached choice, or to the fastest algorithm. */
static int choose(rl_gemm *g, const char *key, bool exact_split_k, int max_trials, rl_stream stream, rl_error *err) {
  cublasLtMatmulHeuristicResult_t found[MAX_ALGORITHMS];
  int count = 0, best = -1;
  if (find_algorithms(g, exact_split_k, found, &count, err) < 0) return -1;
  int64_t cached = rl_tuning_cache_find(key);
  if (cached >= 0 && cached < count) {
    g->algorithm = found[cached].algo;
    g->rank = (int)cached;
    return 0;
  }
  for (int i = 0, tried = 0; i < count && tried < max_trials; i++) {
    double us;
    g->algorithm = found[i].algo;
    if (rl_tune_measure_us(enqueue_trial, g, stream, &us, NULL) < 0) continue;
    tried++;
    if (best < 0 || us < g->us) {
      best = i;
      g->us = us;
    }
  }
  if (best < 0)
    return rl_fail(err, RL_CUBLAS, CUBLAS_STATUS_NOT_SUPPORTED, "cuBLASLt has no algorithm for this product (%d tried)", count);
  g->algorithm = found[best].algo;
  g->rank = best;
  rl_tuning_cache_add(key, best);
  return 0;
}

int rl_gemm_open(cublasLtHandle_t handle, const rl_gemm_shape *shape, const void *a, const void *b, void *d, void *workspace,
                 size_t workspace_bytes, int max_trials, rl_stream stream, rl_gemm **gemm, rl_error *err) {
  rl_gemm *g = (rl_gemm *)calloc(1, sizeof *g);
  if (!g) return rl_fail_errno(err, "describing a product");
  g->handle = handle;
  g->a = a;
  g->b = b;
  g->d = d;
  g->workspace = workspace;
  g->workspace_bytes = workspace_bytes;
  g->is_fp64 = shape->input == CUDA_R_64F;
  g->addend = shape->addend;
  char key[160];
  snprintf(key, sizeof key, "gemm %lld %lld %lld %d %d %lld %d %d %d %d %lld %d %d", (long long)shape->m, (long long)shape->n,
           (long long)shape->k, shape->transpose_a, shape->transpose_b, (long long)shape->batch_count, shape->input,
           shape->output, shape->allow_tf32, shape->exact_split_k, (long long)shape->ldd, shape->addend != NULL, max_trials);
  if (describe(g, shape, err) < 0 || choose(g, key, shape->exact_split_k, max_trials, stream, err) < 0) {
    rl_gemm_close(g);
    return -1;
  }
  *gemm = g;
  return 0;
}
