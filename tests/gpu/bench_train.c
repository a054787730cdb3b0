/* bench_train [NAME=VALUE]...: trains on the GPU without the daemon and prints each epoch's time, loss and accuracy, then a line
 * of JSON. The names, with their defaults or possible values:
 *
 *   engine=auto|cudnn|fused|persistent  precision=fp32|tf32|fp16  epochs=10  warmup=1  batch=64  seed=1
 *   images=0 (all)  dataset=auto|files|synthetic  eager=0
 *   launches=1: also print the time of each launch of a step, measured by repeating the launch in a graph
 *   phases=1: also print the phases of a step, if the engine records their timestamps
 *
 * The time of an epoch includes the shuffle, every step and the last step, which may have fewer images. The program exits with 77
 * and the reason if there is no GPU or no engine supports the parameters, and with 1 on failure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/phases.h"
#include "base/clock.h"
#include "base/commit.h"
#include "library/tune.h"
#include "train/view.h"

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static int precision_of(const char *value) {
  for (int i = 0; rl_precision_names[i]; i++)
    if (strcmp(value, rl_precision_names[i]) == 0) return i;
  fprintf(stderr, "bench_train: precision is fp32, tf32 or fp16\n");
  exit(1);
}

static int is_eager, prints_launches, prints_phases;

static void read_arguments(int argc, char **argv, rl_train_params *params) {
  for (int i = 1; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (!value) {
      fprintf(stderr, "bench_train: %s is not NAME=VALUE\n", argv[i]);
      exit(1);
    }
    *value++ = '\0';
    if (strcmp(argv[i], "precision") == 0) params->precision = precision_of(value);
    else if (strcmp(argv[i], "engine") == 0) snprintf(params->engine, sizeof params->engine, "%s", value);
    else if (strcmp(argv[i], "epochs") == 0) params->epochs = atoll(value);
    else if (strcmp(argv[i], "warmup") == 0) params->warmup_epochs = atoll(value);
    else if (strcmp(argv[i], "batch") == 0) params->batch_size = atoll(value);
    else if (strcmp(argv[i], "seed") == 0) params->seed = atoll(value);
    else if (strcmp(argv[i], "images") == 0) params->max_images = atoll(value);
    else if (strcmp(argv[i], "dataset") == 0) snprintf(params->dataset, sizeof params->dataset, "%s", value);
    else if (strcmp(argv[i], "eager") == 0) is_eager = atoi(value);
    else if (strcmp(argv[i], "launches") == 0) prints_launches = atoi(value);
    else if (strcmp(argv[i], "phases") == 0) prints_phases = atoi(value);
    else {
      fprintf(stderr, "bench_train: unknown argument %s\n", argv[i]);
      exit(1);
    }
  }
}

static void print_choices(rl_train_instance *train) {
  rl_training_choice choices[RL_TRAINING_CHOICES];
  int count = rl_training_choices(train, choices);
  for (int i = 0; i < count; i++) printf("  %-14s %7.2f us  %s\n", choices[i].call, choices[i].us, choices[i].algorithm);
}

/* Prints the time of each launch of a step. Enqueues the shuffle before each launch, so that the counter of steps on the device
 * stays within the epoch. The launches change the weights, so this is called after training. */
static int print_launches(rl_device *device, const rl_instance *instance, rl_error *err) {
  const rl_sequence *begin = &instance->iteration.sequences[0], *step = &instance->iteration.sequences[instance->step_sequence];
  double sum = 0;
  for (size_t i = 0; i < step->launch_count; i++) {
    double us = 0;
    if (begin->launches[0].enqueue(begin->launches[0].arg, device->stream, err) ||
        rl_tune_measure_us(step->launches[i].enqueue, step->launches[i].arg, device->stream, &us, err))
      return -1;
    printf("  %-16s %7.2f us\n", step->launches[i].name, us);
    sum += us;
  }
  printf("  %-16s %7.2f us\n", "sum", sum);
  return 0;
}

static int print_phases(rl_instance *instance, rl_error *err) {
  rl_phase_timestamps timestamps;
  double sum = 0;
  if (instance->ops->read_phase_timestamps(instance, &timestamps, err)) return -1;
  for (size_t i = 0; i < timestamps.phase_count; i++) {
    const rl_phase_durations times = rl_phase_summarize(&timestamps, i);
    /* A maximum of 0 means that the engine does not separate this phase from others. */
    if (times.max_us > 0) printf("  %-22s %7.2f us\n", timestamps.phases[i].name, times.mean_us);
    sum += times.mean_us;
  }
  printf("  %-22s %7.2f us\n", "step", sum);
  printf("%.3f ms between the first and the last timestamp, SM clock %.0f MHz\n",
         (double)(timestamps.end_ns - timestamps.begin_ns) * 1e-6, timestamps.sm_mhz);
  return 0;
}

static int hash_weights(rl_train_instance *train, uint64_t *hash, rl_error *err) {
  float *weights = malloc(RL_PARAMETERS * sizeof *weights);
  if (!weights || train->parameters(train, weights, err)) return -1;
  *hash = 0;
  for (uint32_t i = 0; i < RL_PARAMETERS; i++) {
    uint32_t bits;
    memcpy(&bits, &weights[i], sizeof bits);
    *hash = rl_hash64(*hash ^ bits);
  }
  free(weights);
  return 0;
}

