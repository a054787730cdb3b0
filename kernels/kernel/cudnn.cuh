/* The launcher (rl_kernel_launcher) of operators that cuDNN computes with one execution plan: attention and the convolutions. */
#ifndef RL_KERNELS_KERNEL_CUDNN_CUH
#define RL_KERNELS_KERNEL_CUDNN_CUH

#include "kernel/library.cuh"
#include "library/dnn.h"

/* Describes the instance's operation graph to cuDNN and opens a plan for it. */
typedef int rl_kernel_open_plan(const rl_kernel_instance *kernel, cudnnHandle_t cudnn, rl_dnn **plan, rl_error *err);

int rl_kernel_cudnn_open(rl_kernel_instance *kernel, rl_kernel_open_plan *open_plan, rl_error *err);
int rl_kernel_cudnn_launch(const rl_kernel_instance *kernel, cudaStream_t stream, rl_error *err);
void rl_kernel_cudnn_close(void *engine_state);

static inline cudnnDataType_t rl_kernel_cudnn_type(int dtype) {
  static const cudnnDataType_t types[RL_DTYPE_COUNT] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                                        CUDNN_DATA_BFLOAT16};
  return types[dtype];
}

template <rl_kernel_open_plan *OPEN_PLAN> static int rl_kernel_cudnn_open_with(rl_kernel_instance *kernel, rl_error *err) {
  return rl_kernel_cudnn_open(kernel, OPEN_PLAN, err);
}

/* Defines the engine rl_kernel_cuda_NAME, whose plan the function OPEN_PLAN opens. */
#define RL_KERNEL_CUDNN(NAME, OPEN_PLAN)                                                                              \
  static const rl_kernel_launcher launcher_of_##NAME = {rl_kernel_cudnn_launch, rl_kernel_cudnn_open_with<OPEN_PLAN>, \
                                                        rl_kernel_cudnn_close};                                       \
  RL_KERNEL_CUDA_ENGINE(NAME, "cudnn", "cuDNN", launcher_of_##NAME)

#endif
