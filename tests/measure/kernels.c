/* Measures the bandwidth of every kernel operator, and of the best copy in the same run, for docs/measurements/h200-kernels.md:
 * all types and variants at one large size; with -s also the last variant in FP16 at small sizes, with a cold and a warm cache.
 * Prints one line of JSON for each measurement. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/commit.h"
#include "kernel/instance.h"

enum { MAX_MEBIBYTES = 512, MAX_SAMPLES = 1000 };

static int print_usage(void) {
  fprintf(stderr,
          "usage: measure_kernels [-m MiB of the larger buffer, 1 to %d] [-n samples, 1 to %d] [-f operator]\n"
          "                       [-c (check results)] [-b (best variants only)] [-s (small sizes too)]\n",
          MAX_MEBIBYTES, MAX_SAMPLES);
  return 2;
}

static struct {
  int mebibytes, samples;
  const char *op;
  bool checks_results, best_variant_only, small_sizes;
} options = {.mebibytes = 256, .samples = 20};

static const struct {
  const rl_kernel_operator *op;
  int64_t columns; /* columns of a row; 0: the operator has no rows, or one row of all elements */
} cases[] = {{&rl_kernel_copy, 0},         {&rl_kernel_relu, 0},          {&rl_kernel_residual_add, 0},
             {&rl_kernel_silu_mul, 0},     {&rl_kernel_bias_gelu, 4096},  {&rl_kernel_rope, 0},
             {&rl_kernel_softmax, 512},    {&rl_kernel_softmax, 4096},    {&rl_kernel_softmax, 65536},
             {&rl_kernel_rmsnorm, 4096},   {&rl_kernel_rmsnorm, 65536},   {&rl_kernel_layernorm, 768},
             {&rl_kernel_layernorm, 4096}, {&rl_kernel_layernorm, 65536}, {&rl_kernel_transpose, 8192},
             {&rl_kernel_reduction, 0},    {&rl_kernel_reduction, 4096}};

static void write_shape(const rl_kernel_operator *op, int64_t columns, int64_t elements, char *text, size_t size) {
  const char *first = op->shape_fields[0].name;
  if (columns == 0 || columns > elements) columns = elements;
  if (strcmp(first, "n") == 0) snprintf(text, size, "{\"n\":%lld}", (long long)elements);
  else if (strcmp(first, "tokens") == 0)
    snprintf(text, size, "{\"tokens\":%lld,\"heads\":%d,\"head_size\":128}", (long long)(elements < 4096 ? 1 : elements / 4096),
             elements < 4096 ? 4 : 32);
  else snprintf(text, size, "{\"rows\":%lld,\"columns\":%lld}", (long long)(elements / columns), (long long)columns);
}

