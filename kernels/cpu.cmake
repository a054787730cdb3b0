# Definitions for everyone, the data set, and the engines of the CPU worker.
rl_library(rl_workloads SOURCES registry.c workload.c engine.c train/model.c LIBS rl_base m)
rl_library(rl_data SOURCES threads.c data/idx.c data/dataset.c data/synthetic.c
  LIBS rl_base PkgConfig::zlib PkgConfig::libsodium Threads::Threads m)

rl_fuzz_target(idx SOURCES ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_idx.c LIBS rl_data PkgConfig::zlib)
rl_library(rl_oracle SOURCES train/oracle.c LIBS rl_workloads m)
