/* A profiler has the configuration and the counter data of one plan. While its session is open, the hardware is reserved and PC
 * sampling is forbidden. A collection opens the session if necessary, sets the configuration, runs each pass, and decodes the
 * counter data. The session stays open for the next collection, until rl_range_profiler_release. Another configuration or an
 * error closes the profiler.
 *
 * cuptiRangeProfilerStart would open the session twice, which takes 60 to 90 ms more (H200, CUDA 13.0). So sessions and passes
 * use the functions of cupti_profiler_target.h, which CUDA 13 deprecates, and only counter data images are made by the range
 * profiler. */
#include "worker/cupti/range_profiler.h"

#include <cuda_runtime_api.h>
#include <cupti_profiler_target.h>
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

typedef struct counter_data {
  uint8_t *image, *scratch;
  size_t image_size, scratch_size;
} counter_data;

struct rl_range_profiler {
  CUcontext context;
  bool session_open, configured; /* configured: the session has the configuration */
  bool memory_lost;              /* a session could not be ended, so CUPTI may still use the memory */
  uint8_t *config;               /* in use while the session has it */
  size_t config_size, range_count;
  uint8_t *empty_image; /* copy of the counter data image before the first pass */
  counter_data data;    /* in use while the session is open */
};

/* --- counter data ---------------------------------------------------------------------------------------------------- */

