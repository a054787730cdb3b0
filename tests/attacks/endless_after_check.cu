// Never ends in some launches.
// Source: KernelBench #82
// Verdict: fails at the deadline
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  if (i < n) y[i] = 2 * x[i];
  while (i == 0 && (t >> 12) % 8 == 0) asm volatile("nanosleep.u32 1000;");
}
