#include "worker/cupti/instruction_view.h"

#include <cuda_runtime_api.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/check.h"
#include "worker/cupti/instruction_view_internal.h"
#include "worker/cupti/subscriber.h"

/* Formats the UUID as NVML does: "GPU-01234567-...". */
static int read_uuid(int device_index, char *text, rl_error *err) {
  struct cudaDeviceProp device;
  if (rl_cuda_check(cudaGetDeviceProperties(&device, device_index), "cudaGetDeviceProperties", err) < 0) return -1;
  text += sprintf(text, "GPU");
  for (int i = 0; i < 16; i++) {
    bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += sprintf(text, "%s%02x", dash ? "-" : "", (unsigned char)device.uuid.bytes[i]);
  }
  return 0;
}

static int read_device(rl_instruction_view *view, rl_error *err) {
  int clock_khz = 0;
  CUpti_Profiler_Initialize_Params start = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  chip.deviceIndex = (size_t)view->device_index;
  if (RL_CUPTI_CALL(cuptiProfilerInitialize, &start, err) < 0 || RL_CUPTI_CALL(cuptiDeviceGetChipName, &chip, err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&view->sm_count, cudaDevAttrMultiProcessorCount, view->device_index),
                    "multiprocessors", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, view->device_index), "clock rate", err) < 0)
    return -1;
  snprintf(view->chip, sizeof view->chip, "%s", chip.pChipName);
  view->clock_hz = clock_khz * 1e3;
  return 0;
}

int rl_instruction_view_open(int device_index, rl_instruction_view **view, rl_error *err) {
  rl_instruction_view *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the instruction view");
  created->device_index = device_index;
  if (read_device(created, err) < 0) {
    free(created);
    return -1;
  }
  *view = created;
  return 0;
}

void rl_instruction_view_release(rl_instruction_view *view) {
  if (view == NULL) return;
  rl_pc_sampling_finish(view->pc_sampling);
  rl_pc_sampling_enable_unless_paused();
}

void rl_instruction_view_close(rl_instruction_view *view) {
  if (view == NULL) return;
  rl_disassembly_cache_clear(&view->disassemblies);
  rl_pc_sampling_close(view->pc_sampling);
  rl_counter_plan_close(view->pm_sampling_plan);
  free(view);
}

/* Copies the cubin that defines the kernel's symbol and requests its disassembly. If crc is not 0, the cubin must have this CRC.
 * Without such a cubin it does nothing. */
static void load_cubin(rl_instruction_view *view, size_t index, uint64_t crc) {
  const char *symbol = view->request->kernels[index].symbol;
  rl_kernel_instruction_data *kernel = &view->kernels[index];
  size_t size = 0;
  unsigned char *cubin = rl_loaded_module_copy(symbol, crc, &size);
  if (cubin == NULL || rl_cubin_find(cubin, size, symbol, &kernel->function, NULL) < 0) {
    free(cubin);
    return;
  }
  free(kernel->cubin);
  kernel->cubin = cubin;
  kernel->cubin_size = size;
  kernel->disassembly = rl_disassembly_cache_request(&view->disassemblies, &kernel->function, cubin, size);
}

/* Waits for the kernel's SASS. When several modules define the symbol, the right one has the cubin CRC that CUPTI reported with
 * the collected values. */
static void finish_disassembly(rl_instruction_view *view, size_t index) {
  rl_kernel_instruction_data *kernel = &view->kernels[index];
  rl_instruction_profile *profile = &kernel->profile;
  if (kernel->crc != 0) load_cubin(view, index, kernel->crc);
  if (kernel->disassembly != NULL) rl_cached_disassembly_wait(kernel->disassembly);
  if (kernel->disassembly != NULL && kernel->disassembly->sass.count > 0) profile->sass = &kernel->disassembly->sass;
  else
    snprintf(profile->sass_reason, sizeof profile->sass_reason, "%s",
             kernel->disassembly != NULL ? kernel->disassembly->reason
                                         : "the worker has no copy of the cubin that contains this kernel");
}

