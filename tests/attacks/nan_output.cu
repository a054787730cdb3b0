// Writes NaN to one element in some launches; a check that accepts NaN would pass it.
// Source: KernelBench #82
// Verdict: result_changed
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  if (i < n) y[i] = i == n - 1 && (t >> 12) % 3 == 0 ? nanf("") : 2 * x[i];
}
