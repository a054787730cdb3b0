// Writes zeros from its fifth launch on, counted in a buffer that it was given as scratch space.
// Source: KernelBench #82
// Verdict: result_changed, or a correct result in every launch, because the buffer is restored
extern "C" __global__ void k(const float *x, float *y, int n, int *launches) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = *launches < 5 ? 2 * x[i] : 0;
  if (i == 0) atomicAdd(launches, 1);
}
