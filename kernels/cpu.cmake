# Definitions that the daemon and all workers link, the data set, and the engines of the CPU worker.
rl_library(rl_source SOURCES source/source.c source/arguments.c source/launch_request.c source/tensor_map.c source/variants.c
  source/options.c source/elements.c source/base64.c source/device_launches.c source/fatbin.c source/executed.c
  source/source_cache.c source/workload.c kernel/dtype.c
  LIBS rl_base PkgConfig::libsodium PkgConfig::libzstd Threads::Threads m)
rl_library(rl_workloads SOURCES registry.c workload.c train/model.c train/engines.c train/mnist_cnn.c ceilings/ceilings.c
  kernel/kernel.c
  kernel/sequence.c kernel/elementwise.c kernel/rows.c kernel/softmax.c kernel/norm.c kernel/rope.c kernel/transpose.c
  kernel/reduction.c kernel/gemm.c kernel/attention.c kernel/conv.c kernel/lombscargle.c
  layer/layer.c layer/launch_data.c layer/tensors.c
  LIBS rl_source rl_base m)
# -O3 vectorises the loops over products and sums.
set_source_files_properties(kernel/gemm.c kernel/attention.c kernel/conv.c kernel/lombscargle.c layer/reference.c layer/cpu.c
  PROPERTIES COMPILE_OPTIONS -O3)
rl_library(rl_data SOURCES thread_pool.c data/idx.c data/dataset.c data/synthetic.c
  LIBS rl_base PkgConfig::zlib PkgConfig::libsodium Threads::Threads m)

# rl_nvrtc starts rooflined-nvrtc, which loads NVRTC at run time, so that both targets can be built without CUDA.
rl_library(rl_nvrtc SOURCES nvrtc/nvrtc.c nvrtc/cache.c LIBS rl_base m)
rl_program(rooflined-nvrtc SOURCES nvrtc/compiler.c nvrtc/standard_headers.c LIBS rl_sandbox rl_base ${CMAKE_DL_LIBS})

rl_fuzz_target(idx SOURCES ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_idx.c LIBS rl_data PkgConfig::zlib)
rl_library(rl_oracle SOURCES train/oracle.c LIBS rl_workloads m)

# Compiles train/NAME.c, loops of the training engines, for one instruction set (VARIANT). The object file defines a table of
# these loops, rl_NAME_VARIANT; simd_pick.c chooses a table at run time.
function(rl_vectorised name variant)
  set(objects rl_${name}_${variant})
  string(TOUPPER RL_${name} table)
  add_library(${objects} OBJECT train/${name}.c)
  target_link_libraries(${objects} PRIVATE rl_flags rl_workloads)
  target_compile_definitions(${objects} PRIVATE ${table}=${objects})
  target_compile_options(${objects} PRIVATE -O3 -Wno-psabi -fno-math-errno -fno-trapping-math ${ARGN})
  set(rl_vectorised ${rl_vectorised} $<TARGET_OBJECTS:${objects}> PARENT_SCOPE)
endfunction()
# Optimised in a debug build too: memory and not arithmetic must limit the loops that measure bandwidths.
set_source_files_properties(ceilings/cpu.c PROPERTIES COMPILE_OPTIONS -O3)
# Only in these files may the compiler contract a product and a sum into an FMA. A file's option stands after the project's
# -ffp-contract=off on the command line and therefore overrides it.
set_source_files_properties(train/simd.c train/direct.c PROPERTIES COMPILE_OPTIONS -ffp-contract=fast)
rl_vectorised(simd baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  foreach(name IN ITEMS simd direct)
    rl_vectorised(${name} avx2 -mavx2 -mfma -mf16c)
    rl_vectorised(${name} avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprefer-vector-width=512)
  endforeach()
endif()
set(rl_device_parts device/device.c device/launches.c device/ranges.c)
rl_library(rl_device_cpu SOURCES device/cpu.c device/cpu_properties.c ${rl_device_parts} LIBS rl_base PkgConfig::openblas m)
rl_library(rl_engines_cpu
  SOURCES engine.c engines_cpu.c train/setup.c train/cpu.c train/reference.c train/layers.c train/blas.c
    train/fused.c train/simd_pick.c
    ceilings/instance.c ceilings/cpu.c kernel/instance.c kernel/input_stager.c kernel/parallel.c kernel/check.c
    kernel/sequence_engine.c kernel/cpu.c kernel/gemm_blas.c
    layer/instance.c layer/reference.c layer/check.c layer/cpu.c ${rl_vectorised}
  LIBS rl_workloads rl_oracle rl_data rl_device_cpu rl_base PkgConfig::openblas m)

set(rl_tests ${CMAKE_SOURCE_DIR}/tests/unit)
rl_unit_test(device_launches SOURCES ${rl_tests}/test_device_launches.c LIBS rl_source)
rl_unit_test(model SOURCES ${rl_tests}/test_model.c LIBS rl_workloads m)
rl_unit_test(numerics SOURCES ${rl_tests}/test_numerics.c LIBS rl_engines_cpu rl_oracle m)
rl_unit_test(layers SOURCES ${rl_tests}/test_layers.c LIBS rl_engines_cpu rl_oracle m)
rl_unit_test(engines_cpu SOURCES ${rl_tests}/test_engines_cpu.c LIBS rl_engines_cpu m)
rl_unit_test(lombscargle SOURCES ${rl_tests}/test_lombscargle.c LIBS rl_engines_cpu m)
target_compile_definitions(test_lombscargle PRIVATE RL_DATA="${CMAKE_SOURCE_DIR}/tests/data")
rl_unit_test(kernels SOURCES ${rl_tests}/test_kernels.c LIBS rl_engines_cpu m)
rl_unit_test(products SOURCES ${rl_tests}/test_products.c LIBS rl_engines_cpu m)
rl_unit_test(nvrtc SOURCES ${rl_tests}/test_nvrtc.c LIBS rl_nvrtc)
target_compile_definitions(test_nvrtc PRIVATE RL_COMPILER="$<TARGET_FILE:rooflined-nvrtc>")
add_dependencies(test_nvrtc rooflined-nvrtc)
set_tests_properties(kernels nvrtc PROPERTIES COST 50) # start among the first, because they take longest
rl_unit_test(sequence SOURCES ${rl_tests}/test_sequence.c LIBS rl_engines_cpu m)
rl_unit_test(layer SOURCES ${rl_tests}/test_layer.c LIBS rl_engines_cpu m)
rl_unit_test(ceilings SOURCES ${rl_tests}/test_ceilings.c LIBS rl_engines_cpu m)
# Plain C of the CUDA engines, also tested on hosts without CUDA.
rl_unit_test(tuning_cache SOURCES ${rl_tests}/test_tuning_cache.c library/tuning_cache.c LIBS rl_base)
rl_unit_test(data SOURCES ${rl_tests}/test_data.c LIBS rl_data PkgConfig::zlib)
rl_unit_test(learning SOURCES ${rl_tests}/test_learning.c LIBS rl_engines_cpu m LABELS slow)
add_test(NAME learning_mnist COMMAND test_learning mnist)
set_tests_properties(learning_mnist PROPERTIES LABELS slow SKIP_RETURN_CODE 77 TIMEOUT 300)
foreach(test IN ITEMS data learning)
  target_compile_definitions(test_${test} PRIVATE RL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endforeach()

# For docs/measurements/cpu-training.md; not a test.
add_executable(cpu_training ${CMAKE_SOURCE_DIR}/tests/measure/cpu_training.c)
set_target_properties(cpu_training PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(cpu_training PRIVATE rl_flags rl_engines_cpu m)
