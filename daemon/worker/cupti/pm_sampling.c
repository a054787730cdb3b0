/* rl_pm_sampling_stop decodes the hardware buffer into a counter data image and evaluates one sample after another. */
#include "worker/cupti/pm_sampling.h"

#include <cupti_pmsampling.h>
#include <errno.h>
#include <stdlib.h>

#include "worker/cupti/check.h"

/* CUPTI 13.0 loses samples that do not fit into the image. So MAX_SAMPLES is four times the number of samples of the longest
 * timeline, in case the host stops sampling late. */
enum { MAX_SAMPLES = 2048 };

struct rl_pm_sampling {
  CUpti_PmSampling_Object *object;
  const rl_counter_group *group;
  uint8_t *counter_data; /* image for MAX_SAMPLES samples */
  size_t counter_data_size;
  rl_pm_sample samples[MAX_SAMPLES];
};

static int configure(rl_pm_sampling *sampling, uint64_t interval_ns, rl_error *err) {
  CUpti_PmSampling_SetConfig_Params config = {CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE};
  config.pPmSamplingObject = sampling->object;
  config.configSize = sampling->group->config_image_size;
  config.pConfig = sampling->group->config_image;
  config.hardwareBufferSize = rl_pm_sampling_buffer_bytes;
  config.samplingInterval = interval_ns;
  config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
  config.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
  return RL_CUPTI_CALL(cuptiPmSamplingSetConfig, &config, err);
}

static int allocate_counter_data(rl_pm_sampling *sampling, rl_error *err) {
  CUpti_PmSampling_GetCounterDataSize_Params size = {CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE};
  size.pPmSamplingObject = sampling->object;
  size.pMetricNames = sampling->group->names;
  size.numMetrics = sampling->group->count;
  size.maxSamples = MAX_SAMPLES;
  if (RL_CUPTI_CALL(cuptiPmSamplingGetCounterDataSize, &size, err) < 0) return -1;
  sampling->counter_data_size = size.counterDataSize;
  sampling->counter_data = malloc(sampling->counter_data_size);
  return sampling->counter_data != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for samples");
}

int rl_pm_sampling_open(int device_index, const rl_counter_group *group, uint64_t interval_ns, rl_pm_sampling **sampling,
                        rl_error *err) {
  CUpti_PmSampling_Enable_Params enable = {CUpti_PmSampling_Enable_Params_STRUCT_SIZE};
  enable.deviceIndex = (size_t)device_index;
  if (group->count > RL_PM_SAMPLING_MAX_METRICS)
    return rl_fail(err, RL_INPUT, 0, "%zu metrics are too many to sample", group->count);
  rl_pm_sampling *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for samples");
  created->group = group;
  int result = RL_CUPTI_CALL(cuptiPmSamplingEnable, &enable, err);
  created->object = enable.pPmSamplingObject;
  if (result < 0 || configure(created, interval_ns, err) < 0 || allocate_counter_data(created, err) < 0) {
    rl_pm_sampling_close(created);
    return -1;
  }
  *sampling = created;
  return 0;
}

void rl_pm_sampling_close(rl_pm_sampling *sampling) {
  if (sampling == NULL) return;
  CUpti_PmSampling_Disable_Params disable = {CUpti_PmSampling_Disable_Params_STRUCT_SIZE};
  disable.pPmSamplingObject = sampling->object;
  if (sampling->object != NULL) cuptiPmSamplingDisable(&disable);
  free(sampling->counter_data);
  free(sampling);
}

int rl_pm_sampling_start(rl_pm_sampling *sampling, rl_error *err) {
  CUpti_PmSampling_Start_Params start = {CUpti_PmSampling_Start_Params_STRUCT_SIZE};
  start.pPmSamplingObject = sampling->object;
  return RL_CUPTI_CALL(cuptiPmSamplingStart, &start, err);
}

/* Evaluates one sample of the image. */
static int read_sample(rl_pm_sampling *sampling, size_t index, rl_error *err) {
  CUpti_PmSampling_CounterData_GetSampleInfo_Params info = {CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE};
  rl_pm_sample *sample = &sampling->samples[index];
  info.pPmSamplingObject = sampling->object;
  info.pCounterDataImage = sampling->counter_data;
  info.counterDataImageSize = sampling->counter_data_size;
  info.sampleIndex = index;
  if (RL_CUPTI_CALL(cuptiPmSamplingCounterDataGetSampleInfo, &info, err) < 0) return -1;
  sample->start_ns = info.startTimestamp;
  sample->end_ns = info.endTimestamp;
  return rl_counter_group_evaluate(sampling->group, sampling->counter_data, sampling->counter_data_size, index, sample->values,
                                   err);
}

/* Decodes the hardware buffer into the image. */
static int decode(rl_pm_sampling *sampling, rl_error *err) {
  CUpti_PmSampling_CounterDataImage_Initialize_Params empty = {CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE};
  CUpti_PmSampling_DecodeData_Params decode = {CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE};
  empty.pPmSamplingObject = decode.pPmSamplingObject = sampling->object;
  empty.counterDataSize = decode.counterDataImageSize = sampling->counter_data_size;
  empty.pCounterData = decode.pCounterDataImage = sampling->counter_data;
  if (RL_CUPTI_CALL(cuptiPmSamplingCounterDataImageInitialize, &empty, err) < 0 ||
      RL_CUPTI_CALL(cuptiPmSamplingDecodeData, &decode, err) < 0)
    return -1;
  return decode.overflow == 0 ? 0 : rl_fail(err, RL_CUPTI, 0, "the hardware buffer for samples overflowed");
}

int rl_pm_sampling_stop(rl_pm_sampling *sampling, const rl_pm_sample **samples, size_t *count, rl_error *err) {
  CUpti_PmSampling_Stop_Params stop = {CUpti_PmSampling_Stop_Params_STRUCT_SIZE};
  CUpti_PmSampling_GetCounterDataInfo_Params info = {CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE};
  stop.pPmSamplingObject = sampling->object;
  if (RL_CUPTI_CALL(cuptiPmSamplingStop, &stop, err) < 0 || decode(sampling, err) < 0) return -1;
  info.pCounterDataImage = sampling->counter_data;
  info.counterDataImageSize = sampling->counter_data_size;
  if (RL_CUPTI_CALL(cuptiPmSamplingGetCounterDataInfo, &info, err) < 0) return -1;
  if (info.numCompletedSamples >= MAX_SAMPLES)
    return rl_fail(err, RL_CUPTI, 0, "more than %d samples were taken", MAX_SAMPLES - 1);
  for (size_t i = 0; i < info.numCompletedSamples; i++)
    if (read_sample(sampling, i, err) < 0) return -1;
  *samples = sampling->samples;
  *count = info.numCompletedSamples;
  return 0;
}
