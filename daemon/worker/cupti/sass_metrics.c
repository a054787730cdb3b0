/* A table maps CUPTI's metrics to Nsight Compute's names. Between start and stop, CUPTI patches each function before its first
 * launch. */
#include "worker/cupti/sass_metrics.h"

#include <cupti_sass_metrics.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/code/instruction_profile.h"
#include "worker/cupti/check.h"

#define MEMDESC_PREFIX "smsp__sass_inst_executed_memdesc_explicit_"

/* CUPTI's name and Nsight Compute's name of each metric. */
static const struct {
  const char *cupti_name, *ncu_name;
} metrics[] = {{"smsp__sass_inst_executed", RL_INST_EXECUTED},
               {"smsp__sass_thread_inst_executed", RL_THREAD_INST_EXECUTED},
               {"smsp__sass_thread_inst_executed_pred_on", RL_THREAD_INST_EXECUTED_TRUE},
               {"smsp__sass_branch_targets_threads_divergent", "smsp__branch_targets_threads_divergent"},
               {"smsp__sass_branch_targets_threads_uniform", "smsp__branch_targets_threads_uniform"},
               {"smsp__sass_l1tex_tags_mem_global", "memory_l1_tag_requests_global"},
               {"smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared", RL_WAVEFRONTS_SHARED},
               {"smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal", "memory_l1_wavefronts_shared_ideal"},
               {"smsp__sass_sectors_mem_global", "memory_l2_theoretical_sectors_global"},
               {"smsp__sass_sectors_mem_global_ideal", "memory_l2_theoretical_sectors_global_ideal"},
               {"smsp__sass_sectors_mem_local", "memory_l2_theoretical_sectors_local"},
               {"smsp__sass_inst_executed_op_global_ld", "sass__inst_executed_global_loads"},
               {"smsp__sass_inst_executed_op_global_st", "sass__inst_executed_global_stores"},
               {"smsp__sass_inst_executed_op_local_ld", "sass__inst_executed_local_loads"},
               {"smsp__sass_inst_executed_op_local_st", "sass__inst_executed_local_stores"},
               {"smsp__sass_inst_executed_memdesc_explicit", MEMDESC_PREFIX "evict_type"},
               {MEMDESC_PREFIX "hitprop_evict_first", MEMDESC_PREFIX "hitprop_evict_first"},
               {MEMDESC_PREFIX "hitprop_evict_last", MEMDESC_PREFIX "hitprop_evict_last"},
               {MEMDESC_PREFIX "hitprop_evict_normal", MEMDESC_PREFIX "hitprop_evict_normal"},
               {MEMDESC_PREFIX "hitprop_evict_normal_demote", MEMDESC_PREFIX "hitprop_evict_normal_demote"},
               {MEMDESC_PREFIX "missprop_evict_first", MEMDESC_PREFIX "missprop_evict_first"},
               {MEMDESC_PREFIX "missprop_evict_normal", MEMDESC_PREFIX "missprop_evict_normal"}};
enum { METRIC_COUNT = sizeof metrics / sizeof *metrics };

static struct {
  uint64_t id;
  const char *ncu_name;
} configured[METRIC_COUNT]; /* metrics that the chip has; set by rl_sass_metrics_open */
static size_t configured_count;

/* Returns ncu's name of the metric with CUPTI's id, or NULL. */
static const char *find_ncu_name(uint64_t id) {
  for (size_t i = 0; i < configured_count; i++)
    if (configured[i].id == id) return configured[i].ncu_name;
  return NULL;
}

int rl_sass_metrics_open(int device_index, const char *chip, rl_error *err) {
  CUpti_SassMetrics_Config configs[METRIC_COUNT];
  configured_count = 0;
  for (size_t i = 0; i < METRIC_COUNT; i++) {
    CUpti_SassMetrics_GetProperties_Params properties = {CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE};
    properties.pChipName = chip;
    properties.pMetricName = metrics[i].cupti_name;
    if (cuptiSassMetricsGetProperties(&properties) != CUPTI_SUCCESS) continue;
    configured[configured_count].id = properties.metric.metricId;
    configured[configured_count].ncu_name = metrics[i].ncu_name;
    configs[configured_count++] = (CUpti_SassMetrics_Config){.metricId = properties.metric.metricId,
                                                             .outputGranularity = CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU};
  }
  CUpti_SassMetricsSetConfig_Params set = {CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE};
  set.numOfMetricConfig = configured_count;
  set.pConfigs = configs;
  set.deviceIndex = (uint32_t)device_index;
  return RL_CUPTI_CALL(cuptiSassMetricsSetConfig, &set, err);
}

