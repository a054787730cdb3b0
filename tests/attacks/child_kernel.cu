// Moves its work into a kernel that it launches, which may run after the timed part.
// Source: gpu-mode/reference-kernels #161 (work moved out of the timed part)
// Verdict: refused by the compiler
__global__ void child(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
extern "C" __global__ void k(const float *x, float *y, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) child<<<gridDim.x, blockDim.x>>>(x, y, n);
}
