/* Runs the collectors of one request: PC sampling, SASS metrics, PM sampling and topology. A request lasts from begin to end. If
 * PC sampling is still configured from the previous request, begin takes the samples before the caller collects its counters.
 * Otherwise collect takes them after all other collectors. */
#include "worker/cupti/instruction_profiler.h"

#include <cuda_runtime_api.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/check.h"
#include "worker/cupti/instruction_profiler_internal.h"
#include "worker/cupti/subscriber.h"

enum { SMALL_CUBIN_BYTES = 256 << 10 };

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

static int read_device(rl_instruction_profiler *profiler, rl_error *err) {
  int clock_khz = 0;
  CUpti_Profiler_Initialize_Params start = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  chip.deviceIndex = (size_t)profiler->device_index;
  if (RL_CUPTI_CALL(cuptiProfilerInitialize, &start, err) < 0 || RL_CUPTI_CALL(cuptiDeviceGetChipName, &chip, err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&profiler->sm_count, cudaDevAttrMultiProcessorCount, profiler->device_index),
                    "multiprocessors", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, profiler->device_index), "clock rate", err) < 0)
    return -1;
  snprintf(profiler->chip, sizeof profiler->chip, "%s", chip.pChipName);
  profiler->clock_hz = clock_khz * 1e3;
  return 0;
}

int rl_instruction_profiler_open(int device_index, rl_instruction_profiler **profiler, rl_error *err) {
  rl_instruction_profiler *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the instruction profiler");
  created->device_index = device_index;
  if (read_device(created, err) < 0) {
    free(created);
    return -1;
  }
  *profiler = created;
  return 0;
}

void rl_instruction_profiler_restart_pc_sampling(rl_instruction_profiler *profiler) {
  if (profiler == NULL) return;
  rl_pc_sampling_disable(profiler->pc_sampling);
  rl_pc_sampling_enable_if_allowed(); /* CUPTI samples only modules that are loaded after this */
}

void rl_instruction_profiler_close(rl_instruction_profiler *profiler) {
  if (profiler == NULL) return;
  rl_disassembly_cache_clear(&profiler->disassemblies);
  rl_pc_sampling_close(profiler->pc_sampling);
  rl_counter_plan_close(profiler->pm_sampling_plan);
  free(profiler);
}

/* Copies the cubin that defines the kernel's symbol and requests its disassembly. If crc is not 0, the cubin must have this CRC.
 * Does nothing if no such cubin is loaded. */
static void load_cubin(rl_instruction_profiler *profiler, size_t index, uint64_t crc) {
  const char *symbol = profiler->request->kernels[index].symbol;
  rl_kernel_instruction_data *kernel = &profiler->kernels[index];
  size_t size = 0;
  unsigned char *cubin = rl_loaded_module_copy(symbol, crc, &size);
  if (cubin == NULL || rl_cubin_find(cubin, size, symbol, &kernel->function, NULL) < 0) {
    free(cubin);
    return;
  }
  free(kernel->cubin);
  kernel->cubin = cubin;
  kernel->cubin_size = size;
  kernel->disassembly = rl_disassembly_cache_request(&profiler->disassemblies, &kernel->function, cubin, size);
}

/* Waits for the kernel's SASS. When several modules define the symbol, uses the cubin whose CRC CUPTI reported with the collected
 * values. */
static void finish_disassembly(rl_instruction_profiler *profiler, size_t index) {
  rl_kernel_instruction_data *kernel = &profiler->kernels[index];
  rl_instruction_profile *profile = &kernel->profile;
  if (kernel->crc != 0) load_cubin(profiler, index, kernel->crc);
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
  const line_lookup_context *lookup = context;
  CUpti_GetSassToSourceCorrelationParams params = {.size = CUpti_GetSassToSourceCorrelationParamsSize,
                                                   .cubin = lookup->kernel->cubin,
                                                   .cubinSize = lookup->kernel->cubin_size,
                                                   .functionName = lookup->symbol,
                                                   .pcOffset = (uint64_t)offset};
  if (cuptiGetSassToSourceCorrelation(&params) == CUPTI_SUCCESS && params.lineNumber != 0 && params.fileName != NULL) {
    snprintf(file, size, "%s", params.fileName);
    *line = params.lineNumber;
  }
  free(params.fileName);
  free(params.dirName);
}

static bool needs_sass(const rl_instruction_profiler *profiler) {
  return profiler->selected[RL_COLLECTOR_SASS_METRICS] || profiler->selected[RL_COLLECTOR_PC_SAMPLING];
}

/* Returns the classes of which the kernel has no instruction. Returns 0 (none) if the kernel's SASS is not available, and when
 * loaded modules define its symbol with different code. */
