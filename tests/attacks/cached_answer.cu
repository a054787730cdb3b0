// Keeps the answer of the first launch in a variable and copies it later.
// Source: gpu-mode/reference-kernels #160 (replayed answers)
// Verdict: correct in every launch: the variable is restored, so every launch computes
__device__ float answer[1 << 17];
__device__ int has_answer;
__device__ unsigned done;
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = has_answer ? answer[i] : 2 * x[i];
  if (i < n && !has_answer) answer[i] = 2 * x[i] + 1;  // differs from 2 x, so that its use is detected
  if (atomicAdd(&done, 1u) == gridDim.x * blockDim.x - 1) has_answer = 1;
}
