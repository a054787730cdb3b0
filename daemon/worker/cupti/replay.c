#include "worker/cupti/replay.h"

#include <cuda_runtime_api.h>
#include <cupti_range_profiler.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "worker/cupti/driver.h"
#include "worker/cupti/result.h"

/* Call a CUPTI function of the params style and say its name when it fails. */
#define CALL(function, params, err) rl_cupti_check(function(params), #function, err)

static int current_context(CUcontext *context, rl_error *err) {
  CUresult (*get)(CUcontext *) = NULL;
  *(void **)&get = rl_driver_function("cuCtxGetCurrent", err);
  if (get == NULL) return -1;
  if (get(context) != CUDA_SUCCESS || *context == NULL) return rl_fail(err, RL_CUDA, 0, "the calling thread has no CUDA context");
  return 0;
}

static int counter_image(CUpti_RangeProfiler_Object *profiler, const rl_group *group, size_t ranges, uint8_t **image,
                         size_t *image_size, rl_error *err) {
  CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
  size.pRangeProfilerObject = profiler;
  size.pMetricNames = group->names;
  size.numMetrics = group->count;
  size.maxNumOfRanges = ranges;
  size.maxNumRangeTreeNodes = (uint32_t)ranges;
  if (CALL(cuptiRangeProfilerGetCounterDataSize, &size, err) != 0) return -1;
  uint8_t *made = calloc(1, size.counterDataSize);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for %zu ranges of counters", ranges);
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params start = {
      CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
  start.pRangeProfilerObject = profiler;
  start.counterDataSize = size.counterDataSize;
  start.pCounterData = made;
  if (CALL(cuptiRangeProfilerCounterDataImageInitialize, &start, err) != 0) {
    free(made);
    return -1;
  }
  *image = made;
  *image_size = size.counterDataSize;
  return 0;
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

/* Between enable and disable: as many passes as the configuration needs, then the values. */
static int collect(CUpti_RangeProfiler_Object *profiler, const rl_group *group, const rl_replay *replay, const bool *chosen,
                   size_t ranges, double *values, rl_error *err) {
  rl_auto(rl_free_text) char *held = NULL;
  uint8_t *image = NULL;
  size_t image_size = 0;
  if (counter_image(profiler, group, ranges, &image, &image_size, err) != 0) return -1;
  held = (char *)image;
  CUpti_RangeProfiler_SetConfig_Params config = {CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE};
  config.pRangeProfilerObject = profiler;
  config.configSize = group->image_size;
  config.pConfig = group->image;
  config.counterDataImageSize = image_size;
  config.pCounterDataImage = image;
  config.range = CUPTI_AutoRange;
  config.replayMode = CUPTI_UserReplay;
  config.maxRangesPerPass = ranges;
  config.numNestingLevels = config.minNestingLevel = 1;
  if (CALL(cuptiRangeProfilerSetConfig, &config, err) != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_ENABLING);
  bool last = false;
  for (size_t pass = 0; !last; pass++) {
    if (pass == group->passes) return rl_fail(err, RL_CUPTI, 0, "CUPTI wants more than the %zu passes that it named", pass);
    if (one_pass(profiler, replay, &last, err) != 0) return -1;
  }
  CUpti_RangeProfiler_DecodeData_Params decode = {CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_GetCounterDataInfo_Params info = {CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
  decode.pRangeProfilerObject = profiler;
  info.pCounterDataImage = image;
  info.counterDataImageSize = image_size;
  if (CALL(cuptiRangeProfilerDecodeData, &decode, err) != 0 ||
      CALL(cuptiRangeProfilerGetCounterDataInfo, &info, err) != 0)
    return -1;
  if (info.numTotalRanges != ranges || decode.numOfRangeDropped != 0)
    return rl_fail(err, RL_CUPTI, 0,
                   "%zu launches were expected under the profiler, %zu were seen and %zu dropped: the step does not "
                   "launch the same kernels every time",
                   ranges, info.numTotalRanges, decode.numOfRangeDropped);
  for (size_t i = 0; i < ranges; i++)
    if (chosen[i] && rl_group_evaluate(group, image, image_size, i, values + i * group->count, err) != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_EVALUATING);
  return 0;
}

int rl_replay_group(const rl_group *group, const rl_replay *replay, const bool *chosen, size_t ranges, double *values,
                    rl_error *err) {
  CUpti_RangeProfiler_Enable_Params enable = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_Disable_Params disable = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
  if (current_context(&enable.ctx, err) != 0 || CALL(cuptiRangeProfilerEnable, &enable, err) != 0) return -1;
  disable.pRangeProfilerObject = enable.pRangeProfilerObject;
  int result = collect(enable.pRangeProfilerObject, group, replay, chosen, ranges, values, err);
  if (CALL(cuptiRangeProfilerDisable, &disable, result == 0 ? err : NULL) != 0) return -1;
  rl_spent_on(replay->spent, RL_PIECE_ENABLING);
  return result;
}
