#include "train/simd.h"

int rl_simd_usable(const rl_simd *tables[RL_SIMD_TABLES]) {
  int count = 0;
#if defined(__x86_64__)
  __builtin_cpu_init();
  /* F16C, which older clangs can't ask for, came before AVX2 in every CPU. */
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    tables[count++] = &rl_simd_avx512;
  if (avx2) tables[count++] = &rl_simd_avx2;
#endif
  tables[count++] = &rl_simd_baseline;
  return count;
}
