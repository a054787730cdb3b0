/* The process and each configuration have a state. PC sampling is enabled or disabled in the process's context (`enabled`):
 * rl_pc_sampling_forbid disables it before other measurements, and rl_pc_sampling_allow enables it afterwards. A configuration is
 * active from rl_pc_sampling_open until rl_pc_sampling_disable. CUPTI takes samples only between rl_pc_sampling_start and
 * rl_pc_sampling_stop. */
#include "worker/cupti/pc_sampling.h"

#include <cupti_pcsampling.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "worker/cupti/check.h"

enum { MAX_STALL_REASONS = 128, PCS_PER_BUFFER = 4096 };

static CUcontext process_context;
static unsigned forbid_count; /* number of calls of forbid minus number of calls of allow */
static bool enabled;          /* PC sampling is enabled in process_context; false while it is forbidden */

typedef struct sample_buffer { /* filled by CUPTI */
  CUpti_PCSamplingData data;
  CUpti_PCSamplingPCData *pcs;
  CUpti_PCSamplingStallReason *reasons;
} sample_buffer;

struct rl_pc_sampling {
  CUcontext context;
  bool disabled; /* set by rl_pc_sampling_disable; not by forbid, after which allow enables PC sampling again */
  uint32_t period_log2;
  size_t hardware_buffer_bytes; /* size of the buffer on the device, from which CUPTI copies to the sample_buffers */
  size_t reason_count;
  uint32_t indices[MAX_STALL_REASONS];
  char cupti_names[MAX_STALL_REASONS][CUPTI_STALL_REASON_STRING_SIZE]; /* written by CUPTI */
  const char *names[MAX_STALL_REASONS];                                /* interned copies of cupti_names */
  sample_buffer read_buffer, unread_buffer; /* unread_buffer: receives unread samples when PC sampling is disabled */
};

/* Returns a copy of the name that is valid until the process ends, because the sink keeps counts that point to the name after the
 * rl_pc_sampling is freed. Returns NULL if memory is exhausted. */
static const char *intern_name(const char *name) {
  static char *interned[MAX_STALL_REASONS];
  size_t i = 0;
  while (i < MAX_STALL_REASONS && interned[i] != NULL && strcmp(interned[i], name) != 0) i++;
  if (i < MAX_STALL_REASONS && interned[i] == NULL) interned[i] = strdup(name);
  return i < MAX_STALL_REASONS ? interned[i] : NULL;
}

CUcontext rl_pc_sampling_context(void) { return process_context; }

int rl_pc_sampling_enable(rl_error *err) {
  CUpti_PCSamplingEnableParams enable = {.size = CUpti_PCSamplingEnableParamsSize, .ctx = process_context};
  if (!enabled && RL_CUPTI_CALL(cuptiPCSamplingEnable, &enable, err) < 0) return -1;
  enabled = true;
  return 0;
}

/* Ignores a failure, because rl_pc_sampling_enable is called again before PC samples are collected and then reports it. */
void rl_pc_sampling_enable_if_allowed(void) {
  if (forbid_count == 0 && process_context != NULL) (void)rl_pc_sampling_enable(NULL);
}

void rl_pc_sampling_on_context_created(CUcontext context) {
  process_context = context;
  rl_pc_sampling_enable_if_allowed();
}

static void disable(CUcontext context) {
  CUpti_PCSamplingDisableParams disable = {.size = CUpti_PCSamplingDisableParamsSize, .ctx = context};
  if (enabled) cuptiPCSamplingDisable(&disable);
  enabled = false;
}

void rl_pc_sampling_forbid(void) {
  if (forbid_count++ == 0 && process_context != NULL) disable(process_context);
}

void rl_pc_sampling_allow(void) {
  forbid_count--;
  rl_pc_sampling_enable_if_allowed();
}

