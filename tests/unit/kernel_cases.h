/* Every family, type and variant over awkward shapes on the engines that the program is linked with. */
#ifndef RL_TESTS_KERNEL_CASES_H
#define RL_TESTS_KERNEL_CASES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/instance.h"

static inline rl_kernel_params kernel_params(const rl_kernel_family *family, int dtype, const char *variant, const char *shape) {
  rl_kernel_params params;
  family->workload.defaults(&params);
  params.dtype = dtype;
  params.samples = 3;
  params.seed = 11;
  snprintf(params.variant, sizeof params.variant, "%s", variant);
  snprintf(params.shape, sizeof params.shape, "%s", shape);
  return params;
}

static inline rl_kernel_instance *open_kernel(rl_device *on, const rl_kernel_params *params) {
  rl_error err = {0};
  rl_instance *instance = NULL;
  const rl_engine *engine = rl_engine_find(params->family->workload.name, "auto", params, &err);
  if (!engine || engine->open(on, params, &instance, &err)) fail_msg("%s: %s", params->family->workload.name, err.message);
  return (rl_kernel_instance *)instance;
}

static inline void close_kernel(rl_kernel_instance *kernel) { kernel->base.ops->close(&kernel->base); }

/* The relative error of a result that must be right. */
static inline double checked(rl_kernel_instance *kernel) {
  rl_error err = {0};
  rl_check check = {NAN, NAN, NAN};
  const rl_kernel_params *params = &kernel->params;
  int rc = kernel->base.ops->check(&kernel->base, &check, &err);
  if (rc || !(check.relative_error <= check.tolerance))
    fail_msg("%s %s %s %s: error %g, limit %g %s", params->family->workload.name, rl_dtype_names[params->dtype], params->variant,
             params->shape, check.relative_error, check.tolerance, err.message);
  return check.relative_error;
}

static inline void check_everything(rl_device *on) {
  static const struct { const char *rows_alone, *both; } shapes[] = {
      {"{\"n\":1}", "{\"rows\":1,\"columns\":1}"},       {"{\"n\":17}", "{\"rows\":17,\"columns\":1}"},
      {"{\"n\":255}", "{\"rows\":3,\"columns\":85}"},    {"{\"n\":4096}", "{\"rows\":1,\"columns\":4099}"},
      {"{\"n\":70001}", "{\"rows\":2,\"columns\":70001}"}, {"{\"n\":1048583}", "{\"rows\":1025,\"columns\":257}"}};
  for (const rl_kernel_family *const *family = rl_kernel_families; *family; family++)
    for (int dtype = 0; dtype < RL_DTYPES; dtype++)
      for (const char *const *variant = (*family)->variants; *variant && (*family)->dtypes & 1u << dtype; variant++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
          bool table = strcmp((*family)->shape[0].name, "rows") == 0;
          rl_kernel_params params = kernel_params(*family, dtype, *variant, table ? shapes[s].both : shapes[s].rows_alone);
          rl_kernel_instance *kernel = open_kernel(on, &params);
          checked(kernel);
          close_kernel(kernel);
        }
}

#endif
