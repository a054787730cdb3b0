# The CUDA device and its engines. cudart is linked statically and loads the driver at run time.
find_library(RL_CUDNN_LIBRARY cudnn HINTS ${RL_CUDA_ROOT}/lib64 ${RL_CUDA_ROOT}/lib REQUIRED)
rl_library(rl_engines_cuda
  SOURCES device/cuda.cu device/cuda_graph.cu device/cuda_run.cu device/cuda_sample.cu device/cuda_properties.cu
    ${rl_device_parts}
    engines_cuda.cu engine.c train/setup.c train/cudnn.cu train/fused.cu train/persistent.cu
    train/cuda/training.cu train/cuda/training_launches.cu train/cuda/training_state.cu train/cuda/fc1.cu train/cuda/gather.cu
    train/cuda/conv1.cu train/cuda/conv1_half.cu train/cuda/conv2_forward.cu train/cuda/conv2_backward.cu
    train/cuda/conv2_float.cu train/cuda/convolutions_forward.cu train/cuda/convolutions_backward.cu
    train/cuda/fc1_half.cu train/cuda/pool.cu train/cuda/head.cu train/cuda/adam.cu
    train/cuda/persistent_kernels.cu
    library/dnn.cu library/conv.cu library/attention.cu library/gemm.cu library/tune.cu library/tuning_cache.c
    ceilings/instance.c ceilings/cuda.cu ceilings/memory.cu ceilings/arithmetic.cu ceilings/tensor.cu
    kernel/instance.c kernel/input_stager.c kernel/parallel.c kernel/check.c kernel/sequence_engine.c
    kernel/cuda.cu kernel/cudnn.cu kernel/elementwise.cu
    kernel/softmax.cu kernel/norm.cu kernel/rope.cu kernel/transpose.cu kernel/reduction.cu
    layer/instance.c layer/reference.c layer/check.c layer/elementwise.cu layer/row_product.cu
    layer/decode_attention.cu layer/cuda.cu hopper/support.cu hopper/product.cu
    kernel/gemm.cu kernel/attention.cu kernel/conv.cu kernel/lombscargle.cu
    source/argument_values.cu source/binary.cu source/engine.cu source/fill.cu source/kernel.cu source/l2_priority.cu
    source/launch_check.cu source/module_variables.cu source/reference.cu
  LIBS rl_workloads rl_data rl_nvrtc rl_base CUDA::cudart_static CUDA::cublasLt ${RL_CUDNN_LIBRARY})
target_include_directories(rl_engines_cuda PRIVATE ${RL_CUDNN_INCLUDE})

# Embeds the Lomb-Scargle kernels into the program: a fatbin of each version, and the source text for NVRTC.
set(rl_lombscargle ${CMAKE_CURRENT_LIST_DIR}/kernel/lombscargle)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${rl_lombscargle}_versions.txt)
file(STRINGS ${rl_lombscargle}_versions.txt rl_versions)
foreach(version IN LISTS rl_versions)
  separate_arguments(words UNIX_COMMAND "${version}")
  list(POP_FRONT words variant dtype)
  set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/lombscargle/${variant}_${dtype}.fatbin)
  add_custom_command(OUTPUT ${fatbin} COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/lombscargle
    COMMAND ${RL_NVCC} -fatbin -std=c++17 ${RL_CUDA_CODE} ${words} -o ${fatbin} ${rl_lombscargle}_kernels.cu
    DEPENDS ${rl_lombscargle}_kernels.cu ${rl_lombscargle}_versions.txt VERBATIM)
  list(APPEND rl_fatbins ${fatbin})
endforeach()
rl_embed(rl_engines_cuda rl_lombscargle_fatbins ${rl_fatbins})
rl_embed(rl_engines_cuda rl_lombscargle_text ${rl_lombscargle}_kernels.cu)
rl_embed(rl_engines_cuda rl_lombscargle_versions ${rl_lombscargle}_versions.txt)