static int allocate_buffer(sample_buffer *buffer, size_t reasons, rl_error *err) {
  buffer->pcs = calloc(PCS_PER_BUFFER, sizeof *buffer->pcs);
  buffer->reasons = calloc(PCS_PER_BUFFER * reasons, sizeof *buffer->reasons);
  if (buffer->pcs == NULL || buffer->reasons == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for samples");
  for (size_t i = 0; i < PCS_PER_BUFFER; i++) {
    buffer->pcs[i].size = sizeof *buffer->pcs;
    buffer->pcs[i].stallReason = &buffer->reasons[i * reasons];
  }
  buffer->data = (CUpti_PCSamplingData){.size = sizeof buffer->data, .collectNumPcs = PCS_PER_BUFFER, .pPcData = buffer->pcs};
  return 0;
}

static int read_stall_reasons(rl_pc_sampling *sampling, rl_error *err) {
  CUpti_PCSamplingGetNumStallReasonsParams count = {
      .size = CUpti_PCSamplingGetNumStallReasonsParamsSize, .ctx = sampling->context, .numStallReasons = &sampling->reason_count};
  char *cupti_names[MAX_STALL_REASONS];
  for (size_t i = 0; i < MAX_STALL_REASONS; i++) cupti_names[i] = sampling->cupti_names[i];
  if (RL_CUPTI_CALL(cuptiPCSamplingGetNumStallReasons, &count, err) < 0) return -1;
  if (sampling->reason_count > MAX_STALL_REASONS)
    return rl_fail(err, RL_CUPTI, 0, "this device has %zu stall reasons, more than %d", sampling->reason_count,
                   MAX_STALL_REASONS);
  CUpti_PCSamplingGetStallReasonsParams names = {.size = CUpti_PCSamplingGetStallReasonsParamsSize,
                                                 .ctx = sampling->context,
                                                 .numStallReasons = sampling->reason_count,
                                                 .stallReasonIndex = sampling->indices,
                                                 .stallReasons = cupti_names};
  if (RL_CUPTI_CALL(cuptiPCSamplingGetStallReasons, &names, err) < 0) return -1;
  for (size_t i = 0; i < sampling->reason_count; i++) {
    sampling->names[i] = intern_name(sampling->cupti_names[i]);
    if (sampling->names[i] == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for stall reasons");
  }
  return 0;
}

static int configure(rl_pc_sampling *sampling, uint32_t period_log2, size_t hardware_buffer_bytes, rl_error *err) {
  CUpti_PCSamplingConfigurationInfo infos[] = {
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON,
       .attributeData.stallReasonData = {sampling->reason_count, sampling->indices}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER,
       .attributeData.samplingDataBufferData = {&sampling->unread_buffer.data}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE,
       .attributeData.collectionModeData = {CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD,
       .attributeData.samplingPeriodData = {period_log2}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL,
       .attributeData.enableStartStopControlData = {1}},
      {.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE,
       .attributeData.hardwareBufferSizeData = {hardware_buffer_bytes}}};
  CUpti_PCSamplingConfigurationInfoParams params = {.size = CUpti_PCSamplingConfigurationInfoParamsSize,
                                                    .ctx = sampling->context,
                                                    .numAttributes = sizeof infos / sizeof *infos,
                                                    .pPCSamplingConfigurationInfo = infos};
  return RL_CUPTI_CALL(cuptiPCSamplingSetConfigurationAttribute, &params, err);
}

int rl_pc_sampling_open(uint32_t period_log2, size_t hardware_buffer_bytes, rl_pc_sampling **sampling, rl_error *err) {
  rl_pc_sampling *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for samples");
  *created =
      (rl_pc_sampling){.context = process_context, .period_log2 = period_log2, .hardware_buffer_bytes = hardware_buffer_bytes};
  if (read_stall_reasons(created, err) < 0 || allocate_buffer(&created->read_buffer, created->reason_count, err) < 0 ||
      allocate_buffer(&created->unread_buffer, created->reason_count, err) < 0 ||
      configure(created, period_log2, hardware_buffer_bytes, err) < 0) {
    rl_pc_sampling_close(created);
    return -1;
  }
  *sampling = created;
  return 0;
}

bool rl_pc_sampling_matches(const rl_pc_sampling *sampling, uint32_t period_log2, size_t hardware_buffer_bytes) {
  return rl_pc_sampling_is_active(sampling) && sampling->period_log2 == period_log2 &&
         sampling->hardware_buffer_bytes == hardware_buffer_bytes;
}

size_t rl_pc_sampling_buffer_bytes(const rl_pc_sampling *sampling) {
  return sampling != NULL ? sampling->hardware_buffer_bytes : 0;
}

bool rl_pc_sampling_is_active(const rl_pc_sampling *sampling) { return sampling != NULL && !sampling->disabled; }

int rl_pc_sampling_start(rl_pc_sampling *sampling, rl_error *err) {
  CUpti_PCSamplingStartParams start = {.size = CUpti_PCSamplingStartParamsSize, .ctx = sampling->context};
  return RL_CUPTI_CALL(cuptiPCSamplingStart, &start, err);
}

/* Returns the name of the stall reason with CUPTI's index, or NULL. */
static const char *stall_reason(const rl_pc_sampling *sampling, uint32_t index) {
  for (size_t i = 0; i < sampling->reason_count; i++)
    if (sampling->indices[i] == index) return sampling->names[i];
  return NULL;
}

/* Returns whether this stall reason repeats samples of another: CUPTI counts each sample under its stall reason REASON, and
 * samples in which the scheduler issued no warp also under REASON_not_issued. */
static bool repeats_other_samples(const char *reason) { return rl_ends_with(reason, "_not_issued"); }

/* Passes the counts of one instruction to the sink. */
static int deliver_counts(const rl_pc_sampling *sampling, const CUpti_PCSamplingPCData *pc, const rl_instruction_sink *sink,
                          rl_error *err) {
  rl_instruction_count count = {.crc = pc->cubinCrc, .function = pc->functionName, .offset = (int64_t)pc->pcOffset};
  double samples = 0;
  for (size_t i = 0; count.function != NULL && i < pc->stallReasonCount; i++) {
    count.metric = stall_reason(sampling, pc->stallReason[i].pcSamplingStallReasonIndex);
    count.value = pc->stallReason[i].samples;
    if (count.metric == NULL || count.value == 0 || strcmp(count.metric, RL_PCSAMP_SAMPLE_COUNT) == 0) continue;
    if (!repeats_other_samples(count.metric)) samples += count.value;
    if (sink->add(sink->context, &count, err) < 0) return -1;
  }
  count.metric = RL_PCSAMP_SAMPLE_COUNT;
  count.value = samples;
  return samples > 0 ? sink->add(sink->context, &count, err) : 0;
}

/* Fills the read_buffer with the next samples. */
static int read_samples(rl_pc_sampling *sampling, rl_error *err) {
  CUpti_PCSamplingData *data = &sampling->read_buffer.data;
  CUpti_PCSamplingGetDataParams get = {
      .size = CUpti_PCSamplingGetDataParamsSize, .ctx = sampling->context, .pcSamplingData = data};
  data->droppedSamples = 0;
  data->hardwareBufferFull = 0;
  int rc = RL_CUPTI_CALL(cuptiPCSamplingGetData, &get, err);
  if (data->hardwareBufferFull == 0) return rc;
  return rl_fail(err, RL_CUPTI, CUPTI_ERROR_OUT_OF_MEMORY, "the buffer of %zu bytes on the device was too small for the samples",
                 sampling->hardware_buffer_bytes);
}

/* Reads all samples; CUPTI returns at most one buffer of them per call. CUPTI's documentation does not say whether droppedSamples
 * of a later call repeats those of the earlier calls. Their sum is then an upper bound, so no loss is hidden. */
static int deliver_all(rl_pc_sampling *sampling, const rl_instruction_sink *sink, uint64_t *dropped, rl_error *err) {
  sample_buffer *read_buffer = &sampling->read_buffer;
  *dropped = 0;
  do {
    if (read_samples(sampling, err) < 0) return -1;
    *dropped += read_buffer->data.droppedSamples;
    for (size_t i = 0; i < read_buffer->data.totalNumPcs; i++)
      if (deliver_counts(sampling, &read_buffer->pcs[i], sink, err) < 0) return -1;
  } while (read_buffer->data.remainingNumPcs > 0);
  return 0;
}

int rl_pc_sampling_stop(rl_pc_sampling *sampling, const rl_instruction_sink *sink, uint64_t *dropped, rl_error *err) {
  CUpti_PCSamplingStopParams stop = {.size = CUpti_PCSamplingStopParamsSize, .ctx = sampling->context};
  if (RL_CUPTI_CALL(cuptiPCSamplingStop, &stop, err) < 0) return -1;
  return deliver_all(sampling, sink, dropped, err);
}

size_t rl_pc_sampling_stall_reasons(const rl_pc_sampling *sampling, const char *const **names) {
  *names = sampling->names;
  return sampling->reason_count;
}

static void free_buffer(sample_buffer *buffer) {
  free(buffer->pcs);
  free(buffer->reasons);
}

void rl_pc_sampling_disable(rl_pc_sampling *sampling) {
  if (!rl_pc_sampling_is_active(sampling)) return;
  disable(sampling->context);
  sampling->disabled = true;
}

void rl_pc_sampling_close(rl_pc_sampling *sampling) {
  if (sampling == NULL) return;
  rl_pc_sampling_disable(sampling);
  free_buffer(&sampling->read_buffer);
  free_buffer(&sampling->unread_buffer);
  free(sampling);
}
