/* bench_lombscargle measures the table of the talk "GPU accelerating SciPy signal with Numba and CuPy" on this GPU: each
 * version of the kernel in the talk and the variant "uniform", in each type and each build (kernel/lombscargle.c), with SciPy's
 * samples and 2^20 frequencies. It prints a line of JSON for each of them, with these values:
 *
 *   first_ms   time to compile or load the code and run one launch
 *   median_ms  median time of a launch among consecutive launches
 *   speed_up   time of the fastest loops on one thread of this host, divided by median_ms
 *   error      relative error over SciPy's 530 points
 *
 * The program exits with 77 when there is no GPU, and with 1 on failure or when a result is wrong. */
#include <stdlib.h>

#include "analyze/statistics.h"
#include "base/clock.h"
#include "base/commit.h"
#include "kernel/lombscargle.h"
#include "unit/kernel_cases.h"
#include "unit/lombscargle_data.h"

enum { SAMPLE_COUNT = 50, CPU_FREQUENCY_DIVISOR = 16 /* the CPU computes every 16th part of the frequencies */ };

static scipy_data data;
static double cpu_ms[2]; /* by type: FP64, FP32 */

static const rl_kernel_shape full_shape = {{SCIPY_SAMPLES, SCIPY_FREQUENCIES, 1, 1, 1, 1, 1, 1}};

static void convert(int dtype, void *memory, const double *from, int64_t count) {
  rl_dtype_from_double(dtype, from, count, memory);
}

static void time_cpu(int dtype) {
  const int64_t count = SCIPY_FREQUENCIES / CPU_FREQUENCY_DIVISOR;
  const size_t size = rl_dtype_size(dtype);
  void *time = malloc(SCIPY_SAMPLES * size), *value = malloc(SCIPY_SAMPLES * size), *frequency = malloc(count * size),
       *power = malloc(count * size);
  rl_kernel_params params = kernel_params(&rl_kernel_lombscargle, dtype, "typed", "{\"samples\":114,\"frequencies\":1048576}");
  convert(dtype, time, data.time, SCIPY_SAMPLES);
  convert(dtype, value, data.value, SCIPY_SAMPLES);
  rl_kernel_fill_input(&params, &full_shape, RL_LOMBSCARGLE_FREQUENCY, SCIPY_FREQUENCIES / 2, count, frequency);
  const int64_t begin = rl_monotonic_ns();
  const void *const in[] = {time, value, frequency};
  if (dtype == RL_DTYPE_FP64) rl_kernel_lombscargle.compute_double(&full_shape, (const double *const *)in, 0, count, power);
  else rl_kernel_lombscargle.compute_float(&full_shape, (const float *const *)in, 0, count, power);
  cpu_ms[dtype == RL_DTYPE_FP32] = (double)(rl_monotonic_ns() - begin) * 1e-6 * CPU_FREQUENCY_DIVISOR;
  free(time), free(value), free(frequency), free(power);
}

static double open_measurement(const rl_instance *instance, const char *name) {
  for (size_t i = 0; i < instance->open_measurement_count; i++)
    if (strcmp(instance->open_measurements[i].name, name) == 0) return instance->open_measurements[i].value;
  return NAN;
}

static int measure_error(rl_kernel_instance *kernel, double *error, rl_error *err) {
  rl_device *device = kernel->base.device;
  const int dtype = kernel->params.dtype;
  const size_t size = rl_dtype_size(dtype);
  double converted[SCIPY_SAMPLES], power[SCIPY_POINTS];
  convert(dtype, converted, data.time, SCIPY_SAMPLES);
  if (device->ops->upload(device, kernel->in[RL_LOMBSCARGLE_TIME], converted, SCIPY_SAMPLES * size, err) < 0) return -1;
  convert(dtype, converted, data.value, SCIPY_SAMPLES);
  if (device->ops->upload(device, kernel->in[RL_LOMBSCARGLE_VALUE], converted, SCIPY_SAMPLES * size, err) < 0) return -1;
  rl_sequence one = kernel->sequence;
  one.repeat = 1;
  const rl_sequence_list once = {.name = "once", .sequences = &one, .sequence_count = 1};
  rl_elapsed elapsed;
  void *out = malloc(SCIPY_FREQUENCIES * size);
  bool failed = !out || device->ops->run_eager(device, &once, NULL, &elapsed, err) < 0 ||
                device->ops->download(device, out, kernel->out, SCIPY_FREQUENCIES * size, err) < 0;
  for (int i = 0; i < SCIPY_POINTS && !failed; i++) power[i] = rl_dtype_load(dtype, out, (size_t)data.index[i]);
  free(out);
  if (!failed) *error = scipy_error(&data, power);
  return failed ? -1 : 0;
}

