/* In the place of kernels/library, which calls cuBLASLt: products in plain loops, and a tuner that takes what comes first. The engines around them
 * are the project's own. */
#include <cublasLt.h>
#include <cuda_fp16.h>

#include <cstdlib>

#include "library/gemm.h"
#include "library/tune.h"
#include "mix.h"

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = (cublasLtHandle_t)handle; /* not NULL, and never looked into */
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char *cublasLtGetStatusName(cublasStatus_t) { return "refused by the machine of tests/simt"; }
}

struct rl_gemm {
  rl_gemm_shape shape;
  const void *a, *b;
  void *d;
};

static double value(const void *of, int64_t at, cudaDataType_t type) {
  return type == CUDA_R_16F ? (double)__half2float(((const __half *)of)[at]) : (double)((const float *)of)[at];
}

static void store(void *to, int64_t at, cudaDataType_t type, double value) {
  if (type == CUDA_R_16F) ((__half *)to)[at] = __float2half_rn((float)value);
  else ((float *)to)[at] = (float)value;
}

int rl_gemm_open(cublasLtHandle_t, const rl_gemm_shape *shape, const void *a, const void *b, void *d, void *, size_t, int, rl_stream, rl_gemm **gemm,
                 rl_error *) {
  *gemm = new rl_gemm{*shape, a, b, d};
  return 0;
}

void rl_gemm_close(rl_gemm *gemm) { delete gemm; }
double rl_gemm_us(const rl_gemm *) { return 0; }
int rl_gemm_rank(const rl_gemm *) { return 0; }

int rl_gemm_enqueue(rl_gemm *gemm, rl_stream, rl_error *) {
  const rl_gemm_shape &s = gemm->shape;
  const int64_t a_step = s.transpose_a ? 1 : s.lda, a_row = s.transpose_a ? s.lda : 1, b_step = s.transpose_b ? s.ldb : 1, b_column = s.transpose_b ? 1 : s.ldb;
  for (int64_t p = 0; p < s.batch; p++)
    for (int64_t column = 0; column < s.n; column++)
      for (int64_t row = 0; row < s.m; row++) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; k++)
          sum += value(gemm->a, p * s.stride_a + row * a_row + k * a_step, s.input) * value(gemm->b, p * s.stride_b + column * b_column + k * b_step, s.input);
        store(gemm->d, p * s.stride_d + column * s.ldd + row, s.output, sum);
      }
  return 0;
}

int rl_tune_time(int (*enqueue)(void *arg, rl_stream stream, rl_error *err), void *arg, rl_stream stream, double *us, rl_error *err) {
  *us = 1;
  return enqueue(arg, stream, err);
}

int rl_tune_noise(void *memory, size_t count, size_t value_bytes, rl_stream, rl_error *) {
  for (size_t i = 0; i < count; i++)
    store(memory, (int64_t)i, value_bytes == 2 ? CUDA_R_16F : CUDA_R_32F, (double)(rl_mix64(i) >> 40) * 0x1p-23 - 1);
  return 0;
}

int rl_tune_device(const rl_device *, rl_error *) {
  rl_tune_scope("simt");
  return 0;
}