static int make_image_with(CUpti_RangeProfiler_Object *object, const rl_counter_group *group, size_t range_count,
                           counter_data *data, rl_error *err) {
  CUpti_RangeProfiler_GetCounterDataSize_Params size = {CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params empty = {
      CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE};
  size.pRangeProfilerObject = empty.pRangeProfilerObject = object;
  size.pMetricNames = group->names;
  size.numMetrics = group->count;
  size.maxNumOfRanges = range_count;
  size.maxNumRangeTreeNodes = (uint32_t)range_count;
  if (RL_CUPTI_CALL(cuptiRangeProfilerGetCounterDataSize, &size, err) < 0) return -1;
  data->image_size = empty.counterDataSize = size.counterDataSize;
  data->image = empty.pCounterData = calloc(1, data->image_size);
  if (data->image == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for %zu ranges of counters", range_count);
  return RL_CUPTI_CALL(cuptiRangeProfilerCounterDataImageInitialize, &empty, err);
}

/* Makes an image without ranges. The range profiler is enabled only for this purpose; it does not start, so it reserves nothing.
 */
static int make_image(rl_range_profiler *profiler, const rl_counter_group *group, rl_error *err) {
  CUpti_RangeProfiler_Enable_Params enable = {CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_Disable_Params disable = {CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE};
  enable.ctx = profiler->context;
  rl_pc_sampling_forbid();
  int result = RL_CUPTI_CALL(cuptiRangeProfilerEnable, &enable, err);
  if (result == 0) {
    disable.pRangeProfilerObject = enable.pRangeProfilerObject;
    result = make_image_with(enable.pRangeProfilerObject, group, profiler->range_count, &profiler->data, err);
    if (RL_CUPTI_CALL(cuptiRangeProfilerDisable, &disable, result < 0 ? NULL : err) < 0) result = -1;
  }
  rl_pc_sampling_allow();
  return result;
}

static int allocate_scratch(counter_data *data, rl_error *err) {
  CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params size = {
      CUpti_Profiler_CounterDataImage_CalculateScratchBufferSize_Params_STRUCT_SIZE};
  size.counterDataImageSize = data->image_size;
  size.pCounterDataImage = data->image;
  if (RL_CUPTI_CALL(cuptiProfilerCounterDataImageCalculateScratchBufferSize, &size, err) < 0) return -1;
  data->scratch_size = size.counterDataScratchBufferSize;
  data->scratch = calloc(1, data->scratch_size + 1);
  return data->scratch != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for counters");
}

static int initialize_scratch(const counter_data *data, rl_error *err) {
  CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params params = {
      CUpti_Profiler_CounterDataImage_InitializeScratchBuffer_Params_STRUCT_SIZE};
  params.counterDataImageSize = data->image_size;
  params.pCounterDataImage = data->image;
  params.counterDataScratchBufferSize = data->scratch_size;
  params.pCounterDataScratchBuffer = data->scratch;
  return RL_CUPTI_CALL(cuptiProfilerCounterDataImageInitializeScratchBuffer, &params, err);
}

static void *copy_of(const void *bytes, size_t size) {
  void *copy = malloc(size);
  return copy != NULL ? memcpy(copy, bytes, size) : NULL;
}

static int make_counter_data(rl_range_profiler *profiler, const rl_counter_group *group, rl_error *err) {
  if (make_image(profiler, group, err) < 0 || allocate_scratch(&profiler->data, err) < 0 ||
      initialize_scratch(&profiler->data, err) < 0)
    return -1;
  profiler->empty_image = copy_of(profiler->data.image, profiler->data.image_size);
  return profiler->empty_image != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for counters");
}

/* --- the session ------------------------------------------------------------------------------------------------------ */

static int begin_session(rl_range_profiler *profiler, rl_error *err) {
  CUpti_Profiler_BeginSession_Params begin = {CUpti_Profiler_BeginSession_Params_STRUCT_SIZE};
  begin.ctx = profiler->context;
  begin.counterDataImageSize = profiler->data.image_size;
  begin.pCounterDataImage = profiler->data.image;
  begin.counterDataScratchBufferSize = profiler->data.scratch_size;
  begin.pCounterDataScratchBuffer = profiler->data.scratch;
  begin.range = CUPTI_AutoRange;
  begin.replayMode = CUPTI_UserReplay;
  begin.maxRangesPerPass = begin.maxLaunchesPerPass = profiler->range_count;
  if (profiler->session_open) return 0;
  rl_pc_sampling_forbid();
  profiler->session_open = RL_CUPTI_CALL(cuptiProfilerBeginSession, &begin, err) == 0;
  if (!profiler->session_open) rl_pc_sampling_allow();
  return profiler->session_open ? 0 : -1;
}

static int remove_config(rl_range_profiler *profiler, rl_error *err) {
  CUpti_Profiler_UnsetConfig_Params unset = {CUpti_Profiler_UnsetConfig_Params_STRUCT_SIZE};
  unset.ctx = profiler->context;
  if (!profiler->configured) return 0;
  profiler->configured = false;
  return RL_CUPTI_CALL(cuptiProfilerUnsetConfig, &unset, err);
}

/* Clears the counter data and sets the configuration, so that the next pass is its first pass. */
static int configure(rl_range_profiler *profiler, rl_error *err) {
  CUpti_Profiler_SetConfig_Params config = {CUpti_Profiler_SetConfig_Params_STRUCT_SIZE};
  config.ctx = profiler->context;
  config.configSize = profiler->config_size;
  config.pConfig = profiler->config;
  config.minNestingLevel = config.numNestingLevels = config.targetNestingLevel = 1;
  if (remove_config(profiler, err) < 0) return -1;
  memcpy(profiler->data.image, profiler->empty_image, profiler->data.image_size);
  if (initialize_scratch(&profiler->data, err) < 0 || RL_CUPTI_CALL(cuptiProfilerSetConfig, &config, err) < 0) return -1;
  profiler->configured = true;
  return 0;
}

void rl_range_profiler_release(rl_range_profiler *profiler) {
  if (profiler == NULL || !profiler->session_open) return;
  CUpti_Profiler_EndSession_Params end = {CUpti_Profiler_EndSession_Params_STRUCT_SIZE};
  end.ctx = profiler->context;
  (void)remove_config(profiler, NULL);
  /* If this fails, the next session fails too and reports the error. */
  profiler->memory_lost = cuptiProfilerEndSession(&end) != CUPTI_SUCCESS;
  profiler->session_open = false;
  rl_pc_sampling_allow();
}

/* --- opening and closing ---------------------------------------------------------------------------------------------- */

void rl_range_profiler_close(rl_range_profiler **kept_profiler) {
  rl_range_profiler *profiler = *kept_profiler;
  if (profiler == NULL) return;
  rl_range_profiler_release(profiler);
  if (!profiler->memory_lost) {
    free(profiler->config);
    free(profiler->data.image);
    free(profiler->data.scratch);
  }
  free(profiler->empty_image);
  free(profiler);
  *kept_profiler = NULL;
}

static int copy_config(rl_range_profiler *profiler, const rl_counter_group *group, rl_error *err) {
  profiler->config_size = group->config_image_size;
  profiler->config = copy_of(group->config_image, group->config_image_size);
  return profiler->config != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a counter configuration");
}

/* Sets *kept_profiler even if a later call fails; the caller then closes it. */
static int open_profiler(rl_range_profiler **kept_profiler, CUcontext context, const rl_counter_group *group, size_t range_count,
                         rl_error *err) {
  rl_range_profiler *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the range profiler");
  created->context = context;
  created->range_count = range_count;
  *kept_profiler = created;
  return copy_config(created, group, err) < 0 || make_counter_data(created, group, err) < 0 ? -1 : 0;
}

static bool matches(const rl_range_profiler *profiler, CUcontext context, const rl_counter_group *group, size_t range_count) {
  return profiler != NULL && profiler->context == context && profiler->range_count == range_count &&
         profiler->config_size == group->config_image_size &&
         memcmp(profiler->config, group->config_image, profiler->config_size) == 0;
}

/* --- passes ----------------------------------------------------------------------------------------------------------- */

/* Ends the pass, also if profiling cannot be disabled, so that the session can end. */
static int end_pass(CUcontext context, bool *is_last, rl_error *err) {
  CUpti_Profiler_DisableProfiling_Params disable = {CUpti_Profiler_DisableProfiling_Params_STRUCT_SIZE};
  CUpti_Profiler_EndPass_Params end = {CUpti_Profiler_EndPass_Params_STRUCT_SIZE};
  disable.ctx = end.ctx = context;
  int result = RL_CUPTI_CALL(cuptiProfilerDisableProfiling, &disable, err);
  if (RL_CUPTI_CALL(cuptiProfilerEndPass, &end, result < 0 ? NULL : err) < 0) result = -1;
  *is_last = end.allPassesSubmitted != 0;
  return result;
}

static int begin_pass(CUcontext context, rl_error *err) {
  CUpti_Profiler_BeginPass_Params begin = {CUpti_Profiler_BeginPass_Params_STRUCT_SIZE};
  CUpti_Profiler_EnableProfiling_Params enable = {CUpti_Profiler_EnableProfiling_Params_STRUCT_SIZE};
  bool is_last;
  begin.ctx = enable.ctx = context;
  if (RL_CUPTI_CALL(cuptiProfilerBeginPass, &begin, err) < 0) return -1;
  if (RL_CUPTI_CALL(cuptiProfilerEnableProfiling, &enable, err) == 0) return 0;
  (void)end_pass(context, &is_last, NULL);
  return -1;
}

static int run_pass(CUcontext context, const rl_user_replay *replay, bool *is_last, rl_error *err) {
  if (replay->restore(replay->context, err) < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_RESTORING);
  if (begin_pass(context, err) < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_STARTING);
  int result = replay->run(replay->context, err);
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_RUNNING);
  if (end_pass(context, is_last, result < 0 ? NULL : err) < 0 || result < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_STOPPING);
  return replay->on_pass_ended(replay->context, err);
}

/* Runs as many passes as the configuration needs. */
static int run_passes(const rl_range_profiler *profiler, size_t passes, const rl_user_replay *replay, rl_error *err) {
  bool is_last = false;
  for (size_t pass = 0; !is_last; pass++) {
    if (pass == passes) return rl_fail(err, RL_CUPTI, 0, "CUPTI needs more than the %zu passes that it announced", pass);
    if (run_pass(profiler->context, replay, &is_last, err) < 0) return -1;
  }
  return 0;
}

static int decode(const rl_range_profiler *profiler, rl_error *err) {
  CUpti_Profiler_FlushCounterData_Params flush = {CUpti_Profiler_FlushCounterData_Params_STRUCT_SIZE};
  CUpti_RangeProfiler_GetCounterDataInfo_Params info = {CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE};
  flush.ctx = profiler->context;
  info.pCounterDataImage = profiler->data.image;
  info.counterDataImageSize = profiler->data.image_size;
  if (RL_CUPTI_CALL(cuptiProfilerFlushCounterData, &flush, err) < 0 ||
      RL_CUPTI_CALL(cuptiRangeProfilerGetCounterDataInfo, &info, err) < 0)
    return -1;
  if (info.numTotalRanges == profiler->range_count && flush.numRangesDropped == 0) return 0;
  return rl_fail(err, RL_CUPTI, 0,
                 "the range profiler expected %zu launches, recorded %zu and dropped %zu: the step does not launch the "
                 "same kernels every time",
                 profiler->range_count, info.numTotalRanges, flush.numRangesDropped);
}

static int collect(rl_range_profiler *profiler, const rl_counter_group *group, const rl_user_replay *replay, rl_error *err) {
  if (begin_session(profiler, err) < 0 || configure(profiler, err) < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_ENABLING);
  if (run_passes(profiler, group->passes, replay, err) < 0 || decode(profiler, err) < 0) return -1;
  rl_stage_timer_lap(replay->timer, RL_PROFILER_STAGE_EVALUATING);
  return 0;
}

int rl_range_profiler_collect(rl_range_profiler **kept_profiler, const rl_counter_group *group, const rl_user_replay *replay,
                              size_t range_count, rl_error *err) {
  CUcontext context = NULL;
  if (current_context(&context, err) < 0) return -1;
  if (!matches(*kept_profiler, context, group, range_count)) rl_range_profiler_close(kept_profiler);
  int result = *kept_profiler != NULL ? 0 : open_profiler(kept_profiler, context, group, range_count, err);
  if (result == 0) result = collect(*kept_profiler, group, replay, err);
  if (result < 0) rl_range_profiler_close(kept_profiler);
  return result;
}

const uint8_t *rl_range_profiler_image(const rl_range_profiler *profiler, size_t *size) {
  *size = profiler->data.image_size;
  return profiler->data.image;
}