typedef struct build_case {
  const char *name, *label;
} build_case;
static const build_case builds[] = {
    {"fatbin", "fatbin"}, {"nvrtc", "nvrtc"}, {"nvrtc_cached", "nvrtc_cached"}, {"nvrtc_cached", "nvrtc_cached, again"}};

static int print_row(rl_device *device, int dtype, const char *variant, const build_case *build, rl_error *err) {
  rl_kernel_params params = kernel_params(&rl_kernel_lombscargle, dtype, variant, "{\"samples\":114,\"frequencies\":1048576}");
  snprintf(params.build, sizeof params.build, "%s", build->name);
  rl_kernel_instance *kernel = open_kernel(device, &params);
  double us[SAMPLE_COUNT], error = NAN;
  int rc = measure_error(kernel, &error, err);
  if (rc == 0) rc = device->ops->sample(device, &kernel->sequence, RL_CACHE_WARM, SAMPLE_COUNT, NULL, us, err);
  if (rc == 0) {
    const double ms = rl_summarize_sample(us, SAMPLE_COUNT).median * 1e-3;
    printf("{\"version\":\"%s\",\"dtype\":\"%s\",\"build\":\"%s\",\"registers\":%.0f,\"first_ms\":%.4f,", variant,
           rl_dtype_names[dtype], build->label, open_measurement(&kernel->base, "registers_per_thread"),
           open_measurement(&kernel->base, "first_pass_ms"));
    const double compile_ms = open_measurement(&kernel->base, "compile_ms");
    if (isfinite(compile_ms)) printf("\"compile_ms\":%.4f,", compile_ms);
    printf("\"median_ms\":%.5f,\"speed_up\":%.0f,\"error\":%.3e,\"commit\":\"%s\"}\n", ms, cpu_ms[dtype == RL_DTYPE_FP32] / ms,
           error, RL_COMMIT);
    fflush(stdout);
    if (!(error < (dtype == RL_DTYPE_FP64 ? 1e-12 : 1e-5)))
      rc = rl_fail(err, RL_ERRNO, 0, "%s is wrong: error %g", variant, error);
  }
  close_kernel(kernel);
  return rc;
}

int main(void) {
  char cache[] = "/tmp/rooflined-lombscargle-XXXXXX"; /* a new folder, so that nvrtc_cached compiles the first time */
  rl_error err = {0};
  if (mkdtemp(cache)) setenv("ROOFLINED_CACHE_DIR", cache, 1);
  if (!scipy_read("tests/data", &data)) return fprintf(stderr, "tests/data not found: run it in the source folder\n"), 1;
  if (rl_device_count(&err) == 0) return fprintf(stderr, "skipped: %s\n", err.message), 77;
  rl_device *device = rl_device_open(0, &err);
  if (!device) return fprintf(stderr, "%s\n", err.message), 1;
  time_cpu(RL_DTYPE_FP64);
  time_cpu(RL_DTYPE_FP32);
  printf("{\"host_fp64_ms\":%.1f,\"host_fp32_ms\":%.1f}\n", cpu_ms[0], cpu_ms[1]);
  int rc = 0;
  for (int dtype = RL_DTYPE_FP64; dtype <= RL_DTYPE_FP32; dtype++)
    for (const char *const *variant = rl_kernel_lombscargle.variants; *variant; variant++)
      for (size_t i = 0; i < sizeof builds / sizeof *builds && rc == 0; i++)
        rc = print_row(device, dtype, *variant, &builds[i], &err);
  if (rc < 0) fprintf(stderr, "%s\n", err.message);
  device->ops->close(device);
  return rc < 0 ? 1 : 0;
}
