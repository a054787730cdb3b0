/* bench_checks FILE...: measures whether the checks after each launch change the time of posted kernels that compute correctly.
 * Each file has a posted program as JSON (`code`, `entry`, `grid`, `arguments`, `expected`, ...). bench_checks opens it several
 * times, each time with other addresses of its buffers, because the addresses change a time of 5 us by several percent. Each
 * opening has rounds of samples with the checks and without them; every second round, the order is reversed. Programs whose ratio
 * varies more are opened more often, until the confidence interval is narrow enough, at most MAX_OPENINGS times.
 *
 * It prints a line of JSON for each file and cache state: the medians of all samples; the mean over the openings of the ratio
 * checked / not checked, and its 95 % confidence interval; the smallest and largest ratio of an opening; the number of openings.
 * Ratios compare means of the samples between the quartiles, because the clock's resolution of 32 ns is 0.6 % of 5 us.
 *
 * bench_checks exits with 77 when there is no GPU, and with 1 on failure or when a launch is wrong. */
#include <math.h>
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

enum { MIN_OPENINGS = 10, MAX_OPENINGS = 100, ROUNDS = 6, ROUND_SAMPLES = 25, OPENING_SAMPLES = ROUNDS * ROUND_SAMPLES };
enum { MAX_FILE_BYTES = 8 << 20 };
/* The stopping rule depends on the width of the interval only, so it does not favour a verdict. */
static const double MAX_HALF_WIDTH_RATIO = 0.004;
static const size_t GAP_BYTES = (size_t)7 << 20; /* by which the addresses of two openings differ */

typedef struct compared_times { /* of one cache state */
  double with_us[MAX_OPENINGS][OPENING_SAMPLES], without_us[MAX_OPENINGS][OPENING_SAMPLES];
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

static int compare(rl_instance *instance, rl_cache_state cache, double *with_us, double *without_us, rl_error *err) {
  const rl_sequence *checked = instance->iteration.sequences;
  rl_sequence unchecked = *checked;
  unchecked.check_launch = NULL;
  for (int round = 0; round < ROUNDS; round++, with_us += ROUND_SAMPLES, without_us += ROUND_SAMPLES) {
    const bool checked_first = round % 2 == 0;
    if (take_round(instance, checked_first ? checked : &unchecked, cache, checked_first ? with_us : without_us, err) < 0 ||
        take_round(instance, checked_first ? &unchecked : checked, cache, checked_first ? without_us : with_us, err) < 0)
      return -1;
  }
  return 0;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the samples and returns the mean of those between the quartiles. */
static double interquartile_mean(double *us, size_t count) {
  double sum = 0;
  qsort(us, count, sizeof *us, compare_doubles);
  for (size_t i = count / 4; i < count - count / 4; i++) sum += us[i];
  return sum / (double)(count - 2 * (count / 4));
}

/* The ratio checked / not checked over the openings. */
typedef struct check_ratio {
  double mean, half_width; /* half_width: of the 95 % confidence interval */
  double minimum, maximum;
} check_ratio;

/* Sorts the samples of each opening. */
static check_ratio compute_ratio(compared_times *times, int openings) {
  double ratios[MAX_OPENINGS], sum = 0, squares = 0;
  for (int i = 0; i < openings; i++) {
    ratios[i] =
        interquartile_mean(times->with_us[i], OPENING_SAMPLES) / interquartile_mean(times->without_us[i], OPENING_SAMPLES);
    sum += ratios[i];
  }
  const double mean = sum / openings;
  for (int i = 0; i < openings; i++) squares += (ratios[i] - mean) * (ratios[i] - mean);
  const double critical_value = rl_student_critical_value(0.05, openings - 1);
  qsort(ratios, (size_t)openings, sizeof *ratios, compare_doubles);
  return (check_ratio){mean, critical_value * sqrt(squares / (openings - 1) / openings), ratios[0], ratios[openings - 1]};
}

/* Reorders the times. */
static void print_row(const char *path, const char *cache, compared_times *times, int openings) {
  const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  const size_t samples = (size_t)openings * OPENING_SAMPLES;
  const check_ratio ratio =
      compute_ratio(times, openings); /* before the next lines, which reorder samples of different openings */
  const double with_us = rl_summarize_sample(&times->with_us[0][0], samples).median,
               without_us = rl_summarize_sample(&times->without_us[0][0], samples).median;
  printf(
      "{\"program\":\"%.*s\",\"cache\":\"%s\",\"checked_us\":%.4f,\"unchecked_us\":%.4f,\"ratio\":%.5f,\"low_ratio\":%.5f,"
      "\"high_ratio\":%.5f,\"least_ratio\":%.5f,\"most_ratio\":%.5f,\"openings\":%d,\"samples\":%zu,\"commit\":\"%s\"}\n",
      (int)strcspn(name, "."), name, cache, with_us, without_us, ratio.mean, ratio.mean - ratio.half_width,
      ratio.mean + ratio.half_width, ratio.minimum, ratio.maximum, openings, samples, RL_COMMIT);
  fflush(stdout);
}

/* Opens the program at addresses that depend on `opening`, and takes its samples of both cache states. */
static int measure_opening(rl_device *device, const char *text, int opening, compared_times times[2], rl_error *err) {
  rl_source_params params;
  rl_instance *instance = NULL;
  void *gap = NULL;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, GAP_BYTES * (size_t)(opening + 1), &gap, err) < 0) return -1;
  int rc = open_program(device, text, &params, &instance, err);
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM && rc == 0; cache++)
    rc = compare(instance, (rl_cache_state)cache, times[cache].with_us[opening], times[cache].without_us[opening], err);
  if (instance) instance->ops->close(instance);
  device->ops->release(device, gap);
  return rc;
}

/* Returns whether the confidence intervals of both cache states are narrow enough. */
static bool is_decided(compared_times times[2], int openings) {
  return openings >= MIN_OPENINGS && compute_ratio(&times[RL_CACHE_COLD], openings).half_width <= MAX_HALF_WIDTH_RATIO &&
         compute_ratio(&times[RL_CACHE_WARM], openings).half_width <= MAX_HALF_WIDTH_RATIO;
}

static int measure_program(rl_device *device, const char *path, rl_error *err) {
  static compared_times times[2];
  static const char *const cache_names[] = {[RL_CACHE_COLD] = "cold", [RL_CACHE_WARM] = "warm"};
  char *text = read_file(path);
  int rc = 0, openings = 0;
  for (; openings < MAX_OPENINGS && !is_decided(times, openings) && rc == 0; openings++)
    rc = measure_opening(device, text, openings, times, err);
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM && rc == 0; cache++)
    print_row(path, cache_names[cache], &times[cache], openings);
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
