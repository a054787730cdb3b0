/* Measures the time, loss and accuracy of the CPU training engines for docs/measurements/cpu-training.md. The engines alternate
 * after every epoch, and before and after each epoch the program measures the rate of OpenBLAS's sgemm on as many threads, so
 * that other load on the machine affects all engines and sgemm alike. Usage: cpu_training [-e engine[,engine]] [-p fp32|fp16] [-b
 * batch] [-n images] [-r epochs] [-s seed] [-d dataset] */
#include <cblas.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/commit.h"
#include "train/model.h"

enum { SGEMM_SIDE = 2048, MAX_LAUNCHES = 32, MAX_ENGINES = 4, MAX_EPOCHS = 100 };

typedef struct measured_engine {
  const rl_engine *engine;
  rl_instance *instance;
  double ms[MAX_EPOCHS], cpu_ms[MAX_EPOCHS]; /* wall time and CPU time of all threads, of each epoch */
  struct {
    const rl_launch *launch;
    int64_t ns;
  } totals[MAX_LAUNCHES];
} measured_engine;

static void add_span(void *context, const rl_span *span) {
  measured_engine *measured = context;
  int i = 0;
  while (i < MAX_LAUNCHES - 1 && measured->totals[i].launch != NULL &&
         strcmp(measured->totals[i].launch->name, span->launch->name) != 0)
    i++;
  measured->totals[i].launch = span->launch;
  measured->totals[i].ns += span->end_ns - span->start_ns;
}

/* Returns the highest rate of five matrix products, in GFLOP/s; NAN if memory is exhausted. */
static double sgemm_gflops(int threads) {
  static float *matrices[3];
  for (int i = 0; i < 3 && matrices[2] == NULL; i++) {
    matrices[i] = malloc(sizeof(float) * SGEMM_SIDE * SGEMM_SIDE);
    for (int k = 0; matrices[i] != NULL && k < SGEMM_SIDE * SGEMM_SIDE; k++) matrices[i][k] = (float)(k % 7);
  }
  if (matrices[0] == NULL || matrices[1] == NULL || matrices[2] == NULL) return NAN;
  openblas_set_num_threads(threads);
  double best = 0;
  for (int repeat = 0; repeat < 5; repeat++) {
    int64_t start = rl_monotonic_ns();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SGEMM_SIDE, SGEMM_SIDE, SGEMM_SIDE, 1, matrices[0], SGEMM_SIDE,
                matrices[1], SGEMM_SIDE, 0, matrices[2], SGEMM_SIDE);
    best = fmax(best, 2.0 * SGEMM_SIDE * SGEMM_SIDE * SGEMM_SIDE / (double)(rl_monotonic_ns() - start));
  }
  openblas_set_num_threads(1);
  return best;
}

static double cpu_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int run_epoch(rl_device *device, const rl_train_params *params, measured_engine *measured, int epoch, rl_error *err) {
  const rl_observer observer = {.context = measured, .span = add_span};
  rl_instance *instance = measured->instance;
  rl_elapsed training, evaluation;
  rl_iteration_results report;
  double before = sgemm_gflops(device->threads), start = cpu_ms();
  if (device->ops->run_eager(device, &instance->iteration, &observer, &training, err) != 0) return -1;
  measured->ms[epoch] = training.host_ms;
  measured->cpu_ms[epoch] = cpu_ms() - start;
  if (device->ops->run_eager(device, &instance->evaluation, NULL, &evaluation, err) != 0 ||
      instance->ops->read_results(instance, &report, err) != 0)
    return -1;
  double sgemm = fmax(before, sgemm_gflops(device->threads));
  double rate = (double)instance->images * rl_model_operations_per_image() / training.host_ms * 1e-6;
  printf(
      "%s epoch %d: %.0f ms (%.0f ms of CPU), %.1f GFLOP/s = %.0f %% of sgemm's %.1f; loss %.4f, test loss %.4f, accuracy %.4f, "
      "evaluation %.0f ms",
      measured->engine->description->name, epoch, training.host_ms, measured->cpu_ms[epoch], rate, 100 * rate / sgemm, sgemm,
      report.train_loss, report.test_loss, report.test_accuracy_ratio, evaluation.host_ms);
  if (params->precision == RL_FP16) printf(", scale %g, skipped %g", report.loss_scale, report.skipped_steps);
  puts("");
  fflush(stdout);
  return 0;
}

