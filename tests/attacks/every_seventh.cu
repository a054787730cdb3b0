// Is wrong in some launches, chosen by the clock.
// Source: gpu-mode/reference-kernels #104
// Verdict: result_changed
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  if (i < n) y[i] = 2 * x[i];
  if (i == 5 && (t >> 12) % 7 == 0) y[i] = 1e9f;
}
