// Computes the second half of the output in its first launch only.
// Source: gpu-mode/reference-kernels #170 (lazy outputs)
// Verdict: result wrong or result_changed
__device__ int launches;
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 2 || (i < n && launches == 0)) y[i] = 2 * x[i];
  if (i == 0) launches = 1;
  if (i >= n / 2 && i < n && clock64() % 64 == 0) y[i] = 0;  // wrong even where `launches` is restored
}
