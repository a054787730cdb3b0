// Loads its input with the priority evict_last, so that it stays in L2 when L2 is evicted before the next cold launch.
// Source: gpu-mode/reference-kernels #170 (persisting L2)
// Verdict: correct in every launch; no faster than the same kernel with plain loads, because the priority is reset
extern "C" __global__ void k(const float *x, float *y, int n) {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v;
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(x + i), "l"(policy));
    y[i] = 2 * v;
  }
}