static int compare_doubles(const void *a, const void *b) {
  double difference = *(const double *)a - *(const double *)b;
  return (difference > 0) - (difference < 0);
}

static double median(int count, double *values) {
  qsort(values, (size_t)count, sizeof *values, compare_doubles);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void summarize(measured_engine *measured, const measured_engine *baseline, int epochs) {
  double ratios[MAX_EPOCHS], cpu_ratios[MAX_EPOCHS];
  for (int i = 0; i < epochs; i++) {
    ratios[i] = measured->ms[i] / baseline->ms[i];
    cpu_ratios[i] = measured->cpu_ms[i] / baseline->cpu_ms[i];
  }
  printf("%s: an epoch takes %.2f times as long as %s's, and %.2f times its CPU time (medians of %d pairs)\n",
         measured->engine->description->name, median(epochs, ratios), baseline->engine->description->name,
         median(epochs, cpu_ratios), epochs);
  for (int i = 0; i < MAX_LAUNCHES && measured->totals[i].launch != NULL; i++)
    printf("  %-22s %9.1f ms an epoch\n", measured->totals[i].launch->name, (double)measured->totals[i].ns * 1e-6 / epochs);
}

static int fail_with(const rl_error *err) {
  fprintf(stderr, "cpu_training: %s\n", err->message);
  return 1;
}

int main(int count, char **arguments) {
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  char names[64] = "auto";
  int option, epochs = 1, engines = 0;
  while ((option = getopt(count, arguments, "e:p:b:n:r:s:d:")) != -1) switch (option) {
      case 'e': snprintf(names, sizeof names, "%s", optarg); break;
      case 'p': params.precision = strcmp(optarg, "fp16") == 0 ? RL_FP16 : RL_FP32; break;
      case 'b': params.batch_size = atoll(optarg); break;
      case 'n': params.max_images = atoll(optarg); break;
      case 'r': epochs = atoi(optarg); break;
      case 's': params.seed = atoll(optarg); break;
      case 'd': snprintf(params.dataset, sizeof params.dataset, "%s", optarg); break;
      default: return 2;
    }
  if (epochs < 1 || epochs > MAX_EPOCHS) return 2;
  rl_error err = {0};
  rl_device *device = rl_device_open(0, &err);
  if (device == NULL) return fail_with(&err);
  static measured_engine measured[MAX_ENGINES];
  for (char *name = strtok(names, ","); name != NULL && engines < MAX_ENGINES; name = strtok(NULL, ","), engines++) {
    measured[engines].engine = rl_engine_find("mnist_cnn", name, &params, &err);
    if (measured[engines].engine == NULL ||
        measured[engines].engine->open(device, &params, &measured[engines].instance, &err) != 0)
      return fail_with(&err);
  }
  char *properties = rl_device_properties(0, &err);
  printf("commit %s\ndevice %s\n%s, batch %lld, seed %lld, %llu images of %s\n", RL_COMMIT, properties != NULL ? properties : "?",
         rl_precision_names[params.precision], (long long)params.batch_size, (long long)params.seed,
         (unsigned long long)measured[0].instance->images, measured[0].instance->dataset);
  free(properties);
  for (int epoch = 0; epoch < epochs; epoch++)
    for (int i = 0; i < engines; i++)
      if (run_epoch(device, &params, &measured[i], epoch, &err) != 0) return fail_with(&err);
  for (int i = 0; i < engines; i++) {
    summarize(&measured[i], &measured[0], epochs);
    measured[i].instance->ops->close(measured[i].instance);
  }
  device->ops->close(device);
  return 0;
}
