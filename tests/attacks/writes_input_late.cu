// Overwrites one element of its input in some launches.
// Source: gpu-mode/reference-kernels #161
// Verdict: result_changed: argument 0 has access in
extern "C" __global__ void k(float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  if (i < n) y[i] = 2 * x[i];
  if (i == n - 1 && (t >> 12) % 3 == 0) x[i] = 5;
}
