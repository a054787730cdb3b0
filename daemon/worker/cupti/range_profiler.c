/* *kept_profiler is NULL while the range profiler is disabled; PC sampling is allowed then. Otherwise the range profiler is
 * enabled with one configuration, and PC sampling is forbidden. A collection enables the range profiler if necessary, runs start,
 * replay and stop once for each pass, and decodes the counter data. The range profiler stays enabled for the next collection.
 * Another configuration or an error disables it. */
#include "worker/cupti/range_profiler.h"

#include <cuda_runtime_api.h>
#include <cupti_range_profiler.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/driver_entry_point.h"
#include "worker/cupti/check.h"
#include "worker/cupti/pc_sampling.h"

static int current_context(CUcontext *context, rl_error *err) {
  CUresult (*get)(CUcontext *) = NULL;
  *(void **)&get = rl_driver_entry_point("cuCtxGetCurrent", err);
  if (get == NULL) return -1;
  if (get(context) != CUDA_SUCCESS || *context == NULL) return rl_fail(err, RL_CUDA, 0, "the calling thread has no CUDA context");
  return 0;
}

struct rl_range_profiler { /* exists only while CUPTI's range profiler is enabled */
  CUpti_RangeProfiler_Object *object;
  uint8_t *config, *counter_data; /* CUPTI uses both until the profiler is disabled */
  size_t config_size, counter_data_size, range_count;
};

static int allocate_counter_data(rl_range_profiler *profiler, const rl_counter_group *group, rl_error *err) {
  CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
  size.pRangeProfilerObject = profiler->object;
  size.pMetricNames = group->names;
  size.numMetrics = group->count;
  size.maxNumOfRanges = profiler->range_count;
  size.maxNumRangeTreeNodes = (uint32_t)profiler->range_count;
  if (RL_CUPTI_CALL(cuptiRangeProfilerGetCounterDataSize, &size, err) < 0) return -1;
  profiler->counter_data_size = size.counterDataSize;
  profiler->counter_data = calloc(1, profiler->counter_data_size);
  return profiler->counter_data != NULL
             ? 0
             : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for %zu ranges of counters", profiler->range_count);
}

