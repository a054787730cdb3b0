/* Checks every operator, type and variant on shapes that are not multiples of vectors, warps and tiles, with the engines that the
 * test program links. */
#ifndef RL_TESTS_KERNEL_CASES_H
#define RL_TESTS_KERNEL_CASES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernel/instance.h"

static inline rl_kernel_params kernel_params(const rl_kernel_operator *op, int dtype, const char *variant, const char *shape) {
  rl_kernel_params params;
  op->workload.defaults(&params);
  params.dtype = dtype;
  params.samples = 3;
  params.seed = 11;
  snprintf(params.variant, sizeof params.variant, "%s", variant);
  snprintf(params.shape, sizeof params.shape, "%s", shape);
  return params;
}

/* Returns NULL with err when no engine of the device supports the parameters. */
static inline rl_kernel_instance *try_open_kernel(rl_device *target, const rl_kernel_params *params, rl_error *err) {
  rl_instance *instance = NULL;
  const rl_engine *engine = rl_engine_find(params->op->workload.name, "auto", params, err);
  if (!engine || engine->open(target, params, &instance, err) < 0) return NULL;
  return (rl_kernel_instance *)instance;
}

static inline rl_kernel_instance *open_kernel(rl_device *target, const rl_kernel_params *params) {
  rl_error err = {0};
  rl_kernel_instance *kernel = try_open_kernel(target, params, &err);
  if (!kernel) fail_msg("%s %s %s: %s", params->op->workload.name, rl_dtype_names[params->dtype], params->shape, err.message);
  return kernel;
}

static inline void close_kernel(rl_kernel_instance *kernel) { kernel->base.ops->close(&kernel->base); }

/* Runs the check, fails the test when the result is wrong, and returns its relative error. */
static inline double assert_correct(rl_kernel_instance *kernel) {
  rl_error err = {0};
  rl_check check = {NAN, NAN, NAN};
  const rl_kernel_params *params = &kernel->params;
  int rc = kernel->base.ops->check(&kernel->base, &check, &err);
  if (rc < 0 || !(check.relative_error <= check.tolerance))
    fail_msg("%s %s %s %s seed %lld: error %g, limit %g %s", params->op->workload.name, rl_dtype_names[params->dtype],
             params->variant, params->shape, (long long)params->seed, check.relative_error, check.tolerance, err.message);
  return check.relative_error;
}

/* Each macro writes a shape as JSON. */
#define VECTOR(N) "{\"n\":" #N "}"
#define MATRIX(R, C) "{\"rows\":" #R ",\"columns\":" #C "}"
#define ROPE(T, H, S) "{\"tokens\":" #T ",\"heads\":" #H ",\"head_size\":" #S "}"
#define GEMM(M, N, K) "{\"m\":" #M ",\"n\":" #N ",\"k\":" #K "}"
#define ATTENTION(B, H, KV, S, D, CAUSAL) \
  "{\"batch\":" #B ",\"heads\":" #H ",\"kv_heads\":" #KV ",\"sequence\":" #S ",\"head_size\":" #D ",\"causal\":" #CAUSAL "}"
#define CONV(N, H, W, C, K, R, S, P)                                                                            \
  "{\"images\":" #N ",\"height\":" #H ",\"width\":" #W ",\"channels\":" #C ",\"filters\":" #K ",\"kernel\":" #R \
  ",\"stride\":" #S ",\"padding\":" #P "}"
/* Returns the shapes on which the operator is tested (NULL-terminated). Most of them are not multiples of vectors, warps and
 * tiles. */
