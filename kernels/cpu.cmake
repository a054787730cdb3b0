# Definitions for everyone, the data set, and the engines of the CPU worker.
set(rl_workload_sources registry.c train/model.c)
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/workload.c)
  list(APPEND rl_workload_sources workload.c engine.c)
endif()
rl_library(rl_workloads SOURCES ${rl_workload_sources} LIBS rl_base m)
