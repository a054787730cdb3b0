// Overwrites its input, so that a reference computed from it later agrees.
// Source: gpu-mode/reference-kernels #161 (mutated inputs)
// Verdict: result_changed: argument 0 has access in
extern "C" __global__ void k(float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = 2 * x[i];
    x[i] = 0;
  }
}
