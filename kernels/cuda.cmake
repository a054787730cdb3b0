# The CUDA device and its engines. cudart is linked statically and loads the driver at run time.
find_library(RL_CUDNN_LIBRARY cudnn HINTS ${RL_CUDA_ROOT}/lib64 ${RL_CUDA_ROOT}/lib REQUIRED)
rl_library(rl_engines_cuda
  SOURCES device_cuda.cu engines_cuda.cu engine.c train/setup.c train/cudnn.cu train/fused.cu train/cuda/training.cu train/cuda/fc1.cu
    train/cuda/gather.cu train/cuda/conv1.cu train/cuda/conv2.cu train/cuda/pool.cu train/cuda/head.cu train/cuda/adam.cu
    library/dnn.cu library/conv.cu library/attention.cu library/gemm.cu library/tune.cu library/choices.c
    kernel/instance.c kernel/pieces.c kernel/check.c kernel/cuda.cu kernel/cudnn.cu kernel/elementwise.cu
    kernel/gemm.cu kernel/attention.cu kernel/conv.cu
  LIBS rl_workloads rl_data rl_base CUDA::cudart_static CUDA::cublasLt ${RL_CUDNN_LIBRARY})
target_include_directories(rl_engines_cuda PRIVATE ${RL_CUDNN_INCLUDE})
