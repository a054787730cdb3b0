// Writes nothing if the first element of the output has a value.
// Source: gpu-mode/reference-kernels #159
// Verdict: result wrong
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (y[0] != 0) return;
  if (i < n) y[i] = 2 * x[i];
}