typedef struct line_lookup_context { /* the kernel whose instructions are mapped to source lines */
  const rl_kernel_instruction_data *kernel;
  const char *symbol;
} line_lookup_context;

/* Implements rl_line_lookup.find. */
static void find_line(void *context, int64_t offset, char *file, size_t size, int64_t *line) {
  const line_lookup_context *from = context;
  CUpti_GetSassToSourceCorrelationParams params = {.size = CUpti_GetSassToSourceCorrelationParamsSize,
                                                   .cubin = from->kernel->cubin,
                                                   .cubinSize = from->kernel->cubin_size,
                                                   .functionName = from->symbol,
                                                   .pcOffset = (uint64_t)offset};
  if (cuptiGetSassToSourceCorrelation(&params) == CUPTI_SUCCESS && params.lineNumber != 0 && params.fileName != NULL) {
    snprintf(file, size, "%s", params.fileName);
    *line = params.lineNumber;
  }
  free(params.fileName);
  free(params.dirName);
}

static bool needs_sass(const rl_instruction_view *view) {
  return view->selected[RL_COLLECTOR_SASS_METRICS] || view->selected[RL_COLLECTOR_PC_SAMPLING];
}

static rl_instruction_classes kernel_absent_classes(const rl_instruction_view *view, size_t index) {
  const rl_kernel_instruction_data *kernel = &view->kernels[index];
  rl_cubin_function only_definition;
  if (kernel->disassembly == NULL || !rl_cached_disassembly_is_ready(kernel->disassembly) ||
      !rl_loaded_function_find(view->request->kernels[index].symbol, &only_definition) ||
      strcmp(only_definition.sha256, kernel->function.sha256) != 0)
    return 0;
  return rl_absent_classes(&kernel->disassembly->sass);
}

rl_instruction_classes rl_instruction_view_absent_classes(rl_instruction_view *view) {
  rl_instruction_classes absent = ~(rl_instruction_classes)0;
  for (size_t k = 0; k < view->request->kernel_count && absent != 0; k++)
    if (view->request->kernels[k].ordinal >= 0) absent &= kernel_absent_classes(view, k);
  return absent;
}

/* Runs a collector if it is selected. When it fails with an error of CUPTI or the system, its metrics have no value, and the
 * message is their reason. Any other error makes this function fail. */
static int run_collector(rl_instruction_view *view, rl_collector collector, rl_profiler_stage stage,
                         rl_instruction_view_function *collect, rl_error *err) {
  rl_error why = {0};
  int result = view->selected[collector] ? collect(view, &why) : 0;
  rl_stage_timer_lap(view->request->timer, stage);
  if (result == 0) return 0;
  if (why.domain == RL_CUPTI || why.domain == RL_SYS) {
    snprintf(view->reasons[collector], sizeof view->reasons[collector], "%s", why.message);
    return 0;
  }
  if (err != NULL) *err = why;
  return -1;
}

static int collect_pc_samples(rl_instruction_view *view, rl_error *err) {
  view->pc_sampling_attempted = true;
  int result =
      run_collector(view, RL_COLLECTOR_PC_SAMPLING, RL_PROFILER_STAGE_PC_SAMPLING, rl_instruction_view_collect_pc_samples, err);
  if (result < 0 || view->reasons[RL_COLLECTOR_PC_SAMPLING][0] != '\0') rl_pc_sampling_finish(view->pc_sampling);
  return result;
}

static void request_disassemblies(rl_instruction_view *view) {
  const rl_instruction_view_request *request = view->request;
  rl_disassembly_cache_trim(&view->disassemblies);
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].ordinal >= 0) load_cubin(view, k, 0);
}

