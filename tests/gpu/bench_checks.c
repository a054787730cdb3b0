/* bench_checks FILE...: measures whether the checks after each launch change the time of posted kernels that compute correctly.
 * Each file has a posted program as JSON (`code`, `entry`, `grid`, `arguments`, `expected`, ...). In each round, bench_checks
 * takes samples of the posted program with the checks and without them; every second round, the order is reversed. It prints a
 * line of JSON for each file and cache state: medians over all samples, their ratio, and the smallest and largest ratio of a
 * round.
 *
 * bench_checks exits with 77 when there is no GPU, and with 1 on failure or when a launch is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistics.h"
#include "base/commit.h"
#include "base/sha256.h"
#include "device/device.h"
#include "source/source.h"
#include "source/source_cache.h"
#include "workload.h"

enum { ROUND_COUNT = 20, ROUND_SAMPLES = 25, MAX_FILE_BYTES = 8 << 20 };

typedef struct compared_times {
  double with_us[ROUND_COUNT * ROUND_SAMPLES], without_us[ROUND_COUNT * ROUND_SAMPLES];
} compared_times;

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, MAX_FILE_BYTES + 1);
  if (!file || !text || fread(text, 1, MAX_FILE_BYTES, file) == 0) {
    fprintf(stderr, "can't read %s\n", path);
    exit(1);
  }
  fclose(file);
  return text;
}

static int open_program(rl_device *device, const char *text, rl_source_params *params, rl_instance **instance, rl_error *err) {
  rl_source_workload.defaults(params);
  rl_sha256(text, strlen(text), params->source_sha256);
  if (rl_source_cache_put(text, strlen(text), err) < 0) return -1;
  const rl_engine *engine = rl_engine_find("source", "nvrtc", params, err);
  return engine ? engine->open(device, params, instance, err) : -1;
}

static int take_round(rl_instance *instance, const rl_sequence *sequence, rl_cache_state cache, double *us, rl_error *err) {
  uint64_t checked;
  rl_device *device = instance->device;
  return device->ops->sample(device, sequence, cache, ROUND_SAMPLES, NULL, us, err) < 0 ||
                 instance->ops->read_launch_checks(instance, &checked, err) < 0
             ? -1
             : 0;
}

static int compare(rl_instance *instance, rl_cache_state cache, compared_times *times, rl_error *err) {
  const rl_sequence *checked = instance->iteration.sequences;
  rl_sequence unchecked = *checked;
  unchecked.check_launch = NULL;
  for (int round = 0; round < ROUND_COUNT; round++) {
    double *with_us = times->with_us + round * ROUND_SAMPLES, *without_us = times->without_us + round * ROUND_SAMPLES;
    const bool checked_first = round % 2 == 0;
    if (take_round(instance, checked_first ? checked : &unchecked, cache, checked_first ? with_us : without_us, err) < 0 ||
        take_round(instance, checked_first ? &unchecked : checked, cache, checked_first ? without_us : with_us, err) < 0)
      return -1;
  }
  return 0;
}

/* Computes the median of a copy, because rl_summarize_sample changes the times. */
static double median(const double *us, size_t count) {
  double copy[ROUND_COUNT * ROUND_SAMPLES];
  memcpy(copy, us, count * sizeof *us);
  return rl_summarize_sample(copy, count).median;
}

static void print_row(const char *path, const char *cache, const compared_times *times) {
  double min_ratio = 1e9, max_ratio = 0;
  for (int round = 0; round < ROUND_COUNT; round++) {
    const double ratio = median(times->with_us + round * ROUND_SAMPLES, ROUND_SAMPLES) /
                         median(times->without_us + round * ROUND_SAMPLES, ROUND_SAMPLES);
    if (ratio < min_ratio) min_ratio = ratio;
    if (ratio > max_ratio) max_ratio = ratio;
  }
  const double with_us = median(times->with_us, ROUND_COUNT * ROUND_SAMPLES),
               without_us = median(times->without_us, ROUND_COUNT * ROUND_SAMPLES);
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  printf(
      "{\"program\":\"%.*s\",\"cache\":\"%s\",\"checked_us\":%.4f,\"unchecked_us\":%.4f,\"ratio\":%.5f,\"least_ratio\":%.5f,"
      "\"most_ratio\":%.5f,\"samples\":%d,\"commit\":\"%s\"}\n",
      (int)strcspn(name, "."), name, cache, with_us, without_us, with_us / without_us, min_ratio, max_ratio,
      ROUND_COUNT * ROUND_SAMPLES, RL_COMMIT);
  fflush(stdout);
}

static int measure_program(rl_device *device, const char *path, rl_error *err) {
  static compared_times times;
  static const char *const cache_names[] = {[RL_CACHE_COLD] = "cold", [RL_CACHE_WARM] = "warm"};
  rl_source_params params;
  rl_instance *instance = NULL;
  char *text = read_file(path);
  int rc = open_program(device, text, &params, &instance, err);
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM && rc == 0; cache++) {
    rc = compare(instance, (rl_cache_state)cache, &times, err);
    if (rc == 0) print_row(path, cache_names[cache], &times);
  }
  if (instance) instance->ops->close(instance);
  free(text);
  return rc;
}

int main(int argc, char **argv) {
  rl_error err = {0};
  int rc = 0;
  if (rl_device_count(&err) == 0) return fprintf(stderr, "skipped: %s\n", err.message), 77;
  rl_device *device = rl_device_open(0, &err);
  if (!device) return fprintf(stderr, "%s\n", err.message), 1;
  for (int i = 1; i < argc && rc == 0; i++) rc = measure_program(device, argv[i], &err);
  if (rc < 0) fprintf(stderr, "%s%s%s\n", err.json_pointer, err.json_pointer[0] ? " " : "", err.message);
  device->ops->close(device);
  return rc < 0 ? 1 : 0;
}
