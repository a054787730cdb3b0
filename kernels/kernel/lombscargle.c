/* The Lomb-Scargle periodogram of unevenly sampled data (Lomb 1976, Scargle 1982; the formula of Press and Rybicki 1989, which
 * scipy.signal.lombscargle 1.10 computes). For each frequency w, with sums over the samples (t, y):
 *
 *   xc = Σ y cos wt, xs = Σ y sin wt, cc = Σ cos² wt, ss = Σ sin² wt, cs = Σ cos wt sin wt,
 *   tan 2wτ = 2 cs / (cc - ss), c = cos wτ, s = sin wτ
 *   power = ½ ((c xc + s xs)² / (c² cc + 2 c s cs + s² ss) + (c xs - s xc)² / (c² ss - 2 c s cs + s² cc))
 * An output segment (kernel.h) is a frequency. Times are uniform in [0, 10π); frequencies are equally spaced from 0.01 to 10.
 *
 * Variants (the first five from the talk "GPU accelerating SciPy signal with Numba and CuPy"):
 *   template          constants are double literals, so that float kernels compute partly in double
 *   typed             constants have the kernel's type
 *   fast_math         typed with approximate functions (-use_fast_math)
 *   launch_bounds     fast_math with __launch_bounds__ of the block size
 *   capped_registers  fast_math with a maximum number of registers (-maxrregcount)
 *   uniform           relies on equally spaced frequencies (lombscargle_kernels.cu)
 * The CPU has the variants template and uniform. Builds: `fatbin` is compiled together with the program. `nvrtc` is compiled
 * by NVRTC when the instance is opened. `nvrtc_cached` is read from the cache of compiled code; if it is not there, it is
 * compiled like `nvrtc`. */
#include "kernel/lombscargle.h"

#include <math.h>

enum { SAMPLES = RL_LOMBSCARGLE_SAMPLES, FREQUENCIES = RL_LOMBSCARGLE_FREQUENCIES };
enum { TIME = RL_LOMBSCARGLE_TIME, VALUE = RL_LOMBSCARGLE_VALUE, FREQUENCY = RL_LOMBSCARGLE_FREQUENCY };

enum { MIN_SAMPLES = 8 };

static const char *const variants[] = {"template", "typed", "fast_math", "launch_bounds", "capped_registers", "uniform", NULL};
static const char *const builds[] = {"fatbin", "nvrtc", "nvrtc_cached", NULL};
static const rl_field shape_fields[] = {RL_KERNEL_SIZE(SAMPLES, "samples", 1 << 20, "samples"),
                                        RL_KERNEL_SIZE(FREQUENCIES, "frequencies", 1 << 26, "frequencies"),
                                        {0}};

static int64_t input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return shape->size[input == FREQUENCY ? FREQUENCIES : SAMPLES];
}
static int64_t output_elements(const rl_kernel_shape *shape) { return shape->size[FREQUENCIES]; }

static void input_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                         int64_t *elements) {
  *start = input == FREQUENCY ? first : 0;
  *elements = input == FREQUENCY ? count : shape->size[SAMPLES];
}

/* Scales random times to [0, RL_LOMBSCARGLE_TIME_SPAN) and replaces random frequencies by equally spaced ones. The samples'
 * values stay uniform in [-2, 2). */
static void transform_input(const rl_kernel_shape *shape, uint32_t input, int64_t start, int64_t count, double *values) {
  for (int64_t i = 0; i < count; i++)
    if (input == TIME) values[i] = (values[i] + 2) / 4 * RL_LOMBSCARGLE_TIME_SPAN;
    else if (input == FREQUENCY)
      values[i] = RL_LOMBSCARGLE_FIRST_FREQUENCY + (double)(start + i) * rl_lombscargle_frequency_step(shape->size[FREQUENCIES]);
}

/* Returns the power, computed by its definition with times shifted by τ. The engines compute the formula at the top of this file
 * instead, so that the check compares two independent methods. */
static double power_by_definition(double w, int64_t samples, const double *time, const double *value) {
  double sines = 0, cosines = 0;
  for (int64_t j = 0; j < samples; j++) {
    sines += sin(2 * w * time[j]);
    cosines += cos(2 * w * time[j]);
  }
  const double phase = atan2(sines, cosines) / 2; /* w τ */
  double xc = 0, xs = 0, cc = 0, ss = 0;
  for (int64_t j = 0; j < samples; j++) {
    const double c = cos(w * time[j] - phase), s = sin(w * time[j] - phase);
    xc += value[j] * c;
    xs += value[j] * s;
    cc += c * c;
    ss += s * s;
  }
  return (xc * xc / cc + xs * xs / ss) / 2;
}

static void reference(const rl_kernel_shape *shape, const double *const *in, int64_t first, int64_t count, double *out) {
  (void)first;
  for (int64_t i = 0; i < count; i++) out[i] = power_by_definition(in[FREQUENCY][i], shape->size[SAMPLES], in[TIME], in[VALUE]);
}

/* Sizes of the groups and chunks of frequencies that loops/lombscargle.h describes. */
enum { GROUP_FREQUENCIES = 32, GROUPS_PER_CHUNK = 16, CHUNK_FREQUENCIES = GROUP_FREQUENCIES * GROUPS_PER_CHUNK };
#define RL_LOOPS_HEADER "kernel/loops/lombscargle.h"
#include "kernel/float_and_double.h"

/* Returns a lower bound: only the operations that compute each power from its five sums. The operations for the sums have no
 * simple lower bound: on a GPU, the variant `uniform` needs fewer operations than samples × frequencies. */
static double operations(const rl_kernel_shape *shape) { return 30.0 * (double)shape->size[FREQUENCIES]; }

static double reference_operations(const rl_kernel_shape *shape) {
  return 100.0 * (double)shape->size[SAMPLES] * (double)shape->size[FREQUENCIES];
}

/* The angle w t reaches 100π, where rounding it to float has an error of up to 2^-16. The sums inherit this error, and the power
 * is a quotient of sums. */
static double tolerance_ulps(const rl_kernel_shape *shape) { return (void)shape, 4096; }

static int shape_check(const rl_kernel_shape *shape, rl_error *err) {
  if (shape->size[SAMPLES] >= MIN_SAMPLES) return 0;
  return rl_fail_at(err, "/shape/samples", "must be at least %d: the power of fewer samples is mostly rounding error",
                    MIN_SAMPLES);
}

static void lombscargle_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_lombscargle); }

const rl_kernel_operator rl_kernel_lombscargle = {
    .workload = RL_KERNEL_WORKLOAD(lombscargle, "Lomb-Scargle periodogram of samples at uneven times"),
    .shape_fields = shape_fields,
    .shape_check = shape_check,
    .dtypes = 1u << RL_DTYPE_FP64 | 1u << RL_DTYPE_FP32,
    .variants = variants,
    .gpu_only_variants = 0x1e, /* typed to capped_registers: options of the GPU compiler */
    .builds = builds,
    .input_count = 3,
    .input_elements = input_elements,
    .transform_input = transform_input,
    .output_elements = output_elements,
    .output_segment_count = output_elements,
    .input_window = input_window,
    .reference = reference,
    .compute_double = lombscargle_double,
    .compute_float = lombscargle_float,
    .operations = operations,
    .reference_operations = reference_operations,
    .tolerance_ulps = tolerance_ulps};