static const char *const *awkward_shapes(const rl_kernel_operator *op) {
  static const struct {
    const char *first_field, *second_field; /* names of the operator's first two shape fields; NULL: not compared */
    const char *shapes[26];
  } cases[] = {
      {"n", NULL, {VECTOR(1), VECTOR(17), VECTOR(31), VECTOR(33), VECTOR(255), VECTOR(4096), VECTOR(70001), VECTOR(1048583)}},
      {"rows", "columns", {MATRIX(1, 1),       MATRIX(17, 1),     MATRIX(3, 2),      MATRIX(31, 33),   MATRIX(33, 31),
                           MATRIX(3, 85),      MATRIX(64, 64),    MATRIX(72, 136),   MATRIX(5, 1000),  MATRIX(1, 4099),
                           MATRIX(1031, 8),    MATRIX(37, 4096),  MATRIX(14, 4100),  MATRIX(14, 8200), MATRIX(14, 16392),
                           MATRIX(401, 16392), MATRIX(3, 16392),  MATRIX(3, 65536),  MATRIX(1, 65544), MATRIX(2, 70001),
                           MATRIX(521, 257),   MATRIX(1, 262144), MATRIX(1, 262147), MATRIX(262147, 1)}},
      {"tokens",
       "heads",
       {ROPE(1, 1, 2), ROPE(31, 3, 2), ROPE(33, 1, 62), ROPE(127, 7, 128), ROPE(5, 32, 80), ROPE(3, 2, 4096), ROPE(70001, 1, 16),
        ROPE(2, 401, 34)}},
      {"m", "n", {GEMM(1, 1, 1), GEMM(1, 4096, 1), GEMM(3, 5, 7), GEMM(1, 257, 1000), GEMM(17, 33, 65), GEMM(129, 255, 511)}},
      {"batch",
       "heads",
       {ATTENTION(1, 1, 1, 1, 8, false), ATTENTION(2, 3, 3, 17, 16, true), ATTENTION(2, 8, 2, 77, 64, false),
        ATTENTION(1, 4, 1, 130, 40, true), ATTENTION(1, 2, 1, 257, 256, true), ATTENTION(1, 6, 3, 300, 72, false)}},
      {"images",
       "height",
       {CONV(1, 1, 1, 1, 1, 1, 1, 0), CONV(2, 5, 7, 3, 5, 3, 1, 1), CONV(3, 9, 8, 7, 4, 3, 2, 0), CONV(2, 13, 11, 8, 16, 5, 2, 2),
        CONV(1, 8, 8, 16, 8, 1, 3, 0), CONV(4, 28, 28, 64, 64, 3, 1, 1)}},
      {"samples",
       "frequencies",
       {"{\"samples\":8,\"frequencies\":1}", "{\"samples\":9,\"frequencies\":70001}", "{\"samples\":114,\"frequencies\":4099}",
        "{\"samples\":131,\"frequencies\":2}", "{\"samples\":1000,\"frequencies\":1003}"}}};
  const rl_field *fields = op->shape_fields;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].first_field, fields[0].name) == 0 &&
        (!cases[i].second_field || strcmp(cases[i].second_field, fields[1].name) == 0))
      return cases[i].shapes;
  fail_msg("there are no test shapes for %s", op->workload.name);
  return NULL;
}
#undef VECTOR
#undef MATRIX
#undef ROPE
#undef GEMM
#undef ATTENTION
#undef CONV

/* Checks one case. On a GPU, an engine that does not support the case may refuse it with RL_INPUT and a JSON pointer. Every
 * other failure to open the engine fails the test. */
static inline void check_unless_unsupported(rl_device *target, const rl_kernel_params *params) {
  rl_error err = {0};
  rl_kernel_instance *kernel = try_open_kernel(target, params, &err);
  if (!kernel && (target->kind == RL_DEVICE_CPU || err.domain != RL_INPUT || !err.json_pointer[0]))
    fail_msg("%s %s %s: %s", params->op->workload.name, rl_dtype_names[params->dtype], params->shape, err.message);
  if (!kernel) {
    print_message("refused: %s %s %s: %s %s\n", params->op->workload.name, rl_dtype_names[params->dtype], params->shape,
                  err.json_pointer, err.message);
    return;
  }
  assert_correct(kernel);
  close_kernel(kernel);
}

static double max_case_bytes = INFINITY; /* cases that move more bytes are skipped */

/* Checks an operator in each type and variant on its awkward shapes. */
static inline void check_operator(rl_device *target, const rl_kernel_operator *op, int64_t seed) {
  for (int dtype = 0; dtype < RL_DTYPE_COUNT; dtype++)
    for (const char *const *variant = op->variants; *variant && op->dtypes & 1u << dtype; variant++) {
      if (target->kind == RL_DEVICE_CPU && rl_kernel_cpu_variant_check(op, *variant, NULL) < 0) continue;
      for (const char *const *shape = awkward_shapes(op); *shape; shape++) {
        rl_kernel_params params = kernel_params(op, dtype, *variant, *shape);
        params.seed = seed;
        if (op->workload.cost(&params, 0).bytes > max_case_bytes) continue;
        check_unless_unsupported(target, &params);
        if (target->kind == RL_DEVICE_CUDA && strcmp(*variant, "searched") == 0) break; /* a search takes seconds */
      }
    }
}

/* Checks the operators named in `names` (NULL-terminated; empty: all). Each run generates inputs from a new seed, which failure
 * messages show. */
static inline void check_operators(rl_device *target, char **names) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (const rl_kernel_operator *const *op = rl_kernel_operators; *op; op++) {
    bool wanted = *names == NULL;
    for (char **name = names; *name; name++) wanted |= strcmp(*name, (*op)->workload.name) == 0;
    if (wanted) check_operator(target, *op, now.tv_sec * 1000 + now.tv_nsec / 1000000);
  }
}

#endif
