#include "worker/cupti/replay.h"

#include <cuda_runtime_api.h>
#include <cupti_range_profiler.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/driver.h"
#include "worker/cupti/result.h"
#include "worker/cupti/source.h"

/* Call a CUPTI function of the params style and say its name when it fails. */
#define CALL(function, params, err) rl_cupti_check(function(params), #function, err)

static int current_context(CUcontext *context, rl_error *err) {
  CUresult (*get)(CUcontext *) = NULL;
  *(void **)&get = rl_driver_function("cuCtxGetCurrent", err);
  if (get == NULL) return -1;
  if (get(context) != CUDA_SUCCESS || *context == NULL) return rl_fail(err, RL_CUDA, 0, "the calling thread has no CUDA context");
  return 0;
}

struct rl_reservation { /* enabled, with a configuration for so many ranges a pass */
  CUpti_RangeProfiler_Object *profiler;
  uint8_t *config, *image; /* image: where counters go; both belong to CUPTI as long as it is enabled */
  size_t config_size, image_size, ranges;
};

static int make_image(rl_reservation *held, const rl_group *group, rl_error *err) {
  CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
  size.pRangeProfilerObject = held->profiler;
  size.pMetricNames = group->names;
  size.numMetrics = group->count;
  size.maxNumOfRanges = held->ranges;
  size.maxNumRangeTreeNodes = (uint32_t)held->ranges;
  if (CALL(cuptiRangeProfilerGetCounterDataSize, &size, err) != 0) return -1;
  held->image_size = size.counterDataSize;
  held->image = calloc(1, held->image_size);
  return held->image != NULL ? 0 : rl_fail(err, RL_SYS, ENOMEM, "out of memory for %zu ranges of counters", held->ranges);
}

static int copy_config(rl_reservation *held, const rl_group *group, rl_error *err) {
  held->config_size = group->image_size;
  held->config = malloc(held->config_size);
  if (held->config == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a counter configuration");
  memcpy(held->config, group->image, held->config_size);
  return 0;
}

/* Empty, and with the first pass to come. */
static int begin(rl_reservation *held, rl_error *err) {
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params empty = {
      CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_SetConfig_Params config = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
  empty.pRangeProfilerObject = config.pRangeProfilerObject = held->profiler;
  empty.counterDataSize = config.counterDataImageSize = held->image_size;
  empty.pCounterData = config.pCounterDataImage = held->image;
  config.configSize = held->config_size;
  config.pConfig = held->config;
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_UserReplay;
  config.maxRangesPerPass = held->ranges;
  config.numNestingLevels = config.minNestingLevel = 1;
  if (CALL(cuptiRangeProfilerCounterDataImageInitialize, &empty, err) != 0) return -1;
  return CALL(cuptiRangeProfilerSetConfig, &config, err);
}

void rl_reservation_end(rl_reservation **kept) {
  if (*kept == NULL) return;
  CUpti_RangeProfiler_Disable_Params disable = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
  disable.pRangeProfilerObject = (*kept)->profiler;
  cuptiRangeProfilerDisable(&disable); /* where it fails, the next to be enabled says so */
  rl_source_resume();
  free((*kept)->config);
  free((*kept)->image);
  free(*kept);
  *kept = NULL;
}

static int reserve(rl_reservation **kept, const rl_group *group, size_t ranges, rl_error *err) {
  CUpti_RangeProfiler_Enable_Params enable = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
  rl_reservation *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the range profiler");
  rl_source_pause();
  if (current_context(&enable.ctx, err) != 0 || CALL(cuptiRangeProfilerEnable, &enable, err) != 0) {
    rl_source_resume();
    free(made);
    return -1;
  }
  made->profiler = enable.pRangeProfilerObject;
  made->ranges = ranges;
  *kept = made;
  return make_image(made, group, err) != 0 ? -1 : copy_config(made, group, err);
}

static bool fits(const rl_reservation *held, const rl_group *group, size_t ranges) {
  return held != NULL && held->ranges == ranges && held->config_size == group->image_size &&
         memcmp(held->config, group->image, held->config_size) == 0;
}

static int one_pass(CUpti_RangeProfiler_Object *profiler, const rl_replay *replay, bool *last, rl_error *err) {
  CUpti_RangeProfiler_Start_Params start = {CUpti_RangeProfiler_Start_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_Stop_Params stop = {CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE};
  start.pRangeProfilerObject = stop.pRangeProfilerObject = profiler;
  if (replay->restore(replay->context, err) != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_RESTORING);
  if (CALL(cuptiRangeProfilerStart, &start, err) != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_STARTING);
  int ran = replay->run(replay->context, err);
  rl_spent_on(replay->spent, RL_PIECE_RUNNING);
  if (CALL(cuptiRangeProfilerStop, &stop, ran == 0 ? err : NULL) != 0 || ran != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_STOPPING);
  *last = stop.isAllPassSubmitted != 0;
  return replay->advanced(replay->context, err);
}

/* As many passes as the configuration needs. */
static int all_passes(rl_reservation *held, size_t passes, const rl_replay *replay, rl_error *err) {
  bool last = false;
  for (size_t pass = 0; !last; pass++) {
    if (pass == passes) return rl_fail(err, RL_CUPTI, 0, "CUPTI wants more than the %zu passes that it named", pass);
    if (one_pass(held->profiler, replay, &last, err) != 0) return -1;
  }
  return 0;
}

static int decode(const rl_reservation *held, rl_error *err) {
  CUpti_RangeProfiler_DecodeData_Params decode = {CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_GetCounterDataInfo_Params info = {CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
  decode.pRangeProfilerObject = held->profiler;
  info.pCounterDataImage = held->image;
  info.counterDataImageSize = held->image_size;
  if (CALL(cuptiRangeProfilerDecodeData, &decode, err) != 0 || CALL(cuptiRangeProfilerGetCounterDataInfo, &info, err) != 0)
    return -1;
  if (info.numTotalRanges == held->ranges && decode.numOfRangeDropped == 0) return 0;
  return rl_fail(err, RL_CUPTI, 0,
                 "%zu launches were expected under the profiler, %zu were seen and %zu dropped: the step does not "
                 "launch the same kernels every time",
                 held->ranges, info.numTotalRanges, decode.numOfRangeDropped);
}

static int collect(rl_reservation *held, const rl_group *group, const rl_replay *replay, const bool *chosen, double *values,
                   rl_error *err) {
  if (begin(held, err) != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_ENABLING);
  if (all_passes(held, group->passes, replay, err) != 0 || decode(held, err) != 0) return -1;
  for (size_t i = 0; i < held->ranges; i++)
    if (chosen[i] && rl_group_evaluate(group, held->image, held->image_size, i, values + i * group->count, err) != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_EVALUATING);
  return 0;
}

int rl_replay_group(rl_reservation **kept, const rl_group *group, const rl_replay *replay, const bool *chosen, size_t ranges,
                    double *values, rl_error *err) {
  if (!fits(*kept, group, ranges)) rl_reservation_end(kept);
  int result = *kept != NULL ? 0 : reserve(kept, group, ranges, err);
  if (result == 0) result = collect(*kept, group, replay, chosen, values, err);
  if (result != 0) rl_reservation_end(kept);
  return result;
}