bool rl_sass_metrics_has_metric(const char *name) {
  for (size_t i = 0; i < configured_count; i++)
    if (strcmp(configured[i].ncu_name, name) == 0) return true;
  return false;
}

int rl_sass_metrics_start(CUcontext context, rl_error *err) {
  CUpti_SassMetricsEnable_Params enable = {CUpti_SassMetricsEnable_Params_STRUCT_SIZE};
  enable.ctx = context;
  enable.enableLazyPatching = 1; /* patches only functions that are launched */
  return RL_CUPTI_CALL(cuptiSassMetricsEnable, &enable, err);
}

/* Passes all values to the sink, except zeros of metrics other than inst_executed. */
static int deliver(const CUpti_SassMetrics_Data *records, size_t record_count, size_t values_per_record,
                   const rl_instruction_sink *sink, rl_error *err) {
  for (size_t i = 0; i < record_count; i++)
    for (size_t v = 0; v < values_per_record; v++) {
      const CUpti_SassMetrics_InstanceValue *value = &records[i].pInstanceValues[v];
      rl_instruction_count count = {.crc = records[i].cubinCrc,
                                    .function = records[i].functionName,
                                    .offset = records[i].pcOffset,
                                    .metric = find_ncu_name(value->metricId),
                                    .value = (double)value->value};
      bool is_delivered =
          count.metric != NULL && count.function != NULL && (value->value != 0 || strcmp(count.metric, RL_INST_EXECUTED) == 0);
      if (is_delivered && sink->add(sink->context, &count, err) < 0) return -1;
    }
  return 0;
}

/* Reads and delivers the values that CUPTI has collected. */
static int read_values(CUcontext context, const rl_instruction_sink *sink, rl_error *err) {
  CUpti_SassMetricsGetDataProperties_Params properties = {CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE};
  CUpti_SassMetricsFlushData_Params data = {CUpti_SassMetricsFlushData_Params_STRUCT_SIZE};
  properties.ctx = data.ctx = context;
  if (RL_CUPTI_CALL(cuptiSassMetricsGetDataProperties, &properties, err) < 0) return -1;
  const size_t count = properties.numOfPatchedInstructionRecords;
  const size_t values_per_record = properties.numOfInstances * configured_count;
  if (count == 0) return 0;
  CUpti_SassMetrics_Data *records = calloc(count, sizeof *records);
  CUpti_SassMetrics_InstanceValue *values = calloc(count * values_per_record, sizeof *values);
  int result = -1;
  if (records == NULL || values == NULL) {
    rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for SASS metrics of %zu instructions", count);
  } else {
    for (size_t i = 0; i < count; i++)
      records[i] = (CUpti_SassMetrics_Data){.structSize = sizeof *records, .pInstanceValues = &values[i * values_per_record]};
    data.numOfPatchedInstructionRecords = count;
    data.numOfInstances = properties.numOfInstances;
    data.pMetricsData = records;
    result =
        RL_CUPTI_CALL(cuptiSassMetricsFlushData, &data, err) < 0 ? -1 : deliver(records, count, values_per_record, sink, err);
  }
  for (size_t i = 0; records != NULL && i < count; i++) free((void *)(uintptr_t)records[i].functionName);
  free(values);
  free(records);
  return result;
}

int rl_sass_metrics_stop(CUcontext context, const rl_instruction_sink *sink, rl_error *err) {
  CUpti_SassMetricsDisable_Params disable = {CUpti_SassMetricsDisable_Params_STRUCT_SIZE};
  disable.ctx = context;
  int result = read_values(context, sink, err);
  return RL_CUPTI_CALL(cuptiSassMetricsDisable, &disable, result < 0 ? NULL : err) < 0 ? -1 : result;
}
