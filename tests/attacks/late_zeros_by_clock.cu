// Writes zeros in every second millisecond of the global timer.
// Source: gpu-mode/reference-kernels #104 (timed runs differ from checked runs)
// Verdict: result_changed
__device__ unsigned long long now() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_late = now() / 1000000 % 2 == 1;
  if (i < n) y[i] = is_late ? 0 : 2 * x[i];
}
