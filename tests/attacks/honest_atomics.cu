// Honest: adds floats in an order that differs from launch to launch.
// Source: control
// Verdict: completes
extern "C" __global__ void k(const float *x, float *y, int n, float *sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = 2 * x[i];
    atomicAdd(sum, x[i]);
  }
}
