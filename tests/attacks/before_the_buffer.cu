// Keeps a flag in the memory before its output.
// Source: tensara #172
// Verdict: result_changed: outside of the buffer
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
  if (i == 0) y[-100] = 1;
}