static rl_instruction_classes kernel_absent_classes(const rl_instruction_profiler *profiler, size_t index, int timeout_ms) {
  const rl_kernel_instruction_data *kernel = &profiler->kernels[index];
  rl_cubin_function unique;
  if (kernel->disassembly == NULL || !rl_cached_disassembly_is_ready(kernel->disassembly, timeout_ms) ||
      !rl_loaded_function_find_unique(profiler->request->kernels[index].symbol, &unique) ||
      strcmp(unique.sha256, kernel->function.sha256) != 0)
    return 0;
  const rl_code_environment environment = {.chip = profiler->chip,
                                           .has_access_policy_window = rl_process_may_have_access_policy_window(),
                                           .maps_other_devices = rl_process_maps_other_devices()};
  return rl_absent_instruction_classes(&kernel->disassembly->sass, &environment);
}

/* Returns whether the kernel's SASS is expected soon, so that waiting for it pays. nvdisasm takes longer for the large cubins of
 * libraries. A worker profiles the kernels of libraries repeatedly, so later reports find their SASS in the cache. */
static bool expects_sass(const rl_kernel_instruction_data *kernel) {
  return kernel->disassembly != NULL && kernel->cubin_size <= SMALL_CUBIN_BYTES;
}

bool rl_instruction_profiler_awaits_sass(const rl_instruction_profiler *profiler) {
  bool awaits = false;
  for (size_t k = 0; k < profiler->request->kernel_count; k++) {
    if (!rl_kernel_is_selected(&profiler->request->kernels[k])) continue;
    if (!expects_sass(&profiler->kernels[k])) return false;
    awaits |= !rl_cached_disassembly_is_ready(profiler->kernels[k].disassembly, 0) &&
              rl_cached_disassembly_is_running(profiler->kernels[k].disassembly);
  }
  return awaits;
}

const char *rl_instruction_profiler_chip(const rl_instruction_profiler *profiler) { return profiler->chip; }

rl_instruction_classes rl_instruction_profiler_absent_classes(const rl_instruction_profiler *profiler, int timeout_ms) {
  rl_instruction_classes absent = rl_all_instruction_classes(profiler->chip);
  for (size_t k = 0; k < profiler->request->kernel_count && absent != 0; k++)
    if (rl_kernel_is_selected(&profiler->request->kernels[k])) absent &= kernel_absent_classes(profiler, k, timeout_ms);
  return absent;
}

/* Runs a collector if it is selected. When the collector fails with an error of CUPTI or the system, its metrics have no value,
 * and the error message is their reason. Any other error makes this function fail. */
static int run_collector(rl_instruction_profiler *profiler, rl_collector collector, rl_profiler_stage stage,
                         rl_instruction_profiler_function *collect, rl_error *err) {
  rl_error collector_error = {0};
  int result = profiler->selected[collector] ? collect(profiler, &collector_error) : 0;
  rl_stage_timer_lap(profiler->request->timer, stage);
  if (result == 0) return 0;
  if (collector_error.domain == RL_CUPTI || collector_error.domain == RL_ERRNO) {
    snprintf(profiler->reasons[collector], sizeof profiler->reasons[collector], "%s", collector_error.message);
    return 0;
  }
  if (err != NULL) *err = collector_error;
  return -1;
}

static int collect_pc_samples(rl_instruction_profiler *profiler, rl_error *err) {
  profiler->pc_sampling_attempted = true;
  int result = run_collector(profiler, RL_COLLECTOR_PC_SAMPLING, RL_PROFILER_STAGE_PC_SAMPLING,
                             rl_instruction_profiler_collect_pc_samples, err);
  if (result < 0 || profiler->reasons[RL_COLLECTOR_PC_SAMPLING][0] != '\0') rl_pc_sampling_disable(profiler->pc_sampling);
  return result;
}

static void request_disassemblies(rl_instruction_profiler *profiler) {
  const rl_instruction_profiler_request *request = profiler->request;
  rl_disassembly_cache_trim(&profiler->disassemblies);
  for (size_t k = 0; k < request->kernel_count; k++)
    if (rl_kernel_is_selected(&request->kernels[k])) load_cubin(profiler, k, 0);
}

int rl_instruction_profiler_begin(rl_instruction_profiler *profiler, const rl_instruction_profiler_request *request,
                                  rl_error *err) {
  profiler->request = request;
  profiler->pc_sampling_attempted = false;
  memset(profiler->selected, 0, sizeof profiler->selected);
  memset(profiler->reasons, 0, sizeof profiler->reasons);
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (rl_instruction_profiler_selects(request->profile_options, &rl_raw_metrics[i]))
      profiler->selected[rl_collector_of_metric(rl_raw_metrics[i].name)] = true;
  profiler->kernels = calloc(request->kernel_count, sizeof *profiler->kernels);
  int result = profiler->kernels != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the instruction profiler");
  if (result == 0 && needs_sass(profiler)) request_disassemblies(profiler);
  if (result == 0 && rl_pc_sampling_is_active(profiler->pc_sampling)) result = collect_pc_samples(profiler, err);
  rl_pc_sampling_disable(profiler->pc_sampling);
  rl_stage_timer_lap(request->timer, RL_PROFILER_STAGE_PC_SAMPLING);
  rl_pc_sampling_forbid();
  return result;
}