int rl_instruction_view_begin(rl_instruction_view *view, const rl_instruction_view_request *request, rl_error *err) {
  view->request = request;
  view->pc_sampling_attempted = false;
  memset(view->selected, 0, sizeof view->selected);
  memset(view->reasons, 0, sizeof view->reasons);
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (rl_instruction_view_selects(request->profile, &rl_raw_metrics[i]))
      view->selected[rl_collector_of(rl_raw_metrics[i].name)] = true;
  view->kernels = calloc(request->kernel_count, sizeof *view->kernels);
  int result = view->kernels != NULL ? 0 : rl_fail(err, RL_SYS, ENOMEM, "out of memory for the instruction view");
  if (result == 0 && needs_sass(view)) request_disassemblies(view);
  if (result == 0 && rl_pc_sampling_is_active(view->pc_sampling)) result = collect_pc_samples(view, err);
  rl_pc_sampling_finish(view->pc_sampling);
  rl_stage_timer_lap(request->timer, RL_PROFILER_STAGE_PC_SAMPLING);
  rl_pc_sampling_pause();
  return result;
}

static int read_topology(rl_instruction_view *view, rl_error *err) {
  char uuid[48];
  if (view->device_topology.count > 0) return 0;
  if (read_uuid(view->device_index, uuid, err) < 0) return -1;
  rl_topology_read(uuid, &view->device_topology);
  return 0;
}

static void set_code_hash(rl_records *records, int64_t ordinal, const char *sha256) {
  for (size_t i = 0; i < records->kernel_count; i++)
    if (records->kernels[i].ordinal == ordinal)
      snprintf(records->kernels[i].code_sha256, sizeof records->kernels[i].code_sha256, "%s", sha256);
}

static int append_instructions(rl_instruction_view *view, size_t index, rl_error *err) {
  const rl_launched_kernel *launched = &view->request->kernels[index];
  rl_kernel_instruction_data *kernel = &view->kernels[index];
  const line_lookup_context from = {kernel, launched->symbol};
  const rl_line_lookup lines = {find_line, (void *)(uintptr_t)&from};
  finish_disassembly(view, index);
  if (kernel->cubin != NULL) set_code_hash(view->records, launched->ordinal, kernel->function.sha256);
  return rl_instruction_profile_append(&kernel->profile, launched->ordinal, kernel->cubin != NULL ? &lines : NULL, view->records,
                                       err);
}

static int append_kernel(rl_instruction_view *view, size_t index, rl_error *err) {
  if (needs_sass(view) && append_instructions(view, index, err) < 0) return -1;
  return rl_instruction_view_append_metrics(view, index, err);
}

int rl_instruction_view_collect(rl_instruction_view *view, rl_records *records, rl_error *err) {
  view->records = records;
  if (run_collector(view, RL_COLLECTOR_TOPOLOGY, RL_PROFILER_STAGE_INSTRUCTION_ROWS, read_topology, err) < 0 ||
      run_collector(view, RL_COLLECTOR_SASS_METRICS, RL_PROFILER_STAGE_SASS_METRICS, rl_instruction_view_collect_sass_metrics,
                    err) < 0 ||
      run_collector(view, RL_COLLECTOR_PM_SAMPLING, RL_PROFILER_STAGE_TIMELINES, rl_instruction_view_collect_timelines, err) <
          0 ||
      (!view->pc_sampling_attempted && collect_pc_samples(view, err) < 0))
    return -1;
  for (size_t k = 0; k < view->request->kernel_count; k++)
    if (view->request->kernels[k].ordinal >= 0 && append_kernel(view, k, err) < 0) return -1;
  rl_stage_timer_lap(view->request->timer, RL_PROFILER_STAGE_INSTRUCTION_ROWS);
  return 0;
}

void rl_instruction_view_end(rl_instruction_view *view) {
  rl_subscriber_unwatch_launches();
  for (size_t k = 0; view->kernels != NULL && k < view->request->kernel_count; k++) {
    rl_instruction_profile_clear(&view->kernels[k].profile);
    free(view->kernels[k].cubin);
  }
  free(view->kernels);
  view->kernels = NULL;
  rl_pc_sampling_resume();
  rl_stage_timer_lap(view->request->timer, RL_PROFILER_STAGE_PC_SAMPLING);
}
