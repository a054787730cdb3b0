#include "worker/cupti/sass.h"

#include <cupti_sass_metrics.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/code/listing.h"
#include "worker/cupti/result.h"

#define CALL(function, params, err) rl_cupti_check(function(params), #function, err)

#define POLICY "smsp__sass_inst_executed_memdesc_explicit_"

/* What CUPTI counts, and the same under the name that ncu gives it. */
static const struct {
  const char *counted, *name;
} metrics[] = {{"smsp__sass_inst_executed", RL_EXECUTED},
               {"smsp__sass_thread_inst_executed", RL_THREADS},
               {"smsp__sass_thread_inst_executed_pred_on", RL_THREADS_ON},
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
               {"smsp__sass_inst_executed_memdesc_explicit", POLICY "evict_type"},
               {POLICY "hitprop_evict_first", POLICY "hitprop_evict_first"},
               {POLICY "hitprop_evict_last", POLICY "hitprop_evict_last"},
               {POLICY "hitprop_evict_normal", POLICY "hitprop_evict_normal"},
               {POLICY "hitprop_evict_normal_demote", POLICY "hitprop_evict_normal_demote"},
               {POLICY "missprop_evict_first", POLICY "missprop_evict_first"},
               {POLICY "missprop_evict_normal", POLICY "missprop_evict_normal"}};
enum { METRICS = sizeof metrics / sizeof *metrics };

static struct {
  uint64_t id;
  const char *name;
} collected[METRICS]; /* that the chip has, once it is open */
static size_t collected_count;

static const char *name_of(uint64_t id) {
  for (size_t i = 0; i < collected_count; i++)
    if (collected[i].id == id) return collected[i].name;
  return NULL;
}

int rl_sass_open(int device_index, const char *chip, rl_error *err) {
  CUpti_SassMetrics_Config configs[METRICS];
  collected_count = 0;
  for (size_t i = 0; i < METRICS; i++) {
    CUpti_SassMetrics_GetProperties_Params properties = {CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE};
    properties.pChipName = chip;
    properties.pMetricName = metrics[i].counted;
    if (cuptiSassMetricsGetProperties(&properties) != CUPTI_SUCCESS) continue;
    collected[collected_count].id = properties.metric.metricId;
    collected[collected_count].name = metrics[i].name;
    configs[collected_count++] = (CUpti_SassMetrics_Config){.metricId = properties.metric.metricId,
                                                            .outputGranularity = CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU};
  }
  CUpti_SassMetricsSetConfig_Params set = {CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE};
  set.numOfMetricConfig = collected_count;
  set.pConfigs = configs;
  set.deviceIndex = (uint32_t)device_index;
  return CALL(cuptiSassMetricsSetConfig, &set, err);
}

bool rl_sass_counts(const char *name) {
  for (size_t i = 0; i < collected_count; i++)
    if (strcmp(collected[i].name, name) == 0) return true;
  return false;
}

int rl_sass_begin(CUcontext context, rl_error *err) {
  CUpti_SassMetricsEnable_Params enable = {CUpti_SassMetricsEnable_Params_STRUCT_SIZE};
  enable.ctx = context;
  enable.enableLazyPatching = 1; /* only the functions that are launched meanwhile */
  return CALL(cuptiSassMetricsEnable, &enable, err);
}

static int hand_out(const CUpti_SassMetrics_Data *records, size_t count, size_t values, const rl_code_sink *sink, rl_error *err) {
  for (size_t i = 0; i < count; i++)
    for (size_t v = 0; v < values; v++) {
      const CUpti_SassMetrics_InstanceValue *value = &records[i].pInstanceValues[v];
      rl_code_count counted = {.crc = records[i].cubinCrc,
                               .function = records[i].functionName,
                               .offset = records[i].pcOffset,
                               .metric = name_of(value->metricId),
                               .value = (double)value->value};
      bool told =
          counted.metric != NULL && counted.function != NULL && (value->value != 0 || strcmp(counted.metric, RL_EXECUTED) == 0);
      if (told && sink->take(sink->context, &counted, err) != 0) return -1;
    }
  return 0;
}

static int flush(CUcontext context, const rl_code_sink *sink, rl_error *err) {
  CUpti_SassMetricsGetDataProperties_Params properties = {CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE};
  CUpti_SassMetricsFlushData_Params data = {CUpti_SassMetricsFlushData_Params_STRUCT_SIZE};
  properties.ctx = data.ctx = context;
  if (CALL(cuptiSassMetricsGetDataProperties, &properties, err) != 0) return -1;
  size_t count = properties.numOfPatchedInstructionRecords, values = properties.numOfInstances * collected_count;
  if (count == 0) return 0;
  CUpti_SassMetrics_Data *records = calloc(count, sizeof *records);
  CUpti_SassMetrics_InstanceValue *all = calloc(count * values, sizeof *all);
  int result = -1;
  if (records == NULL || all == NULL) {
    rl_fail(err, RL_SYS, ENOMEM, "no memory for counts of %zu instructions", count);
  } else {
    for (size_t i = 0; i < count; i++)
      records[i] = (CUpti_SassMetrics_Data){.structSize = sizeof *records, .pInstanceValues = &all[i * values]};
    data.numOfPatchedInstructionRecords = count;
    data.numOfInstances = properties.numOfInstances;
    data.pMetricsData = records;
    result = CALL(cuptiSassMetricsFlushData, &data, err) != 0 ? -1 : hand_out(records, count, values, sink, err);
  }
  for (size_t i = 0; records != NULL && i < count; i++) free((void *)(uintptr_t)records[i].functionName);
  free(all);
  free(records);
  return result;
}

int rl_sass_end(CUcontext context, const rl_code_sink *sink, rl_error *err) {
  CUpti_SassMetricsDisable_Params disable = {CUpti_SassMetricsDisable_Params_STRUCT_SIZE};
  disable.ctx = context;
  int result = flush(context, sink, err);
  return CALL(cuptiSassMetricsDisable, &disable, result == 0 ? err : NULL) == 0 ? result : -1;
}
