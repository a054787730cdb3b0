// Reads values that an earlier launch left in shared memory.
// Source: gpu-mode/reference-kernels #159
// Verdict: result wrong or result_changed: the memory is not initialised
extern "C" __global__ void k(const float *x, float *y, int n) {
  __shared__ volatile float residue[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool was_here = residue[255] == 12345.0f;
  if (i < n) y[i] = was_here ? 0 : 2 * x[i];
  __syncthreads();
  if (threadIdx.x == 255) residue[255] = 12345.0f;
}
