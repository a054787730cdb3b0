/* The kernels of the ncu_2025.3_h200 pages, profiled on an NVIDIA H200 (driver 580.159.04) by `ncu --set full -o r` (2025.3.1).
 * `ncu -i r --csv` printed them: --page raw --print-units base, and --page details --print-details all. The pages omit values that
 * are the same for every kernel of a device, timelines, rules, and all kinds of tensor roofline but one. Built with nvcc
 * -arch=sm_90a -lineinfo. */
#include <cuda_fp16.h>

__global__ void relu(const __half *x, __half *y, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hmax(x[i], __float2half(0.f));
}

__global__ void stride(const float *x, float *y, size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[(i * 33) % n] * 2.f;
}

int main() {
  size_t n = 2048 * 2048;
  void *x, *y;
  cudaMalloc(&x, n * 4);
  cudaMalloc(&y, n * 4);
  cudaMemset(x, 0, n * 4);
  relu<<<n / 128, 128>>>((__half *)x, (__half *)y, n);
  stride<<<n / 256, 256>>>((float *)x, (float *)y, n);
  return cudaDeviceSynchronize();
}