static int read_interconnect_topology(rl_instruction_profiler *profiler, rl_error *err) {
  char uuid[48];
  if (profiler->interconnect_topology.count > 0) return 0;
  if (read_uuid(profiler->device_index, uuid, err) < 0) return -1;
  rl_topology_read(uuid, &profiler->interconnect_topology);
  return 0;
}

void rl_instruction_profiler_prepare(rl_instruction_profiler *profiler) {
  rl_error ignored;
  (void)read_interconnect_topology(profiler, &ignored);
}

static void set_code_hash(rl_records *records, int64_t ordinal, const char *sha256) {
  for (size_t i = 0; i < records->kernel_count; i++)
    if (records->kernels[i].ordinal == ordinal)
      snprintf(records->kernels[i].code_sha256, sizeof records->kernels[i].code_sha256, "%s", sha256);
}

static int append_instructions(rl_instruction_profiler *profiler, size_t index, rl_error *err) {
  const rl_launched_kernel *launched = &profiler->request->kernels[index];
  rl_kernel_instruction_data *kernel = &profiler->kernels[index];
  const line_lookup_context lookup = {kernel, launched->symbol};
  const rl_line_lookup lines = {find_line, (void *)(uintptr_t)&lookup};
  finish_disassembly(profiler, index);
  if (kernel->cubin != NULL) set_code_hash(profiler->records, launched->ordinal, kernel->function.sha256);
  return rl_instruction_profile_append(&kernel->profile, launched->ordinal, kernel->cubin != NULL ? &lines : NULL,
                                       profiler->records, err);
}

/* Appends the SHA-256 of the kernel's machine code. Every profile has it, because suites compare the machine code even when only
 * counters are collected. */
static void append_code_hash(rl_instruction_profiler *profiler, size_t index) {
  const rl_launched_kernel *launched = &profiler->request->kernels[index];
  rl_cubin_function unique;
  if (rl_loaded_function_find_unique(launched->symbol, &unique))
    set_code_hash(profiler->records, launched->ordinal, unique.sha256);
}

static int append_kernel(rl_instruction_profiler *profiler, size_t index, rl_error *err) {
  if (!needs_sass(profiler)) append_code_hash(profiler, index);
  else if (append_instructions(profiler, index, err) < 0) return -1;
  return rl_instruction_profiler_append_metrics(profiler, index, err);
}

int rl_instruction_profiler_collect(rl_instruction_profiler *profiler, rl_records *records, rl_error *err) {
  profiler->records = records;
  if (run_collector(profiler, RL_COLLECTOR_INTERCONNECT_TOPOLOGY, RL_PROFILER_STAGE_APPENDING, read_interconnect_topology, err) <
          0 ||
      run_collector(profiler, RL_COLLECTOR_SASS_METRICS, RL_PROFILER_STAGE_SASS_METRICS,
                    rl_instruction_profiler_collect_sass_metrics, err) < 0 ||
      run_collector(profiler, RL_COLLECTOR_PM_SAMPLING, RL_PROFILER_STAGE_PM_SAMPLING, rl_instruction_profiler_collect_pm_samples,
                    err) < 0 ||
      (!profiler->pc_sampling_attempted && collect_pc_samples(profiler, err) < 0))
    return -1;
  return 0;
}

int rl_instruction_profiler_append(rl_instruction_profiler *profiler, rl_error *err) {
  for (size_t k = 0; k < profiler->request->kernel_count; k++)
    if (rl_kernel_is_selected(&profiler->request->kernels[k]) && append_kernel(profiler, k, err) < 0) return -1;
  rl_stage_timer_lap(profiler->request->timer, RL_PROFILER_STAGE_APPENDING);
  return 0;
}

void rl_instruction_profiler_end(rl_instruction_profiler *profiler) {
  rl_subscriber_unwatch_launches();
  for (size_t k = 0; profiler->kernels != NULL && k < profiler->request->kernel_count; k++) {
    rl_instruction_profile_clear(&profiler->kernels[k].profile);
    free(profiler->kernels[k].cubin);
  }
  free(profiler->kernels);
  profiler->kernels = NULL;
  rl_pc_sampling_allow();
  rl_stage_timer_lap(profiler->request->timer, RL_PROFILER_STAGE_PC_SAMPLING);
}