static int bench(rl_device *device, const rl_engine *engine, const rl_train_params *params, rl_error *err) {
  rl_instance *instance = NULL;
  rl_executable *epoch = NULL, *test = NULL;
  rl_elapsed epoch_elapsed = {0}, evaluation_elapsed = {0};
  rl_iteration_results results = {0};
  double device_ms[1000], host_ms[1000];
  int64_t open_begin_ns = rl_monotonic_ns();
  if (engine->open(device, params, &instance, err)) return -1;
  int64_t open_end_ns = rl_monotonic_ns();
  const bool records_phases = prints_phases && instance->ops->set_phase_timestamps;
  if (records_phases && instance->ops->set_phase_timestamps(instance, true, err)) return -1;
  if (device->ops->instantiate(device, &instance->iteration, &epoch, err) ||
      device->ops->instantiate(device, &instance->evaluation, &test, err))
    return -1;
  printf("%s: open %.0f ms, instantiate %.0f ms, %s%s\n", instance->dataset, (double)(open_end_ns - open_begin_ns) * 1e-6,
         (double)(rl_monotonic_ns() - open_end_ns) * 1e-6, instance->deterministic ? "deterministic" : "not deterministic: ",
         instance->deterministic ? "" : instance->deterministic_note);
  print_choices((rl_train_instance *)instance);
  uint64_t weights_hash = 0;
  for (int64_t i = -params->warmup_epochs; i < params->epochs; i++) {
    int rc = is_eager ? device->ops->run_eager(device, &instance->iteration, NULL, &epoch_elapsed, err)
                      : device->ops->run(device, epoch, NULL, &epoch_elapsed, err);
    if (rc || device->ops->run(device, test, NULL, &evaluation_elapsed, err) ||
        instance->ops->read_results(instance, &results, err))
      return -1;
    if (i >= 0) device_ms[i] = epoch_elapsed.device_ms, host_ms[i] = epoch_elapsed.host_ms;
    printf("epoch %lld: device %.3f ms, host %.3f ms, %llu launches, loss %.5f, test loss %.5f, accuracy %.4f (in %.2f ms)\n",
           (long long)i, epoch_elapsed.device_ms, epoch_elapsed.host_ms, (unsigned long long)epoch_elapsed.stream_operations,
           results.train_loss, results.test_loss, results.test_accuracy_ratio, evaluation_elapsed.device_ms);
  }
  if (hash_weights((rl_train_instance *)instance, &weights_hash, err)) return -1;
  size_t count = (size_t)params->epochs;
  double fastest_ms = device_ms[0];
  for (size_t i = 1; i < count; i++) fastest_ms = fmin(fastest_ms, device_ms[i]);
  printf(
      "{\"engine\":\"%s\",\"precision\":\"%s\",\"batch\":%lld,\"seed\":%lld,\"dataset\":\"%s\",\"epochs\":%zu,"
      "\"epoch_device_ms_median\":%.3f,\"epoch_device_ms_min\":%.3f,\"epoch_host_ms_median\":%.3f,"
      "\"test_accuracy_ratio\":%.4f,\"train_loss\":%.6f,\"evaluation_ms\":%.3f,\"launches\":%llu,\"peak_bytes\":%llu,"
      "\"weights_hash\":\"%016llx\",\"commit\":\"%s\"",
      engine->description->name, rl_precision_names[params->precision], (long long)params->batch_size, (long long)params->seed,
      instance->dataset, count, median(device_ms, count), fastest_ms, median(host_ms, count), results.test_accuracy_ratio,
      results.train_loss, evaluation_elapsed.device_ms, (unsigned long long)epoch_elapsed.stream_operations,
      (unsigned long long)device->memory_usage.peak_total_bytes, (unsigned long long)weights_hash, RL_COMMIT);
  for (int i = 0; i < RL_MEMORY_PURPOSE_COUNT; i++)
    printf(",\"peak_%s_bytes\":%llu", rl_memory_purpose_names[i], (unsigned long long)device->memory_usage.peak_bytes[i]);
  if (!isnan(results.loss_scale))
    printf(",\"loss_scale\":%.0f,\"skipped_steps\":%.0f", results.loss_scale, results.skipped_steps);
  printf("}\n");
  if (records_phases && print_phases(instance, err)) return -1;
  if (prints_launches && print_launches(device, instance, err)) return -1;
  device->ops->free_executable(device, epoch);
  device->ops->free_executable(device, test);
  instance->ops->close(instance);
  return 0;
}

int main(int argc, char **argv) {
  rl_error err = {0};
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  params.epochs = 10;
  read_arguments(argc, argv, &params);
  if (params.epochs < 1 || params.epochs > 1000) params.epochs = 10;
  if (rl_device_count(&err) == 0) {
    printf("skipped: %s\n", err.message);
    return 77;
  }
  char *properties = rl_device_properties(0, &err);
  printf("%s\n", properties ? properties : err.message);
  free(properties);
  rl_device *device = rl_device_open(0, &err);
  const rl_engine *engine = device ? rl_engine_find("mnist_cnn", params.engine, &params, &err) : NULL;
  if (device && !engine) {
    printf("skipped: %s\n", err.message);
    return 77;
  }
  if (!device || bench(device, engine, &params, &err)) {
    fprintf(stderr, "bench_train: %s\n", err.message);
    return 1;
  }
  device->ops->close(device);
  return 0;
}
