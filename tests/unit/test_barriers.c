/* Tests that rl_cubin_find reads the same number of barriers from a kernel's code as ptxas reports. Skipped without libnvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "nvrtc/nvrtc.h"
#include "base/cubin.h"

enum { SKIPPED = 77 };

static const struct {
  const char *name, *body;
  int barriers;
} kernels[] = {
    {"none", "", 0},
    {"one", "__syncthreads();", 1},
    {"three", "asm volatile(\"bar.sync 2, 64;\");", 3}, /* the highest barrier is 2, so barriers 0 and 1 count too */
    {"computed", "asm volatile(\"bar.sync %0, 64;\" :: \"r\"((int)x[1]));", 16},
};
enum { KERNEL_COUNT = sizeof kernels / sizeof *kernels };

static const char *const archs[] = {"sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"};

static int compile_kernel(const char *arch, const char *entry, const char *body, rl_nvrtc_result *result, rl_error *err) {
  char code[512];
  snprintf(code, sizeof code,
           "extern \"C\" __global__ void %s(float *x) { __shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x]; %s "
           "x[threadIdx.x] = s[63 - threadIdx.x]; }",
           entry, body);
  const rl_nvrtc_request request = {
      .code = code, .length = strlen(code), .entry = entry, .arch = arch, .compiler_path = RL_COMPILER};
  return rl_nvrtc_compile(&request, result, err);
}

static void barriers_match_those_of_ptxas(void **state) {
  (void)state;
  for (size_t i = 0; i < KERNEL_COUNT * sizeof archs / sizeof *archs; i++) {
    const char *arch = archs[i / KERNEL_COUNT], *name = kernels[i % KERNEL_COUNT].name;
    int barriers = kernels[i % KERNEL_COUNT].barriers;
    char line[64];
    rl_nvrtc_result result;
    rl_cubin_function function = {.barriers = -1};
    rl_error err = {0};
    if (compile_kernel(arch, name, kernels[i % KERNEL_COUNT].body, &result, &err) < 0)
      fail_msg("%s for %s: %s", name, arch, err.message);
    snprintf(line, sizeof line, "used %d barriers", barriers);
    if (result.log == NULL || strstr(result.log, line) == NULL)
      fail_msg("%s for %s: not \"%s\" in: %s", name, arch, line, result.log);
    if (rl_cubin_find(result.image, result.image_bytes, name, &function, &err) < 0)
      fail_msg("%s for %s: %s", name, arch, err.message);
    if (function.barriers != barriers) fail_msg("%s for %s: %d barriers, not %d", name, arch, function.barriers, barriers);
    rl_nvrtc_clear(&result);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(barriers_match_those_of_ptxas)};
  rl_nvrtc_result result;
  rl_error err = {0};
  int first_rc = compile_kernel("sm_75", "none", "", &result, &err);
  rl_nvrtc_clear(&result);
  if (first_rc < 0 && err.domain == RL_ERRNO) {
    printf("skipped: %s\n", err.message);
    return SKIPPED;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
