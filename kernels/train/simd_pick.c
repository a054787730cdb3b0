/* Selects the tables of vectorised loops (rl_simd, rl_direct) that this CPU can run, fastest first. */
#include "train/direct.h"
#include "train/simd.h"

#if defined(__x86_64__)
/* The AVX2 tables also use F16C. Every CPU with AVX2 has it, and older versions of clang cannot test for it. */
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static bool has_avx512(void) {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

int rl_simd_list_usable(const rl_simd *tables[RL_SIMD_TABLES]) {
  int count = 0;
#if defined(__x86_64__)
  if (has_avx512()) tables[count++] = &rl_simd_avx512;
  if (has_avx2()) tables[count++] = &rl_simd_avx2;
#endif
  tables[count++] = &rl_simd_baseline;
  return count;
}

int rl_direct_list_usable(const rl_direct *tables[RL_DIRECT_TABLES]) {
  int count = 0;
#if defined(__x86_64__)
  if (has_avx512()) tables[count++] = &rl_direct_avx512;
  if (has_avx2()) tables[count++] = &rl_direct_avx2;
#else
  (void)tables;
#endif
  return count;
}
