/* For tests of single kernels: a check that ends the program, and copies between the host and the device. */
#ifndef SIMT_DEVICE_MEMORY_H
#define SIMT_DEVICE_MEMORY_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

static inline void check(bool condition, const char *what) {
  if (condition) return;
  printf("failed: %s\n", what);
  exit(1);
}

/* Returns new device memory with a copy of the values. The caller frees it by cudaFree. */
template <typename T> static T *copy_to_device(const std::vector<T> &from) {
  T *memory = NULL;
  check(cudaMalloc(&memory, from.size() * sizeof(T)) == cudaSuccess, "cudaMalloc succeeds");
  check(cudaMemcpy(memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess, "the upload succeeds");
  return memory;
}

/* Waits for the device and copies to.size() values from device memory. */
template <typename T> static void copy_to_host(const T *from, std::vector<T> &to) {
  check(cudaDeviceSynchronize() == cudaSuccess, "the kernel succeeds");
  check(cudaMemcpy(to.data(), from, to.size() * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess, "the download succeeds");
}

#endif
