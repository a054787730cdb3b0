#include "worker/cupti/sampling.h"

#include <cupti_pcsampling.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/result.h"

#define CALL(function, params, err) rl_cupti_check(function(params), #function, err)

enum { REASONS_MOST = 128, PCS_AT_ONCE = 4096 };

typedef struct buffer { /* that CUPTI fills */
  CUpti_PCSamplingData data;
  CUpti_PCSamplingPCData *pcs;
  CUpti_PCSamplingStallReason *reasons;
} buffer;

struct rl_sampling {
  CUcontext context;
  bool stopped;
  uint32_t period;
  size_t buffer_bytes;
  size_t reason_count;
  uint32_t indices[REASONS_MOST];
  char texts[REASONS_MOST][CUPTI_STALL_REASON_STRING_SIZE];
  const char *names[REASONS_MOST];
  buffer own, left; /* left: what CUPTI puts there when it stops */
};

/* Names outlive a sampling: counts point to them. */
static const char *keep_name(const char *name) {
  static char *kept[REASONS_MOST];
  size_t at = 0;
  while (at < REASONS_MOST && kept[at] != NULL && strcmp(kept[at], name) != 0) at++;
  if (at < REASONS_MOST && kept[at] == NULL) kept[at] = strdup(name);
  return at < REASONS_MOST ? kept[at] : NULL;
}

static bool enabled; /* for the one context of the process */

int rl_sampling_enable(CUcontext context, rl_error *err) {
  CUpti_PCSamplingEnableParams enable = {.size = CUpti_PCSamplingEnableParamsSize, .ctx = context};
  if (!enabled && CALL(cuptiPCSamplingEnable, &enable, err) != 0) return -1;
  enabled = true;
  return 0;
}

void rl_sampling_disable(CUcontext context) {
  CUpti_PCSamplingDisableParams disable = {.size = CUpti_PCSamplingDisableParamsSize, .ctx = context};
  if (enabled) cuptiPCSamplingDisable(&disable);
  enabled = false;
}

