// Writes only the elements that differ from the result; an earlier launch left the result in the output.
// Source: gpu-mode/reference-kernels #159 (reused output memory)
// Verdict: correct in every launch: the output is overwritten before each one, so nothing is saved
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !(y[i] == 2 * x[i])) y[i] = 2 * x[i];
}
