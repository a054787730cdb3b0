// Stops computing after its third launch.
// Source: KernelBench #82 (work skipped once the result was checked)
// Verdict: result_changed; the counter is restored, so that the kernel computes in every launch
__device__ int launches;
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && launches < 3) y[i] = 2 * x[i];
  if (i == 0) launches++;
}
