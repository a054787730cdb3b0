// Has an error slightly above the tolerance of 1e-6 in every element.
// Source: control: honest_rounding with an error above the tolerance
// Verdict: result wrong
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] * (1 + 3e-6f);
}
