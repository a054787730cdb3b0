/* CUDA, cuDNN and cuBLAS statuses into rl_error. Included by .cu files only. */
#ifndef RL_CUDA_CHECK_H
#define RL_CUDA_CHECK_H

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "base/error.h"

/* 0, or -1 with err filled. what: the call in words, "allocating the images". */
static inline int rl_cuda_ok(cudaError_t status, const char *what, rl_error *err) {
  if (status == cudaSuccess) return 0;
  return rl_fail(err, RL_CUDA, status, "%s: %s (%s)", what, cudaGetErrorString(status), cudaGetErrorName(status));
}

static inline int rl_cudnn_ok(cudnnStatus_t status, const char *what, rl_error *err) {
  if (status == CUDNN_STATUS_SUCCESS) return 0;
  return rl_fail(err, RL_CUDNN, status, "%s: %s", what, cudnnGetErrorString(status));
}

static inline int rl_cublas_ok(cublasStatus_t status, const char *what, rl_error *err) {
  if (status == CUBLAS_STATUS_SUCCESS) return 0;
  return rl_fail(err, RL_CUBLAS, status, "%s: %s", what, cublasLtGetStatusName(status));
}

/* What the last kernel launch said. */
static inline int rl_launch_ok(const char *what, rl_error *err) { return rl_cuda_ok(cudaGetLastError(), what, err); }

#endif
