/* How fast and how well the CPU engines train: for docs/measurements/cpu-training.md. Before and after each epoch the machine's own sgemm rate is
 * measured on as many threads, so that what else runs on the machine weighs on both.
 * Usage: cpu_training [-e engine] [-p fp32|fp16] [-b batch] [-n images] [-r epochs] [-s seed] [-d dataset] */
#include <cblas.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/commit.h"
#include "train/model.h"

enum { SIDE = 2048, MOST = 32 };

static struct {
  const rl_launch *launch;
  int64_t ns;
} totals[MOST];

static void add_span(void *context, const rl_span *span) {
  (void)context;
  int i = 0;
  while (i < MOST - 1 && totals[i].launch != NULL && strcmp(totals[i].launch->name, span->launch->name) != 0) i++;
  totals[i].launch = span->launch;
  totals[i].ns += span->end_ns - span->start_ns;
}

static double sgemm_gflops(int threads) {
  static float *m[3];
  for (int i = 0; i < 3 && m[2] == NULL; i++) {
    m[i] = malloc(sizeof(float) * SIDE * SIDE);
    for (int k = 0; m[i] != NULL && k < SIDE * SIDE; k++) m[i][k] = (float)(k % 7);
  }
  if (m[0] == NULL || m[1] == NULL || m[2] == NULL) return NAN;
  openblas_set_num_threads(threads);
  double best = 0;
  for (int repeat = 0; repeat < 5; repeat++) {
    int64_t start = rl_monotonic_ns();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, m[0], SIDE, m[1], SIDE, 0, m[2], SIDE);
    best = fmax(best, 2.0 * SIDE * SIDE * SIDE / (double)(rl_monotonic_ns() - start));
  }
  openblas_set_num_threads(1);
  return best;
}

static int fail_with(const rl_error *err) {
  fprintf(stderr, "cpu_training: %s\n", err->message);
  return 1;
}

int main(int count, char **arguments) {
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  int option, epochs = 1;
  while ((option = getopt(count, arguments, "e:p:b:n:r:s:d:")) != -1) switch (option) {
      case 'e': snprintf(params.engine, sizeof params.engine, "%s", optarg); break;
      case 'p': params.precision = strcmp(optarg, "fp16") == 0 ? RL_FP16 : RL_FP32; break;
      case 'b': params.batch_size = atoll(optarg); break;
      case 'n': params.max_images = atoll(optarg); break;
      case 'r': epochs = atoi(optarg); break;
      case 's': params.seed = atoll(optarg); break;
      case 'd': snprintf(params.dataset, sizeof params.dataset, "%s", optarg); break;
      default: return 2;
    }
  rl_error err = {0};
  rl_device *device = rl_device_open(0, &err);
  if (device == NULL) return fail_with(&err);
  const rl_engine *engine = rl_engine_find("mnist_cnn", params.engine, &params, &err);
  rl_instance *instance = NULL;
  if (engine == NULL || engine->open(device, &params, &instance, &err) != 0) return fail_with(&err);
  char *facts = rl_device_facts(0, &err);
  printf("commit %s\ndevice %s\nengine %s, %s, batch %lld, seed %lld, %llu images of %s\n", RL_COMMIT, facts != NULL ? facts : "?",
         engine->name, rl_precision_names[params.precision], (long long)params.batch_size, (long long)params.seed,
         (unsigned long long)instance->samples, instance->dataset);
  free(facts);
  const rl_observer observer = {.span = add_span};
  for (int epoch = 0; epoch < epochs; epoch++) {
    rl_elapsed training, evaluation;
    rl_report report;
    double before = sgemm_gflops(device->threads);
    if (device->ops->run_eager(device, &instance->iteration, &observer, &training, &err) != 0 ||
        device->ops->run_eager(device, &instance->evaluation, NULL, &evaluation, &err) != 0 ||
        instance->ops->report(instance, &report, &err) != 0)
      return fail_with(&err);
    double sgemm = fmax(before, sgemm_gflops(device->threads));
    double rate = (double)instance->samples * rl_model_operations_per_image() / training.host_ms * 1e-6;
    printf("epoch %d: %.0f ms, %.1f GFLOP/s = %.0f %% of sgemm's %.1f; loss %.4f, test loss %.4f, accuracy %.4f, evaluation %.0f ms", epoch,
           training.host_ms, rate, 100 * rate / sgemm, sgemm, report.train_loss, report.test_loss, report.test_accuracy_ratio,
           evaluation.host_ms);
    if (params.precision == RL_FP16) printf(", scale %g, skipped %g", report.loss_scale, report.skipped_steps);
    puts("");
    fflush(stdout);
  }
  for (int i = 0; i < MOST && totals[i].launch != NULL; i++)
    printf("  %-16s %9.1f ms an epoch\n", totals[i].launch->name, (double)totals[i].ns * 1e-6 / epochs);
  instance->ops->close(instance);
  device->ops->close(device);
  return 0;
}