static int make_buffer(buffer *made, size_t reasons, rl_error *err) {
  made->pcs = calloc(PCS_AT_ONCE, sizeof *made->pcs);
  made->reasons = calloc(PCS_AT_ONCE * reasons, sizeof *made->reasons);
  if (made->pcs == NULL || made->reasons == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for samples");
  for (size_t i = 0; i < PCS_AT_ONCE; i++) {
    made->pcs[i].size = sizeof *made->pcs;
    made->pcs[i].stallReason = &made->reasons[i * reasons];
  }
  made->data = (CUpti_PCSamplingData){.size = sizeof made->data, .collectNumPcs = PCS_AT_ONCE, .pPcData = made->pcs};
  return 0;
}

static int read_reasons(rl_sampling *sampling, rl_error *err) {
  CUpti_PCSamplingGetNumStallReasonsParams count = {
      .size = CUpti_PCSamplingGetNumStallReasonsParamsSize, .ctx = sampling->context, .numStallReasons = &sampling->reason_count};
  char *texts[REASONS_MOST];
  for (size_t i = 0; i < REASONS_MOST; i++) texts[i] = sampling->texts[i];
  if (CALL(cuptiPCSamplingGetNumStallReasons, &count, err) != 0) return -1;
  if (sampling->reason_count > REASONS_MOST)
    return rl_fail(err, RL_CUPTI, 0, "this device has %zu stall reasons, more than are known here", sampling->reason_count);
  CUpti_PCSamplingGetStallReasonsParams names = {.size = CUpti_PCSamplingGetStallReasonsParamsSize,
                                                 .ctx = sampling->context,
                                                 .numStallReasons = sampling->reason_count,
                                                 .stallReasonIndex = sampling->indices,
                                                 .stallReasons = texts};
  if (CALL(cuptiPCSamplingGetStallReasons, &names, err) != 0) return -1;
  for (size_t i = 0; i < sampling->reason_count; i++) {
    sampling->names[i] = keep_name(sampling->texts[i]);
    if (sampling->names[i] == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for stall reasons");
  }
  return 0;
}

static int configure(rl_sampling *sampling, uint32_t period, size_t buffer_bytes, rl_error *err) {
  CUpti_PCSamplingConfigurationInfo infos[] = {
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON,
       .attributeData.stallReasonData = {sampling->reason_count, sampling->indices}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER,
       .attributeData.samplingDataBufferData = {&sampling->left.data}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE,
       .attributeData.collectionModeData = {CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD, .attributeData.samplingPeriodData = {period}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL,
       .attributeData.enableStartStopControlData = {1}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE,
       .attributeData.hardwareBufferSizeData = {buffer_bytes}}};
  CUpti_PCSamplingConfigurationInfoParams params = {.size = CUpti_PCSamplingConfigurationInfoParamsSize,
                                                    .ctx = sampling->context,
                                                    .numAttributes = sizeof infos / sizeof *infos,
                                                    .pPCSamplingConfigurationInfo = infos};
  return CALL(cuptiPCSamplingSetConfigurationAttribute, &params, err);
}

int rl_sampling_open(CUcontext context, uint32_t period, size_t buffer_bytes, rl_sampling **sampling, rl_error *err) {
  rl_sampling *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for samples");
  *made = (rl_sampling){.context = context, .period = period, .buffer_bytes = buffer_bytes};
  if (read_reasons(made, err) != 0 || make_buffer(&made->own, made->reason_count, err) != 0 ||
      make_buffer(&made->left, made->reason_count, err) != 0 || configure(made, period, buffer_bytes, err) != 0) {
    rl_sampling_close(made);
    return -1;
  }
  *sampling = made;
  return 0;
}

bool rl_sampling_fits(const rl_sampling *sampling, uint32_t period, size_t buffer_bytes) {
  return rl_sampling_is_ready(sampling) && sampling->period == period && sampling->buffer_bytes == buffer_bytes;
}

bool rl_sampling_is_ready(const rl_sampling *sampling) { return sampling != NULL && !sampling->stopped; }

int rl_sampling_begin(rl_sampling *sampling, rl_error *err) {
  CUpti_PCSamplingStartParams start = {.size = CUpti_PCSamplingStartParamsSize, .ctx = sampling->context};
  return CALL(cuptiPCSamplingStart, &start, err);
}

static const char *reason_of(const rl_sampling *sampling, uint32_t index) {
  for (size_t i = 0; i < sampling->reason_count; i++)
    if (sampling->indices[i] == index) return sampling->names[i];
  return NULL;
}

/* Each sample has one reason; those in which no warp of the scheduler was issued are told a second time. */
static bool is_told_again(const char *reason) {
  static const char again[] = "_not_issued";
  size_t length = strlen(reason), tail = sizeof again - 1;
  return length >= tail && strcmp(reason + length - tail, again) == 0;
}

static int hand_out(const rl_sampling *sampling, const CUpti_PCSamplingPCData *pc, const rl_code_sink *sink, rl_error *err) {
  rl_code_count counted = {.crc = pc->cubinCrc, .function = pc->functionName, .offset = (int64_t)pc->pcOffset};
  double samples = 0;
  for (size_t i = 0; counted.function != NULL && i < pc->stallReasonCount; i++) {
    counted.metric = reason_of(sampling, pc->stallReason[i].pcSamplingStallReasonIndex);
    counted.value = pc->stallReason[i].samples;
    if (counted.metric == NULL || counted.value == 0 || strcmp(counted.metric, RL_SAMPLES) == 0) continue;
    if (!is_told_again(counted.metric)) samples += counted.value;
    if (sink->take(sink->context, &counted, err) != 0) return -1;
  }
  counted.metric = RL_SAMPLES;
  counted.value = samples;
  return samples > 0 ? sink->take(sink->context, &counted, err) : 0;
}

/* CUPTI hands out at most a buffer at once. */
static int take_all(rl_sampling *sampling, const rl_code_sink *sink, rl_error *err) {
  buffer *own = &sampling->own;
  CUpti_PCSamplingGetDataParams get = {
      .size = CUpti_PCSamplingGetDataParamsSize, .ctx = sampling->context, .pcSamplingData = &own->data};
  do {
    if (CALL(cuptiPCSamplingGetData, &get, err) != 0) return -1;
    for (size_t i = 0; i < own->data.totalNumPcs; i++)
      if (hand_out(sampling, &own->pcs[i], sink, err) != 0) return -1;
  } while (own->data.remainingNumPcs > 0);
  return 0;
}

int rl_sampling_end(rl_sampling *sampling, const rl_code_sink *sink, rl_error *err) {
  CUpti_PCSamplingStopParams stop = {.size = CUpti_PCSamplingStopParamsSize, .ctx = sampling->context};
  if (CALL(cuptiPCSamplingStop, &stop, err) != 0) return -1;
  return take_all(sampling, sink, err);
}

size_t rl_sampling_reasons(const rl_sampling *sampling, const char *const **names) {
  *names = sampling->names;
  return sampling->reason_count;
}

static void free_buffer(buffer *made) {
  free(made->pcs);
  free(made->reasons);
}

/* CUPTI writes what is left to its buffer meanwhile. */
void rl_sampling_stop(rl_sampling *sampling) {
  if (!rl_sampling_is_ready(sampling)) return;
  rl_sampling_disable(sampling->context);
  sampling->stopped = true;
}

void rl_sampling_close(rl_sampling *sampling) {
  if (sampling == NULL) return;
  rl_sampling_stop(sampling);
  free_buffer(&sampling->own);
  free_buffer(&sampling->left);
  free(sampling);
}
