/* Fills an rl_error from a CUptiResult. A table has advice or a reason for each result that means that this machine cannot
 * collect counters. */
#include "worker/cupti/check.h"

#include <stddef.h>

/* Result codes of CUPTI that mean that this machine cannot collect counters, with the advice or the reason that the user
 * reads. */
static const struct {
  CUptiResult code;
  const char *advice;
} refusals[] = {
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
     "the driver gives counters to administrators only: load nvidia with NVreg_RestrictProfilingToAdminUsers=0, or grant "
     "CAP_PERFMON"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
     "the hypervisor gives this virtual GPU no counters: enable profiling for the vGPU"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "this virtual GPU has no counters"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "counters are off under confidential computing"},
    {CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "mining processors have no counters"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "counters are not available on this MIG instance"},
    {CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, "counters are not available under SLI"},
    {CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "counters are not available under this WSL"},
    {CUPTI_ERROR_NOT_SUPPORTED, "this device or driver does not support this function"},
    {CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "this device does not support CUPTI's legacy profiler"},
    {CUPTI_ERROR_HARDWARE, "the counters' hardware is not available"},
    {CUPTI_ERROR_HARDWARE_BUSY, "another profiler holds the counters"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another profiler is attached to this process"},
};

static const char *advice_for(int code) {
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
    if ((int)refusals[i].code == code) return refusals[i].advice;
  return NULL;
}

int rl_cupti_check(CUptiResult result, const char *operation, rl_error *err) {
  if (result == CUPTI_SUCCESS) return 0;
  const char *name = NULL, *text = advice_for((int)result);
  if (cuptiGetResultString(result, &name) != CUPTI_SUCCESS || name == NULL) name = "unknown CUPTI error";
  return text == NULL ? rl_fail(err, RL_CUPTI, (int)result, "%s: %s (%d)", operation, name, (int)result)
                      : rl_fail(err, RL_CUPTI, (int)result, "%s: %s (%s)", operation, text, name);
}

bool rl_cupti_error_means_unavailable(const rl_error *err) { return err->domain == RL_CUPTI && advice_for(err->code) != NULL; }
