/* Converts status codes of CUDA, cuDNN and cuBLAS into rl_error. Only .cu files include this header. */
#ifndef RL_CUDA_CHECK_H
#define RL_CUDA_CHECK_H

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "base/error.h"

/* All functions return 0, or -1 with err. operation: the call in words, such as "allocating the images". */
static inline int rl_cuda_check(cudaError_t status, const char *operation, rl_error *err) {
  if (status == cudaSuccess) return 0;
  return rl_fail(err, RL_CUDA, status, "%s: %s (%s)", operation, cudaGetErrorString(status), cudaGetErrorName(status));
}

static inline int rl_cudnn_check(cudnnStatus_t status, const char *operation, rl_error *err) {
  if (status == CUDNN_STATUS_SUCCESS) return 0;
  return rl_fail(err, RL_CUDNN, status, "%s: %s", operation, cudnnGetErrorString(status));
}

static inline int rl_cublas_check(cublasStatus_t status, const char *operation, rl_error *err) {
  if (status == CUBLAS_STATUS_SUCCESS) return 0;
  return rl_fail(err, RL_CUBLAS, status, "%s: %s", operation, cublasLtGetStatusName(status));
}

/* Checks the status of the last kernel launch. */
static inline int rl_cuda_check_launch(const char *operation, rl_error *err) {
  return rl_cuda_check(cudaGetLastError(), operation, err);
}

#endif
