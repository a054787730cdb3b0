#include "worker/cupti/raw_counters.h"

#include <nvperf_host.h>
#include <nvperf_cuda_host.h>
#include <stdlib.h>

#define NEW_PARAMS(TYPE, NAME) NVPW_##TYPE##_Params NAME = {NVPW_##TYPE##_Params_STRUCT_SIZE}

struct rl_metric_evaluator {
  NVPW_MetricsEvaluator *handle; /* NULL: not initialised */
  uint8_t *scratch;
};

static NVPA_Status initialise(rl_metric_evaluator *evaluator, const char *chip) {
  NEW_PARAMS(InitializeHost, start);
  NEW_PARAMS(CUDA_MetricsEvaluator_CalculateScratchBufferSize, size);
  NEW_PARAMS(CUDA_MetricsEvaluator_Initialize, open);
  size.pChipName = open.pChipName = chip;
  NVPA_Status status = NVPW_InitializeHost(&start);
  if (status == NVPA_STATUS_SUCCESS) status = NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize(&size);
  if (status != NVPA_STATUS_SUCCESS) return status;
  open.scratchBufferSize = size.scratchBufferSize;
  open.pScratchBuffer = evaluator->scratch = malloc(size.scratchBufferSize);
  if (evaluator->scratch == NULL) return NVPA_STATUS_OUT_OF_MEMORY;
  status = NVPW_CUDA_MetricsEvaluator_Initialize(&open);
  if (status == NVPA_STATUS_SUCCESS) evaluator->handle = open.pMetricsEvaluator;
  return status;
}

rl_metric_evaluator *rl_metric_evaluator_open(const char *chip) {
  rl_metric_evaluator *evaluator = calloc(1, sizeof *evaluator);
  if (evaluator == NULL || initialise(evaluator, chip) == NVPA_STATUS_SUCCESS) return evaluator;
  rl_metric_evaluator_close(evaluator);
  return NULL;
}

void rl_metric_evaluator_close(rl_metric_evaluator *evaluator) {
  if (evaluator == NULL) return;
  NEW_PARAMS(MetricsEvaluator_Destroy, destroy);
  destroy.pMetricsEvaluator = evaluator->handle;
  if (evaluator->handle != NULL) NVPW_MetricsEvaluator_Destroy(&destroy);
  free(evaluator->scratch);
  free(evaluator);
}

int rl_raw_counters_of(const rl_metric_evaluator *evaluator, const char *metric, const char *names[RL_MAX_RAW_COUNTERS],
                       size_t *count) {
  NVPW_MetricEvalRequest request;
  NEW_PARAMS(MetricsEvaluator_ConvertMetricNameToMetricEvalRequest, convert);
  NEW_PARAMS(MetricsEvaluator_GetMetricRawDependencies, get);
  *count = 0;
  convert.pMetricsEvaluator = get.pMetricsEvaluator = evaluator->handle;
  convert.pMetricName = metric;
  convert.pMetricEvalRequest = &request;
  convert.metricEvalRequestStructSize = get.metricEvalRequestStructSize = NVPW_MetricEvalRequest_STRUCT_SIZE;
  get.pMetricEvalRequests = &request;
  get.numMetricEvalRequests = 1;
  get.metricEvalRequestStrideSize = sizeof request;
  NVPA_Status status = NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest(&convert);
  if (status == NVPA_STATUS_SUCCESS) status = NVPW_MetricsEvaluator_GetMetricRawDependencies(&get); /* only counts them */
  const size_t needed = get.numRawDependencies, optional = get.numOptionalRawDependencies;
  if (status == NVPA_STATUS_SUCCESS && needed + optional > RL_MAX_RAW_COUNTERS) status = NVPA_STATUS_OUT_OF_MEMORY;
  if (status != NVPA_STATUS_SUCCESS) return (int)status;
  get.ppRawDependencies = names;
  get.ppOptionalRawDependencies = names + needed;
  status = NVPW_MetricsEvaluator_GetMetricRawDependencies(&get);
  if (status == NVPA_STATUS_SUCCESS) *count = needed + optional;
  return (int)status;
}
