// Writes one element more than the output has. This is a mistake rather than an attack.
// Source: a frequent bug
// Verdict: result_changed: outside of the buffer
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = i < n ? 2 * x[i] : 0;
}
