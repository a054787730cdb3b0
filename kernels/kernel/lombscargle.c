/* The Lomb-Scargle periodogram of samples at uneven times (Lomb 1976, Scargle 1982, as Press and Rybicki 1989 write it and
 * scipy.signal.lombscargle 1.10 computes it): for each frequency w, with sums over the samples (t, y)
 *
 *   xc = Σ y cos wt, xs = Σ y sin wt, cc = Σ cos² wt, ss = Σ sin² wt, cs = Σ cos wt sin wt,
 *   tan 2wτ = 2 cs / (cc - ss), c, s = cos, sin wτ
 *   power = ½ ((c xc + s xs)² / (c² cc + 2 c s cs + s² ss) + (c xs - s xc)² / (c² ss - 2 c s cs + s² cc))
 *
 * A piece is a frequency. Times lie anywhere in ten turns' span [0, 10π), frequencies in even steps from 0.01 to 10.
 *
 * Variants: those of the talk "GPU accelerating SciPy signal with Numba and CuPy" and one beyond it. template has the constants
 * of a template's text, doubles whatever the type; typed has them in the type; fast_math adds approximate functions;
 * launch_bounds tells the compiler the size of a block as well, and capped_registers the most registers instead. uniform uses
 * that frequencies lie in even steps: see lombscargle_kernels.cu. The CPU has template and uniform. Builds: fatbin was compiled
 * with the program, nvrtc is compiled when it is opened, and nvrtc_cached only where it was not compiled before. */
#include "kernel/lombscargle.h"

#include <math.h>

enum { SAMPLES = RL_LOMBSCARGLE_SAMPLES, FREQUENCIES = RL_LOMBSCARGLE_FREQUENCIES };
enum { TIME = RL_LOMBSCARGLE_TIME, VALUE = RL_LOMBSCARGLE_VALUE, FREQUENCY = RL_LOMBSCARGLE_FREQUENCY };

enum { LEAST_SAMPLES = 8 };

static const char *const variants[] = {"template", "typed", "fast_math", "launch_bounds", "capped_registers", "uniform", NULL};
static const char *const builds[] = {"fatbin", "nvrtc", "nvrtc_cached", NULL};
static const rl_field sizes[] = {RL_KERNEL_SIZE(SAMPLES, "samples", 1 << 20, "samples"),
                                 RL_KERNEL_SIZE(FREQUENCIES, "frequencies", 1 << 26, "frequencies"),
                                 {0}};

static int64_t input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return shape->size[input == FREQUENCY ? FREQUENCIES : SAMPLES];
}
static int64_t output_elements(const rl_kernel_shape *shape) { return shape->size[FREQUENCIES]; }

static void window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                   int64_t *elements) {
  *start = input == FREQUENCY ? first : 0;
  *elements = input == FREQUENCY ? count : shape->size[SAMPLES];
}

/* Times over the span and the even steps of frequencies; values stay as they come. */
static void inputs(const rl_kernel_shape *shape, uint32_t input, int64_t start, int64_t count, double *values) {
  for (int64_t i = 0; i < count; i++)
    if (input == TIME) values[i] = (values[i] + 2) / 4 * RL_LOMBSCARGLE_SPAN;
    else if (input == FREQUENCY)
      values[i] = RL_LOMBSCARGLE_FIRST + (double)(start + i) * rl_lombscargle_step(shape->size[FREQUENCIES]);
}

/* By the definition: times are counted from tau, where the sums of sines times cosines vanish. The engines compute another
 * formula. */
static double definition(double w, int64_t samples, const double *time, const double *value) {
  double sines = 0, cosines = 0;
  for (int64_t j = 0; j < samples; j++) {
    sines += sin(2 * w * time[j]);
    cosines += cos(2 * w * time[j]);
  }
  const double turn = atan2(sines, cosines) / 2; /* w tau */
  double xc = 0, xs = 0, cc = 0, ss = 0;
  for (int64_t j = 0; j < samples; j++) {
    const double c = cos(w * time[j] - turn), s = sin(w * time[j] - turn);
    xc += value[j] * c;
    xs += value[j] * s;
    cc += c * c;
    ss += s * s;
  }
  return (xc * xc / cc + xs * xs / ss) / 2;
}

static void reference(const rl_kernel_shape *shape, const double *const *in, int64_t first, int64_t count, double *out) {
  (void)first;
  for (int64_t i = 0; i < count; i++) out[i] = definition(in[FREQUENCY][i], shape->size[SAMPLES], in[TIME], in[VALUE]);
}

enum { RUN = 32, RUNS = 16, SPAN = RUN * RUNS }; /* frequencies, as loops/lombscargle.h takes them */
#define LOOPS "kernel/loops/lombscargle.h"
#include "kernel/in_both_types.h"

/* At the least: each frequency's power from its five sums. How few operations a frequency's sums can take depends on how many
 * frequencies there are: uniform needs none for another sample. */
static double operations(const rl_kernel_shape *shape) { return 30.0 * (double)shape->size[FREQUENCIES]; }

static double reference_operations(const rl_kernel_shape *shape) {
  return 100.0 * (double)shape->size[SAMPLES] * (double)shape->size[FREQUENCIES];
}

/* An angle w t reaches 100π, of which float has 2^-16 left: so it is with the sums, and the power is a quotient of them. */
static double tolerance(const rl_kernel_shape *shape) { return (void)shape, 4096; }

static int shape_check(const rl_kernel_shape *shape, rl_error *err) {
  if (shape->size[SAMPLES] >= LEAST_SAMPLES) return 0;
  return rl_fail_at(err, "/shape/samples", "must be at least %d: the power of fewer is mostly rounding", LEAST_SAMPLES);
}

static void lombscargle_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_lombscargle); }

const rl_kernel_family rl_kernel_lombscargle = {
    .workload = RL_KERNEL_WORKLOAD(lombscargle, "Lomb-Scargle periodogram of samples at uneven times"),
    .shape = sizes,
    .shape_check = shape_check,
    .dtypes = 1u << RL_DTYPE_FP64 | 1u << RL_DTYPE_FP32,
    .variants = variants,
    .gpu_only = 0x1e /* what a GPU's compiler is told */,
    .builds = builds,
    .input_count = 3,
    .input_elements = input_elements,
    .inputs = inputs,
    .output_elements = output_elements,
    .pieces = output_elements,
    .window = window,
    .reference = reference,
    .compute_double = in_double,
    .compute_float = in_float,
    .operations = operations,
    .reference_operations = reference_operations,
    .tolerance = tolerance};
