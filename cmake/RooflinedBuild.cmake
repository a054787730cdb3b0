# Functions and settings of all targets: warnings, sanitizers, include roots, the CUDA toolchain, embedded files, tests.

find_program(RL_CCACHE ccache)
if(RL_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${RL_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${RL_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${RL_CCACHE})
endif()

set(RL_HAVE_CUDA OFF)
if(NOT RL_CUDA STREQUAL "OFF")
  find_program(RL_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
  if(RL_NVCC)
    get_filename_component(RL_CUDA_ROOT ${RL_NVCC} DIRECTORY)
    get_filename_component(RL_CUDA_ROOT ${RL_CUDA_ROOT} DIRECTORY)
    find_path(RL_CUDNN_INCLUDE cudnn.h HINTS ${RL_CUDA_ROOT}/include)
  endif()
  if(RL_NVCC AND RL_CUDNN_INCLUDE)
    set(CMAKE_CUDA_COMPILER ${RL_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES OFF) # set below: CMake 3.25 does not know all of them
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_CUDA_STANDARD 17)
    foreach(arch IN LISTS RL_CUDA_ARCHITECTURES)
      list(APPEND RL_CUDA_CODE -gencode=arch=compute_${arch},code=sm_${arch})
    endforeach()
    list(APPEND RL_CUDA_CODE -gencode=arch=compute_${RL_CUDA_PTX},code=compute_${RL_CUDA_PTX})
    set(RL_HAVE_CUDA ON)
  elseif(RL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RL_CUDA=ON, but nvcc or cudnn.h was not found: install CUDA 13 with cuDNN 9, or set RL_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA worker: ${RL_HAVE_CUDA}")

add_library(rl_flags INTERFACE)
target_include_directories(rl_flags INTERFACE ${CMAKE_SOURCE_DIR}/daemon ${CMAKE_SOURCE_DIR}/kernels ${CMAKE_SOURCE_DIR})
target_compile_definitions(rl_flags INTERFACE _GNU_SOURCE)
target_compile_options(rl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wno-missing-field-initializers -Wno-format-truncation
    -fno-omit-frame-pointer -ffp-contract=off>
  $<$<AND:$<BOOL:${RL_WERROR}>,$<COMPILE_LANGUAGE:C>>:-Werror>
  $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo -Xcompiler=-Wall --compress-mode=${RL_CUDA_COMPRESSION} ${RL_CUDA_CODE}>)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND RL_SANITIZE STREQUAL "")
  target_compile_options(rl_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-D_FORTIFY_SOURCE=2 -fstack-protector-strong>)
endif()
if(RL_SANITIZE)
  # Optimising instrumented code takes the compiler three times as long and hardly makes the tests faster. -g1 names the
  # functions and lines of a report.
  if(NOT RL_FUZZ)
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-Og -g1 -DNDEBUG")
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-Og -g1 -DNDEBUG")
  endif()
  target_compile_options(rl_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fsanitize=${RL_SANITIZE} -fno-sanitize-recover=all>)
  target_link_options(rl_flags INTERFACE -fsanitize=${RL_SANITIZE})
endif()
if(RL_FUZZ)
  target_compile_options(rl_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
endif()

# The target `installed` builds every installed program and module, without the tests. rl_program and the modules
# add themselves to it.
add_custom_target(installed)

# rl_library(NAME SOURCES... [LIBS...]): a static library with the project's flags.
function(rl_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC rl_flags ${ARG_LIBS})
endfunction()

# rl_program(NAME SOURCES... [LIBS...] [COMPONENT name]): an installed program.
function(rl_program name)
  cmake_parse_arguments(ARG "" "COMPONENT" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE rl_flags ${ARG_LIBS})
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT ${CMAKE_INSTALL_DEFAULT_COMPONENT_NAME})
  endif()
  install(TARGETS ${name} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_COMPONENT})
  add_dependencies(installed ${name})
endfunction()

# rl_unit_test(NAME SOURCES... [LIBS...] [LABELS...]): a cmocka program that is a CTest test.
function(rl_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(test_${name} ${ARG_SOURCES})
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE rl_flags ${ARG_LIBS} PkgConfig::cmocka)
  add_test(NAME ${name} COMMAND test_${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set(timeout 300)
  if(RL_SANITIZE)
    set(timeout 900) # sanitizers make tests several times slower
  endif()
  # Exit code 77: skipped, with a printed reason.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${timeout})
endfunction()

# rl_python_test(NAME FILES [LABELS...] [TIMEOUT s]): pytest of Debian's Python, run with the programs of this build.
function(rl_python_test name files)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
  endif()
  add_test(NAME ${name} COMMAND /usr/bin/python3 -m pytest -q -p no:cacheprovider ${files})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "ROOFLINED_BUILD=${CMAKE_BINARY_DIR};ROOFLINED_SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()

# rl_generated_file(NAME FILE): a CTest test that a generated file of the tree is current (scripts/generated.sh lists them).
function(rl_generated_file name file)
  add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/scripts/generated.sh --check ${file})
  set_tests_properties(${name} PROPERTIES LABELS unit ENVIRONMENT "ROOFLINED_BUILD=${CMAKE_BINARY_DIR}")
endfunction()

# rl_fuzz_target(NAME SOURCES... [LIBS...]): built with RL_FUZZ; run by scripts/fuzz.sh.
function(rl_fuzz_target name)
  if(RL_FUZZ)
    cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
    add_executable(fuzz_${name} ${ARG_SOURCES})
    set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    target_link_libraries(fuzz_${name} PRIVATE rl_flags ${ARG_LIBS} -fsanitize=fuzzer)
  endif()
endfunction()

# rl_embed(TARGET NAME FILE...): compiles the files into TARGET as an array `const rl_embedded NAME[]` (cmake/embedded.h), in
# their order. The last element has a NULL name.
function(rl_embed target name)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DOUTPUT=${output} "-DFILES=${ARGN}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/cmake)
endfunction()
