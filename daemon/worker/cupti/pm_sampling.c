#include "worker/cupti/pm_sampling.h"

#include <cupti_pmsampling.h>
#include <errno.h>
#include <stdlib.h>

#include "worker/cupti/result.h"

#define CALL(function, params, err) rl_cupti_check(function(params), #function, err)

/* What does not fit into the image is lost (CUPTI 13.0): room for four times the samples of the longest time line, for a host
 * that stops late. */
enum { SAMPLES_MOST = 2048 };

struct rl_pm {
  CUpti_PmSampling_Object *object;
  const rl_group *group;
  uint8_t *image; /* of SAMPLES_MOST samples, as CUPTI keeps them */
  size_t image_size;
  rl_pm_sample samples[SAMPLES_MOST];
};

static int configure(rl_pm *pm, uint64_t interval_ns, rl_error *err) {
  CUpti_PmSampling_SetConfig_Params config = {CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE};
  config.pPmSamplingObject = pm->object;
  config.configSize = pm->group->image_size;
  config.pConfig = pm->group->image;
  config.hardwareBufferSize = rl_pm_buffer_bytes;
  config.samplingInterval = interval_ns;
  config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  return CALL(cuptiPmSamplingSetConfig, &config, err);
}

static int make_image(rl_pm *pm, rl_error *err) {
  CUpti_PmSampling_GetCounterDataSize_Params size = {CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE};
  size.pPmSamplingObject = pm->object;
  size.pMetricNames = pm->group->names;
  size.numMetrics = pm->group->count;
  size.maxSamples = SAMPLES_MOST;
  if (CALL(cuptiPmSamplingGetCounterDataSize, &size, err) != 0) return -1;
  pm->image_size = size.counterDataSize;
  pm->image = malloc(pm->image_size);
  return pm->image != NULL ? 0 : rl_fail(err, RL_SYS, ENOMEM, "no memory for samples");
}

int rl_pm_open(int device_index, const rl_group *group, uint64_t interval_ns, rl_pm **pm, rl_error *err) {
  CUpti_PmSampling_Enable_Params enable = {CUpti_PmSampling_Enable_Params_STRUCT_SIZE};
  enable.deviceIndex = (size_t)device_index;
  if (group->count > RL_PM_METRICS_MOST) return rl_fail(err, RL_INPUT, 0, "%zu metrics are too many to sample", group->count);
  rl_pm *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for samples");
  made->group = group;
  int result = CALL(cuptiPmSamplingEnable, &enable, err);
  made->object = enable.pPmSamplingObject;
  if (result != 0 || configure(made, interval_ns, err) != 0 || make_image(made, err) != 0) {
    rl_pm_close(made);
    return -1;
  }
  *pm = made;
  return 0;
}

void rl_pm_close(rl_pm *pm) {
  if (pm == NULL) return;
  CUpti_PmSampling_Disable_Params disable = {CUpti_PmSampling_Disable_Params_STRUCT_SIZE};
  disable.pPmSamplingObject = pm->object;
  if (pm->object != NULL) cuptiPmSamplingDisable(&disable);
  free(pm->image);
  free(pm);
}

int rl_pm_begin(rl_pm *pm, rl_error *err) {
  CUpti_PmSampling_Start_Params start = {CUpti_PmSampling_Start_Params_STRUCT_SIZE};
  start.pPmSamplingObject = pm->object;
  return CALL(cuptiPmSamplingStart, &start, err);
}

/* --- samples ----------------------------------------------------------------------------------------------------------- */

static int take(rl_pm *pm, size_t index, rl_error *err) {
  CUpti_PmSampling_CounterData_GetSampleInfo_Params info = {CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE};
  rl_pm_sample *sample = &pm->samples[index];
  info.pPmSamplingObject = pm->object;
  info.pCounterDataImage = pm->image;
  info.counterDataImageSize = pm->image_size;
  info.sampleIndex = index;
  if (CALL(cuptiPmSamplingCounterDataGetSampleInfo, &info, err) != 0) return -1;
  sample->start_ns = info.startTimestamp;
  sample->end_ns = info.endTimestamp;
  return rl_group_evaluate(pm->group, pm->image, pm->image_size, index, sample->values, err);
}

/* From the hardware's buffer into the image. */
static int decode(rl_pm *pm, rl_error *err) {
  CUpti_PmSampling_CounterDataImage_Initialize_Params empty = {CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE};
  CUpti_PmSampling_DecodeData_Params decode = {CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE};
  empty.pPmSamplingObject = decode.pPmSamplingObject = pm->object;
  empty.counterDataSize = decode.counterDataImageSize = pm->image_size;
  empty.pCounterData = decode.pCounterDataImage = pm->image;
  if (CALL(cuptiPmSamplingCounterDataImageInitialize, &empty, err) != 0 || CALL(cuptiPmSamplingDecodeData, &decode, err) != 0)
    return -1;
  return decode.overflow == 0 ? 0 : rl_fail(err, RL_CUPTI, 0, "the device's buffer for samples was full");
}

int rl_pm_end(rl_pm *pm, const rl_pm_sample **samples, size_t *count, rl_error *err) {
  CUpti_PmSampling_Stop_Params stop = {CUpti_PmSampling_Stop_Params_STRUCT_SIZE};
  CUpti_PmSampling_GetCounterDataInfo_Params info = {CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE};
  stop.pPmSamplingObject = pm->object;
  if (CALL(cuptiPmSamplingStop, &stop, err) != 0 || decode(pm, err) != 0) return -1;
  info.pCounterDataImage = pm->image;
  info.counterDataImageSize = pm->image_size;
  if (CALL(cuptiPmSamplingGetCounterDataInfo, &info, err) != 0) return -1;
  if (info.numCompletedSamples >= SAMPLES_MOST)
    return rl_fail(err, RL_CUPTI, 0, "there were more than %d samples", SAMPLES_MOST - 1);
  for (size_t i = 0; i < info.numCompletedSamples; i++)
    if (take(pm, i, err) != 0) return -1;
  *samples = pm->samples;
  *count = info.numCompletedSamples;
  return 0;
}
