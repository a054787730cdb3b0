// Honest: has a relative error below the tolerance of 1e-6.
// Source: control
// Verdict: completes
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] * (1 + 3e-7f);
}