static int compare_doubles(const void *a, const void *b) {
  double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

typedef struct outcome {
  double cold_us, warm_us, bytes_per_s; /* medians in microseconds; compulsory bytes divided by cold_us */
  double open_ms, check_ms, relative_error;
  bool is_wrong;
} outcome;

static void exit_with_error(const rl_kernel_params *params, const rl_error *err) {
  fprintf(stderr, "%s %s %s: %s\n", params->op->workload.name, params->variant, params->shape, err->message);
  exit(1);
}

static double median_us(rl_device *device, rl_kernel_instance *kernel, rl_cache_state cache) {
  static double us[MAX_SAMPLES];
  rl_error err = {0};
  if (device->ops->sample(device, &kernel->sequence, cache, (uint32_t)options.samples, NULL, us, &err) < 0)
    exit_with_error(&kernel->params, &err);
  qsort(us, (size_t)options.samples, sizeof *us, compare_doubles);
  return us[options.samples / 2];
}

static outcome measure(rl_device *device, const rl_kernel_params *params, bool samples_warm, bool checks_result) {
  rl_instance *instance = NULL;
  rl_error err = {0};
  rl_check result = {NAN, NAN, NAN};
  int64_t begin = rl_monotonic_ns();
  const rl_engine *engine = rl_engine_find(params->op->workload.name, "auto", params, &err);
  if (!engine || engine->open(device, params, &instance, &err) < 0) exit_with_error(params, &err);
  rl_kernel_instance *kernel = (rl_kernel_instance *)instance;
  outcome out = {.open_ms = (double)(rl_monotonic_ns() - begin) * 1e-6, .warm_us = NAN};
  out.cold_us = median_us(device, kernel, RL_CACHE_COLD);
  if (samples_warm) out.warm_us = median_us(device, kernel, RL_CACHE_WARM);
  begin = rl_monotonic_ns();
  if (checks_result && instance->ops->check(instance, &result, &err) < 0) exit_with_error(params, &err);
  out.check_ms = (double)(rl_monotonic_ns() - begin) * 1e-6;
  out.relative_error = result.relative_error;
  out.is_wrong = result.relative_error > result.tolerance;
  out.bytes_per_s = params->op->workload.cost(params, 0).bytes / out.cold_us * 1e6;
  instance->ops->close(instance);
  return out;
}

static rl_kernel_params params_of(size_t i, int dtype, const char *variant, int64_t bytes) {
  rl_kernel_params params;
  cases[i].op->workload.defaults(&params);
  params.dtype = dtype;
  snprintf(params.variant, sizeof params.variant, "%s", variant);
  write_shape(cases[i].op, cases[i].columns, bytes / (int64_t)rl_dtype_size(dtype), params.shape, sizeof params.shape);
  return params;
}

/* Returns the highest bandwidth over all types of the copy's variant "vector", in bytes per second. */
static double best_copy(rl_device *device) {
  double best = 0;
  for (int dtype = 0; dtype < RL_DTYPE_COUNT; dtype++) {
    rl_kernel_params params = params_of(0, dtype, "vector", (int64_t)options.mebibytes << 20);
    if (rl_kernel_copy.dtypes & 1u << dtype) best = fmax(best, measure(device, &params, false, false).bytes_per_s);
  }
  return best;
}

static bool is_selected(size_t i, int dtype) {
  return (cases[i].op->dtypes & 1u << dtype) && (!options.op || strcmp(options.op, cases[i].op->workload.name) == 0);
}

static void print(const rl_kernel_params *params, const char *size, int64_t bytes, const outcome *out) {
  printf("{\"size\":\"%s\",\"kernel\":\"%s\",\"dtype\":\"%s\",\"variant\":\"%s\",\"shape\":%s,\"buffer_bytes\":%lld,", size,
         params->op->workload.name, rl_dtype_names[params->dtype], params->variant, params->shape, (long long)bytes);
  printf("\"cold_us\":%.3f,", out->cold_us);
  if (isfinite(out->warm_us)) printf("\"warm_us\":%.3f,", out->warm_us);
  if (isfinite(out->relative_error))
    printf("\"relative_error\":%.3g,\"wrong\":%s,\"check_ms\":%.1f,", out->relative_error, out->is_wrong ? "true" : "false",
           out->check_ms);
  printf("\"bytes_per_s\":%.0f,\"open_ms\":%.1f}\n", out->bytes_per_s, out->open_ms);
  fflush(stdout);
}

static void print_copy(rl_device *device) {
  printf("{\"best_copy_bytes_per_s\":%.0f,\"mebibytes\":%d,\"samples\":%d,\"commit\":\"%s\"}\n", best_copy(device),
         options.mebibytes, options.samples, RL_COMMIT);
}

static void measure_large(rl_device *device) {
  const int64_t bytes = (int64_t)options.mebibytes << 20;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int dtype = 0; dtype < RL_DTYPE_COUNT; dtype++)
      for (const char *const *variant = cases[i].op->variants; *variant && is_selected(i, dtype); variant++) {
        if (options.best_variant_only && variant[1]) continue; /* the last variant is the fastest */
        rl_kernel_params params = params_of(i, dtype, *variant, bytes);
        outcome out = measure(device, &params, false, options.checks_results);
        print(&params, "large", bytes, &out);
      }
}

static void measure_small(rl_device *device) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int64_t bytes = 4 << 10; bytes <= 4 << 20 && is_selected(i, RL_DTYPE_FP16); bytes *= 32) {
      if (cases[i].columns * 2 > bytes) continue;
      const char *const *last = cases[i].op->variants;
      while (last[1]) last++;
      rl_kernel_params params = params_of(i, RL_DTYPE_FP16, *last, bytes);
      outcome out = measure(device, &params, true, false);
      print(&params, "small", bytes, &out);
    }
}

int main(int count, char **arguments) {
  for (int option; (option = getopt(count, arguments, "m:n:f:cbs")) != -1;) switch (option) {
      case 'm': options.mebibytes = atoi(optarg); break;
      case 'n': options.samples = atoi(optarg); break;
      case 'f': options.op = optarg; break;
      case 'c': options.checks_results = true; break;
      case 'b': options.best_variant_only = true; break;
      case 's': options.small_sizes = true; break;
      default: return print_usage();
    }
  if (options.mebibytes < 1 || options.mebibytes > MAX_MEBIBYTES) return print_usage();
  if (options.samples < 1 || options.samples > MAX_SAMPLES) return print_usage();
  rl_error err = {0};
  rl_device *device = rl_device_open(0, &err);
  if (!device) {
    fprintf(stderr, "%s\n", err.message);
    return 77;
  }
  print_copy(device);
  measure_large(device);
  if (options.small_sizes) measure_small(device);
  print_copy(device);
  device->ops->close(device);
  return 0;
}
