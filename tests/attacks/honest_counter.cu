// Honest: hands out work by a counter in a variable, which it expects to be 0 at its start.
// Source: control
// Verdict: completes: the variable is restored
__device__ int next;
extern "C" __global__ void k(const float *x, float *y, int n) {
  __shared__ int block;
  if (threadIdx.x == 0) block = atomicAdd(&next, 1);
  __syncthreads();
  int i = block * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
