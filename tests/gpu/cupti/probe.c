/* Profiles a subject (subject.h) from the command line, or runs it for another profiler to profile. The first argument selects
 * what happens; SUBJECT... are the arguments of the linked subject.
 *
 *   run SUBJECT...                  runs one step between cudaProfilerStart and cudaProfilerStop
 *   cold SUBJECT...                 the same, but flushes L2 before each launch, as rooflined's profiler does
 *   count METRICS SUBJECT...        profiles a step with rooflined's profiler and prints CSV with the columns ordinal, launch,
 *                                   kernel, grid, block, metric, reason, value. METRICS is the name of a metric set, or metrics
 *                                   separated by commas
 *   recount METRICS SUBJECT...      profiles twice and prints the second profile, which knows the kernels' SASS from the first
 *   bench METRICS TIMES SUBJECT...  profiles TIMES times and prints how long each profile and each of its stages took
 *   trace SUBJECT...                traces an iteration as a worker does; exits with 1 unless every launch is recorded */
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "load_profiler.h"
#include "subject.h"

static rl_instance *open_subject(int argc, char **argv) {
  rl_instance *instance = NULL;
  rl_error err = {0};
  int opened = subject_open(argc, argv, &instance, &err);
  if (opened == 1) {
    printf("skipped: %s\n", err.message);
    exit(SKIP);
  }
  check(opened, "subject", &err);
  return instance;
}

/* Evicts from L2 what earlier kernels left there, by the same copies as daemon/worker/cupti/cache_flush.c: 128 MiB in chunks of 4
 * MiB, each copied to the same 4 MiB. */
static void flush_l2(cudaStream_t stream) {
  enum { BYTES = 128 << 20, CHUNK = 4 << 20 };
  static char *memory;
  rl_error err = {.message = "memory for the cache flush"};
  if (memory == NULL && cudaMalloc((void **)&memory, BYTES + CHUNK) != cudaSuccess) check(-1, "cold", &err);
  for (size_t offset = 0; offset < BYTES; offset += CHUNK)
    cudaMemcpyAsync(memory + BYTES, memory + offset, CHUNK, cudaMemcpyDeviceToDevice, stream);
}

static void run_sequence(const rl_instance *instance, const rl_sequence *sequence, bool cold) {
  rl_error err = {0};
  for (size_t i = 0; i < sequence->launch_count && sequence->repeat > 0; i++) {
    if (cold) flush_l2(instance->device->stream);
    check(sequence->launches[i].enqueue(sequence->launches[i].arg, instance->device->stream, &err), sequence->name, &err);
  }
  if (cudaStreamSynchronize(instance->device->stream) != cudaSuccess) check(-1, sequence->name, &err);
}

/* Runs the sequences before the step and the step itself once, so that the kernels are loaded, then restores the instance's state
 * and runs the step again between cudaProfilerStart and cudaProfilerStop. rooflined's profiler profiles the second run of the
 * step too. */
static int run(int argc, char **argv, bool cold) {
  rl_error err = {0};
  rl_instance *instance = open_subject(argc, argv);
  const rl_sequence *step = &instance->iteration.sequences[instance->step_sequence];
  for (const rl_sequence *sequence = instance->iteration.sequences; sequence < step; sequence++)
    run_sequence(instance, sequence, false);
  check(instance->ops->save(instance, &err), "save", &err);
  run_sequence(instance, step, false);
  check(instance->ops->restore(instance, &err), "restore", &err);
  cudaProfilerStart();
  run_sequence(instance, step, cold);
  cudaProfilerStop();
  instance->ops->close(instance);
  return 0;
}

/* Returns the profile options for `metrics`: the name of a metric set ("auto" is the set of a job without options), or else
 * metrics separated by commas. With PROBE_CACHE=empty, L2 is empty before each kernel. */
static rl_profile_options parse_profile_options(const char *metrics) {
  const char *cache = getenv("PROBE_CACHE");
  rl_profile_options requested = {.matching_index = RL_ALL_MATCHING_KERNELS};
  if (cache != NULL && strcmp(cache, rl_l2_state_names[RL_L2_EMPTY]) == 0) requested.cache = RL_L2_EMPTY;
  for (int i = 0; rl_profile_set_names[i] != NULL; i++)
    if (strcmp(rl_profile_set_names[i], metrics) == 0) return rl_profile_options_resolve(i, &requested);
  snprintf(requested.metrics, sizeof requested.metrics, "%s", metrics);
  for (char *comma = requested.metrics; (comma = strchr(comma, ',')) != NULL;) *comma = '\n';
  return requested;
}

static int collect(int argc, char **argv, int repeats) {
  if (argc < 1) return 2;
  rl_error err = {0};
  const rl_profile_options profile_options = parse_profile_options(argv[0]);
  rl_records records = {0};
  char reason[RL_REASON_SIZE] = "";
  rl_profiler *profiler = load_profiler(&err);
  rl_instance *instance = open_subject(argc - 1, argv + 1);
  check(profiler == NULL ? -1 : 0, "profiler", &err);
  profiler->device = instance->device;
  int result = 0;
  for (int i = 0; i < repeats && result == 0; i++) {
    /* Without the reset, the shuffle before the step would choose other images the second time. */
    check(instance->ops->reset(instance, &err), "reset", &err);
    rl_records_clear(&records);
    result = profiler->ops->collect_counters(profiler, instance, &profile_options, NULL, &records, reason, &err);
  }
  if (result == 1) {
    printf("skipped: %s\n", reason);
    return SKIP;
  }
  check(result, "counters", &err);
  for (size_t i = 0; i < records.metric_count; i++) {
    const rl_kernel_metric *metric = &records.metrics[i];
    const rl_kernel *kernel = &records.kernels[metric->ordinal];
    printf("%d,%s,\"%s\",%d %d %d,%d %d %d,%s,\"%s\",", (int)metric->ordinal, kernel->launch, kernel->name, (int)kernel->grid_x,
           (int)kernel->grid_y, (int)kernel->grid_z, (int)kernel->block_x, (int)kernel->block_y, (int)kernel->block_z,
           metric->metric, metric->reason);
    if (isnan(metric->value)) printf("\n");
    else printf("%.17g\n", metric->value);
  }
  rl_records_clear(&records);
  profiler->ops->close(profiler);
  instance->ops->close(instance);
  return 0;
}