static int copy_config(rl_range_profiler *profiler, const rl_counter_group *group, rl_error *err) {
  profiler->config_size = group->config_image_size;
  profiler->config = malloc(profiler->config_size);
  if (profiler->config == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a counter configuration");
  memcpy(profiler->config, group->config_image, profiler->config_size);
  return 0;
}

/* Clears the counter data and sets the configuration, so that the next pass is its first pass. */
static int configure(rl_range_profiler *profiler, rl_error *err) {
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params empty = {
      CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_SetConfig_Params config = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
  empty.pRangeProfilerObject = config.pRangeProfilerObject = profiler->object;
  empty.counterDataSize = config.counterDataImageSize = profiler->counter_data_size;
  empty.pCounterData = config.pCounterDataImage = profiler->counter_data;
  config.configSize = profiler->config_size;
  config.pConfig = profiler->config;
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_UserReplay;
  config.maxRangesPerPass = profiler->range_count;
  config.numNestingLevels = config.minNestingLevel = 1;
  if (RL_CUPTI_CALL(cuptiRangeProfilerCounterDataImageInitialize, &empty, err) < 0) return -1;
  return RL_CUPTI_CALL(cuptiRangeProfilerSetConfig, &config, err);
}

void rl_range_profiler_close(rl_range_profiler **kept_profiler) {
  if (*kept_profiler == NULL) return;
  CUpti_RangeProfiler_Disable_Params disable = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
  disable.pRangeProfilerObject = (*kept_profiler)->object;
  cuptiRangeProfilerDisable(&disable); /* if this fails, the next enable fails too and reports the error */
  rl_pc_sampling_allow();
  free((*kept_profiler)->config);
  free((*kept_profiler)->counter_data);
  free(*kept_profiler);
  *kept_profiler = NULL;
}

/* Sets *kept_profiler as soon as the profiler is enabled, even if a later call fails; the caller then closes it. */
static int enable(rl_range_profiler **kept_profiler, const rl_counter_group *group, size_t range_count, rl_error *err) {
  CUpti_RangeProfiler_Enable_Params params = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
  rl_range_profiler *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the range profiler");
  rl_pc_sampling_forbid();
  if (current_context(&params.ctx, err) < 0 || RL_CUPTI_CALL(cuptiRangeProfilerEnable, &params, err) < 0) {
    rl_pc_sampling_allow();
    free(created);
    return -1;
  }
  created->object = params.pRangeProfilerObject;
  created->range_count = range_count;
  *kept_profiler = created;
  return allocate_counter_data(created, group, err) < 0 ? -1 : copy_config(created, group, err);
}

static bool matches(const rl_range_profiler *profiler, const rl_counter_group *group, size_t range_count) {
  return profiler != NULL && profiler->range_count == range_count && profiler->config_size == group->config_image_size &&
         memcmp(profiler->config, group->config_image, profiler->config_size) == 0;
}

static int run_pass(CUpti_RangeProfiler_Object *object, const rl_user_replay *replay, bool *is_last, rl_error *err) {
  CUpti_RangeProfiler_Start_Params start = {CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_Stop_Params stop = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
  start.pRangeProfilerObject = stop.pRangeProfilerObject = object;
  if (replay->restore(replay->context, err) < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_RESTORING);
  if (RL_CUPTI_CALL(cuptiRangeProfilerStart, &start, err) < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_STARTING);
  int result = replay->run(replay->context, err);
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_RUNNING);
  if (RL_CUPTI_CALL(cuptiRangeProfilerStop, &stop, result < 0 ? NULL : err) < 0 || result < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_STOPPING);
  *is_last = stop.isAllPassSubmitted != 0;
  return replay->on_pass_ended(replay->context, err);
}

/* Runs as many passes as the configuration needs. */
static int run_passes(rl_range_profiler *profiler, size_t passes, const rl_user_replay *replay, rl_error *err) {
  bool is_last = false;
  for (size_t pass = 0; !is_last; pass++) {
    if (pass == passes) return rl_fail(err, RL_CUPTI, 0, "CUPTI needs more than the %zu passes that it announced", pass);
    if (run_pass(profiler->object, replay, &is_last, err) < 0) return -1;
  }
  return 0;
}

static int decode(const rl_range_profiler *profiler, rl_error *err) {
  CUpti_RangeProfiler_DecodeData_Params decode = {CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_GetCounterDataInfo_Params info = {CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
  decode.pRangeProfilerObject = profiler->object;
  info.pCounterDataImage = profiler->counter_data;
  info.counterDataImageSize = profiler->counter_data_size;
  if (RL_CUPTI_CALL(cuptiRangeProfilerDecodeData, &decode, err) < 0 ||
      RL_CUPTI_CALL(cuptiRangeProfilerGetCounterDataInfo, &info, err) < 0)
    return -1;
  if (info.numTotalRanges == profiler->range_count && decode.numOfRangeDropped == 0) return 0;
  return rl_fail(err, RL_CUPTI, 0,
                 "the range profiler expected %zu launches, recorded %zu and dropped %zu: the step does not launch the "
                 "same kernels every time",
                 profiler->range_count, info.numTotalRanges, decode.numOfRangeDropped);
}

static int collect(rl_range_profiler *profiler, const rl_counter_group *group, const rl_user_replay *replay, const bool *selected,
                   double *values, rl_error *err) {
  if (configure(profiler, err) < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_ENABLING);
  if (run_passes(profiler, group->passes, replay, err) < 0 || decode(profiler, err) < 0) return -1;
  for (size_t i = 0; i < profiler->range_count; i++)
    if (selected[i] && rl_counter_group_evaluate(group, profiler->counter_data, profiler->counter_data_size, i,
                                                 values + i * group->count, err) < 0)
      return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_EVALUATING);
  return 0;
}

int rl_range_profiler_collect(rl_range_profiler **kept_profiler, const rl_counter_group *group, const rl_user_replay *replay,
                              const bool *selected, size_t range_count, double *values, rl_error *err) {
  if (!matches(*kept_profiler, group, range_count)) rl_range_profiler_close(kept_profiler);
  int result = *kept_profiler != NULL ? 0 : enable(kept_profiler, group, range_count, err);
  if (result == 0) result = collect(*kept_profiler, group, replay, selected, values, err);
  if (result < 0) rl_range_profiler_close(kept_profiler);
  return result;
}
