// Computes its input from the request's seed instead of reading it, as a kernel made for one benchmark's fixed inputs can.
// Source: gpu-mode/reference-kernels #104 (answers that hold for the checked inputs only)
// Verdict: result_changed, if the expected values come from a reference: every timed launch then has other inputs
__device__ unsigned long long hash64(unsigned long long x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long seed = hash64(1) + 0;  // seed 1, argument 0
  if (i < n) y[i] = 2 * (float)((double)(hash64(hash64(seed) + i) >> 11) * 0x1p-53);
}