static int bench(int argc, char **argv) {
  if (argc < 2) return 2;
  rl_error err = {0};
  const rl_profile_options profile_options = parse_profile_options(argv[0]);
  rl_profiler *profiler = load_profiler(&err);
  rl_instance *instance = open_subject(argc - 2, argv + 2);
  check(profiler == NULL ? -1 : 0, "profiler", &err);
  profiler->device = instance->device;
  for (int i = 0; i < atoi(argv[1]); i++) {
    rl_records records = {0};
    char reason[RL_REASON_SIZE] = "";
    int64_t begin = rl_monotonic_ns();
    check(profiler->ops->collect_counters(profiler, instance, &profile_options, NULL, &records, reason, &err), "counters", &err);
    printf("%s: %zu kernels, %zu metrics, %.3f s\n", argv[0], records.kernel_count, records.metric_count,
           (double)(rl_monotonic_ns() - begin) * 1e-9);
    for (size_t stage = 0; stage < records.measurement_count; stage++)
      printf("  %s %.1f\n", records.measurements[stage].name, records.measurements[stage].value);
    fflush(stdout);
    rl_records_clear(&records);
  }
  profiler->ops->close(profiler);
  instance->ops->close(instance);
  return 0;
}

static double measurement_value(const rl_records *records, const char *name) {
  for (size_t i = 0; i < records->measurement_count; i++)
    if (strcmp(records->measurements[i].name, name) == 0) return records->measurements[i].value;
  return NAN;
}

static int trace(int argc, char **argv) {
  rl_error err = {0};
  rl_records records = {0};
  rl_elapsed plain, traced;
  rl_executable *executable = NULL;
  rl_profiler *profiler = load_profiler(&err);
  rl_instance *instance = open_subject(argc, argv);
  rl_device *device = instance->device;
  check(profiler == NULL ? -1 : 0, "profiler", &err);
  check(device->ops->instantiate(device, &instance->iteration, &executable, &err), "instantiate", &err);
  for (int i = 0; i < 3; i++) check(device->ops->run(device, executable, NULL, &plain, &err), "run", &err);
  check(profiler->ops->trace_start(profiler, &err), "trace", &err);
  check(device->ops->run(device, executable, NULL, &traced, &err), "run", &err);
  check(profiler->ops->trace_stop(profiler, &records, &err), "trace", &err);
  uint64_t kinds[RL_ACTIVITY_KIND_COUNT] = {0};
  for (size_t i = 0; i < records.row_count; i++) kinds[records.rows[i].kind]++;
  uint64_t work = kinds[RL_ACTIVITY_KERNEL] + kinds[RL_ACTIVITY_MEMCPY] + kinds[RL_ACTIVITY_MEMSET];
  printf(
      "launches %llu, recorded %llu (%llu kernels), all records %.0f, dropped %.0f, without times %.0f; %.3f ms, "
      "traced %.3f ms\n",
      (unsigned long long)traced.stream_operations, (unsigned long long)work, (unsigned long long)kinds[RL_ACTIVITY_KERNEL],
      measurement_value(&records, "activity_records"), measurement_value(&records, "activity_dropped_records"),
      measurement_value(&records, "activity_zero_time_records"), plain.device_ms, traced.device_ms);
  for (int kind = 0; kind < RL_ACTIVITY_KIND_COUNT; kind++)
    printf("%s %llu\n", rl_activity_kind_names[kind], (unsigned long long)kinds[kind]);
  bool complete = work == traced.stream_operations && measurement_value(&records, "activity_dropped_records") == 0 &&
                  measurement_value(&records, "activity_zero_time_records") == 0;
  rl_records_clear(&records);
  device->ops->free_executable(device, executable);
  profiler->ops->close(profiler);
  instance->ops->close(instance);
  return complete ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc >= 2 && strcmp(argv[1], "run") == 0) return run(argc - 2, argv + 2, false);
  if (argc >= 2 && strcmp(argv[1], "cold") == 0) return run(argc - 2, argv + 2, true);
  if (argc >= 2 && strcmp(argv[1], "count") == 0) return collect(argc - 2, argv + 2, 1);
  if (argc >= 2 && strcmp(argv[1], "recount") == 0) return collect(argc - 2, argv + 2, 2);
  if (argc >= 2 && strcmp(argv[1], "trace") == 0) return trace(argc - 2, argv + 2);
  if (argc >= 2 && strcmp(argv[1], "bench") == 0) return bench(argc - 2, argv + 2);
  fprintf(stderr, "usage: %s run|cold|count METRICS|recount METRICS|bench METRICS TIMES|trace SUBJECT...\n", argv[0]);
  return 2;
}
