/* C++ only because cupti_profiler_host.h includes <string>. */
#include "worker/cupti/plan.h"

#include <cupti_profiler_host.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/result.h"

static int host_open(const char *chip, void **host, rl_error *err) {
  CUpti_Profiler_Host_Initialize_Params params = {CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
  params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  params.pChipName = chip;
  if (rl_cupti_check(cuptiProfilerHostInitialize(&params), "cuptiProfilerHostInitialize", err) != 0) return -1;
  *host = params.pHostObject;
  return 0;
}

static void host_close(void *host) {
  if (host == NULL) return;
  CUpti_Profiler_Host_Deinitialize_Params params = {CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
  params.pHostObject = (CUpti_Profiler_Host_Object *)host;
  cuptiProfilerHostDeinitialize(&params);
}

/* A host object for exactly these metrics. One that refused a list can't be used again, hence a fresh one every time. */
static int configure(const char *chip, const char **names, size_t count, void **host, rl_error *err) {
  void *made = NULL;
  if (host_open(chip, &made, err) != 0) return -1;
  CUpti_Profiler_Host_ConfigAddMetrics_Params params = {CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE};
  params.pHostObject = (CUpti_Profiler_Host_Object *)made;
  params.ppMetricNames = names;
  params.numMetrics = count;
  if (rl_cupti_check(cuptiProfilerHostConfigAddMetrics(&params), "cuptiProfilerHostConfigAddMetrics", err) != 0) {
    host_close(made);
    return -1;
  }
  *host = made;
  return 0;
}

static void group_clear(rl_group *group) {
  host_close(group->host);
  free(group->names);
  free(group->metrics);
  free(group->image);
  memset(group, 0, sizeof *group);
}

/* Add metric to group when a configuration can hold it with what is there; 1 when it can't. */
static int group_add(const char *chip, rl_group *group, const char *name, size_t metric, rl_error *err) {
  const char **names = (const char **)realloc(group->names, (group->count + 1) * sizeof *names);
  if (names != NULL) group->names = names;
  size_t *metrics = (size_t *)realloc(group->metrics, (group->count + 1) * sizeof *metrics);
  if (metrics != NULL) group->metrics = metrics;
  if (names == NULL || metrics == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for metrics");
  void *host = NULL;
  rl_error why = {};
  names[group->count] = name;
  metrics[group->count] = metric;
  if (configure(chip, names, group->count + 1, &host, &why) != 0) return 1;
  host_close(group->host);
  group->host = host;
  group->count++;
  return 0;
}

static int group_finish(rl_group *group, rl_error *err) {
  CUpti_Profiler_Host_GetConfigImageSize_Params size = {CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE};
  size.pHostObject = (CUpti_Profiler_Host_Object *)group->host;
  if (rl_cupti_check(cuptiProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize", err) != 0) return -1;
  group->image_size = size.configImageSize;
  group->image = (uint8_t *)calloc(1, group->image_size);
  if (group->image == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a counter configuration");
  CUpti_Profiler_Host_GetConfigImage_Params image = {CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE};
  image.pHostObject = (CUpti_Profiler_Host_Object *)group->host;
  image.configImageSize = group->image_size;
  image.pConfigImage = group->image;
  if (rl_cupti_check(cuptiProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage", err) != 0) return -1;
  CUpti_Profiler_Host_GetNumOfPasses_Params passes = {CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
  passes.configImageSize = group->image_size;
  passes.pConfigImage = group->image;
  if (rl_cupti_check(cuptiProfilerHostGetNumOfPasses(&passes), "cuptiProfilerHostGetNumOfPasses", err) != 0) return -1;
  group->passes = passes.numOfPasses;
  return 0;
}

static int add_group(rl_counter_plan *plan, rl_error *err) {
  rl_group *groups = (rl_group *)realloc(plan->groups, (plan->group_count + 1) * sizeof *groups);
  if (groups == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for metrics");
  plan->groups = groups;
  memset(&groups[plan->group_count++], 0, sizeof *groups);
  return 0;
}

/* The first group that can hold the metric, or a new one. */
static int place(const char *chip, rl_counter_plan *plan, const char *name, size_t metric, rl_error *err) {
  for (size_t i = 0; i < plan->group_count; i++) {
    int refused = group_add(chip, &plan->groups[i], name, metric, err);
    if (refused <= 0) return refused;
  }
  if (add_group(plan, err) != 0) return -1;
  rl_group *group = &plan->groups[plan->group_count - 1];
  int refused = group_add(chip, group, name, metric, err);
  if (refused <= 0) return refused;
  group_clear(group);
  plan->group_count--;
  snprintf(plan->reasons[metric].text, sizeof plan->reasons[metric].text, "CUPTI has no such metric for chip %s", chip);
  return 0;
}

int rl_counter_plan_open(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan, rl_error *err) {
  void *host = NULL; /* tells a chip that CUPTI does not know from a metric that the chip does not have */
  if (host_open(chip, &host, err) != 0) return rl_wrap(err, "chip %s", chip);
  host_close(host);
  rl_counter_plan *made = (rl_counter_plan *)calloc(1, sizeof *made);
  if (made != NULL) made->reasons = (rl_plan_reason *)calloc(count + 1, sizeof *made->reasons);
  if (made == NULL || made->reasons == NULL) {
    free(made);
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory for metrics");
  }
  made->metric_count = count;
  int result = 0;
  for (size_t i = 0; i < count && result == 0; i++) result = place(chip, made, names[i], i, err);
  for (size_t i = 0; i < made->group_count && result == 0; i++) {
    result = group_finish(&made->groups[i], err);
    made->passes += made->groups[i].passes;
  }
  if (result != 0) {
    rl_counter_plan_close(made);
    return -1;
  }
  *plan = made;
  return 0;
}

void rl_counter_plan_close(rl_counter_plan *plan) {
  if (plan == NULL) return;
  for (size_t i = 0; i < plan->group_count; i++) group_clear(&plan->groups[i]);
  free(plan->groups);
  free(plan->reasons);
  free(plan);
}

int rl_group_evaluate(const rl_group *group, const uint8_t *image, size_t image_size, size_t range, double *values,
                      rl_error *err) {
  CUpti_Profiler_Host_EvaluateToGpuValues_Params params = {CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE};
  params.pHostObject = (CUpti_Profiler_Host_Object *)group->host;
  params.pCounterDataImage = image;
  params.counterDataImageSize = image_size;
  params.rangeIndex = range;
  params.ppMetricNames = group->names;
  params.numMetrics = group->count;
  params.pMetricValues = values;
  return rl_cupti_check(cuptiProfilerHostEvaluateToGpuValues(&params), "cuptiProfilerHostEvaluateToGpuValues", err);
}
