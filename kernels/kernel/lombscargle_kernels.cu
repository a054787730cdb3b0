/* The Lomb-Scargle periodogram. This file is compiled in several versions, by nvcc into fatbins and by NVRTC on request.
 * NVRTC gets this text alone, so it includes no header. Macros select the version:
 *   REAL               float or double
 *   LITERAL(x)         a constant: either x, a double, which promotes float arithmetic to double; or ((REAL)x)
 *   LAUNCH_BOUNDS      __launch_bounds__(BLOCK_THREADS), or nothing
 *   EXPANSION_ORDER    if defined, the kernel `uniform` is compiled too, and this is the order of its Taylor expansion
 * For a frequency w and samples (t, y) the power follows from these sums, as in Press and Rybicki (1989) and
 * scipy.signal.lombscargle (1.10):
 *   xc = Σ y cos wt, xs = Σ y sin wt, cc = Σ cos² wt, ss = Σ sin² wt, cs = Σ cos wt sin wt. */
enum { BLOCK_THREADS = 128, WARP_SIZE = 32 };

template <class T> struct math_functions;
template <> struct math_functions<float> {
  __device__ static void sincos_of(float x, float *s, float *c) { sincosf(x, s, c); }
  __device__ static float atan2_of(float y, float x) { return atan2f(y, x); }
  __device__ static float sqrt_of(float x) { return sqrtf(x); }
  __device__ static float divide(float a, float b) { return __fdividef(a, b); }
  /* Computes the sine and cosine of an angle whose rounding to float would lose too many digits: reduces the angle to [-π, π] in
   * double, then computes in float. */
  __device__ static void sincos_reduced(double x, float *s, float *c) {
    sincosf((float)(x - rint(x * 0.15915494309189535) * 6.283185307179586), s, c);
  }
};
template <> struct math_functions<double> {
  __device__ static void sincos_of(double x, double *s, double *c) { sincos(x, s, c); }
  __device__ static double atan2_of(double y, double x) { return atan2(y, x); }
  __device__ static double sqrt_of(double x) { return sqrt(x); }
  __device__ static double divide(double a, double b) { return a / b; }
  __device__ static void sincos_reduced(double x, double *s, double *c) { sincos(x, s, c); }
};
typedef math_functions<REAL> math;

/* The kernel for arbitrary frequencies. A thread computes each of its frequencies (grid-stride loop) from sums over all
 * samples. */
extern "C" __global__ void LAUNCH_BOUNDS periodogram(int samples, int frequencies, const REAL *__restrict__ time,
                                                     const REAL *__restrict__ value, const REAL *__restrict__ frequency,
                                                     REAL *__restrict__ power) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < frequencies; i += gridDim.x * blockDim.x) {
    const REAL w = frequency[i];
    REAL xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
    for (int j = 0; j < samples; j++) {
      REAL s, c;
      math::sincos_of(w * time[j], &s, &c);
      xc += value[j] * c;
      xs += value[j] * s;
      cc += c * c;
      ss += s * s;
      cs += c * s;
    }
    const REAL tau = math::atan2_of(LITERAL(2.0) * cs, cc - ss) / (LITERAL(2.0) * w);
    REAL sin_tau, cos_tau;
    math::sincos_of(w * tau, &sin_tau, &cos_tau);
    const REAL cos2_tau = cos_tau * cos_tau, sin2_tau = sin_tau * sin_tau, two_cos_sin = LITERAL(2.0) * cos_tau * sin_tau;
    const REAL a = cos_tau * xc + sin_tau * xs, b = cos_tau * xs - sin_tau * xc;
    power[i] = LITERAL(0.5) * (a * a / (cos2_tau * cc + two_cos_sin * cs + sin2_tau * ss) +
                               b * b / (cos2_tau * ss - two_cos_sin * cs + sin2_tau * cc));
  }
}

#ifdef EXPANSION_ORDER
/* The kernel `uniform`, for evenly spaced frequencies first + i · step. The five sums are smooth functions of the frequency:
 * they hardly change over a frequency range of 1 / (time span), which contains many of the frequencies. A block computes
 * frequencies_per_block frequencies, an even number, around a frequency w0, and expands the sums as Taylor series in w - w0.
 * Each thread computes the terms of the series for its samples, and the block adds them up. After that, the sums of a frequency
 * are four polynomials; no sine or cosine is computed for it.
 *
 * Times are relative to `origin`, the middle of the time span, which keeps the powers of time small; the power does not depend on
 * the origin. `half_width` is w - w0 at the edge of the block's frequencies. The variable of the series is x = (w - w0) /
 * half_width, in [-1, 1]. */

/* Returns the P-th derivative of cos (cos, -sin, -cos, sin, …) at the angle with sine s and cosine c. The P-th derivative of sin
 * is the (P + 3)-th of cos. */
template <int P> __device__ static inline REAL cos_derivative(REAL s, REAL c) {
  return P % 4 == 0 ? c : P % 4 == 1 ? -s : P % 4 == 2 ? -c : s;
}

/* Index of the first term of each sum. The terms of ss are the negated terms of cc, except for order 0 (SS_CONSTANT). */
enum {
  XC = 0,
  XS = EXPANSION_ORDER + 1,
  CC = 2 * (EXPANSION_ORDER + 1),
  CS = 3 * (EXPANSION_ORDER + 1),
  SS_CONSTANT = 4 * (EXPANSION_ORDER + 1),
  TERMS = SS_CONSTANT + 1,
  PADDED_TERMS = (TERMS + WARP_SIZE - 1) / WARP_SIZE * WARP_SIZE
};

/* The angle of a sample: s and c are sine and cosine of w0 t, s2 and c2 those of 2 w0 t, and t is the time in units of 1 /
 * half_width. */
struct sample_angle {
  REAL s, c, s2, c2, t;
};

/* Adds the terms of order P and higher of one sample. y_factor is y t^P / P!. The terms of cc and cs use the double angle,
 * because cos² wt = (1 + cos 2wt) / 2 and cos wt sin wt = sin 2wt / 2; so double_angle_factor is (2 t)^P / P! / 2. The caller
 * adds the terms of order 0 of cc, ss and cs. */
template <int P> struct terms_from {
  __device__ static inline void add(REAL *terms, const sample_angle &a, REAL y_factor, REAL double_angle_factor) {
    terms[XC + P] += y_factor * cos_derivative<P>(a.s, a.c);
    terms[XS + P] += y_factor * cos_derivative<P + 3>(a.s, a.c);
    if (P > 0) {
      terms[CC + P] += double_angle_factor * cos_derivative<P>(a.s2, a.c2);
      terms[CS + P] += double_angle_factor * cos_derivative<P + 3>(a.s2, a.c2);
    }
    terms_from<P + 1>::add(terms, a, y_factor * a.t / (P + 1), double_angle_factor * (2 * a.t) / (P + 1));
  }
};
template <> struct terms_from<EXPANSION_ORDER + 1> {
  __device__ static inline void add(REAL *, const sample_angle &, REAL, REAL) {}
};

/* Returns in lane i the sum of value i over all lanes; each lane has 32 values. Each exchange halves the number of values of a
 * lane, so 31 shuffles suffice for all 32 values; separate butterfly reductions of the 32 values would take 160. DISTANCE:
 * distance of the lanes that exchange values; on entry each lane has 2 × DISTANCE values. */
template <int DISTANCE> struct warp_transpose_sum {
  __device__ static inline REAL reduce(REAL *values, int lane) {
    const bool upper = lane & DISTANCE;
#pragma unroll
    for (int i = 0; i < DISTANCE; i++) {
      const REAL kept = upper ? values[i + DISTANCE] : values[i], sent = upper ? values[i] : values[i + DISTANCE];
      values[i] = kept + __shfl_xor_sync(0xffffffffu, sent, DISTANCE);
    }
    return warp_transpose_sum<DISTANCE / 2>::reduce(values, lane);
  }
};
template <> struct warp_transpose_sum<0> {
  __device__ static inline REAL reduce(REAL *values, int) { return values[0]; }
};

/* Returns the value of a series at x without its constant term, which the caller adds. cc and ss share all other terms, with
 * opposite signs. Their constant terms are summed separately, so that a cc or ss near zero keeps its precision. */
__device__ static inline REAL series_without_constant(const REAL *terms, REAL x) {
  REAL value = terms[EXPANSION_ORDER];
#pragma unroll
  for (int p = EXPANSION_ORDER - 1; p > 0; p--) value = value * x + terms[p];
  return value * x;
}

/* Returns the power from the five sums without trigonometric functions: tan(2 w tau) = 2 cs / (cc - ss) determines w tau up to a
 * right angle, and a right angle only swaps the two fractions. c2 and s2 are cosine and sine of 2 w tau, c and s those of w tau.
 */
__device__ static inline REAL power_of(REAL xc, REAL xs, REAL cc, REAL ss, REAL cs) {
  const REAL x = cc - ss, y = 2 * cs, r = math::sqrt_of(x * x + y * y);
  const REAL c2 = r > 0 ? math::divide(x, r) : (REAL)1, s2 = r > 0 ? math::divide(y, r) : (REAL)0;
  const REAL larger = math::sqrt_of((REAL)0.5 * (1 + (c2 < 0 ? -c2 : c2))), smaller = math::divide(s2, 2 * larger);
  const REAL c = c2 < 0 ? smaller : larger, s = c2 < 0 ? larger : smaller;
  const REAL a = c * xc + s * xs, b = c * xs - s * xc, two_cs = 2 * c * s;
  return (REAL)0.5 * (math::divide(a * a, c * c * cc + two_cs * cs + s * s * ss) +
                      math::divide(b * b, c * c * ss - two_cs * cs + s * s * cc));
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    uniform(int samples, int frequencies, int frequencies_per_block, double first, double step, double origin,
            const REAL *__restrict__ time, const REAL *__restrict__ value, REAL *__restrict__ power) {
  __shared__ REAL warp_terms[BLOCK_THREADS / WARP_SIZE][PADDED_TERMS];
  __shared__ REAL block_terms[PADDED_TERMS];
  const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x / WARP_SIZE, begin = blockIdx.x * frequencies_per_block;
  const double half_width = 0.5 * frequencies_per_block * step, w0 = first + begin * step + half_width;
  REAL terms[PADDED_TERMS];
#pragma unroll
  for (int i = 0; i < PADDED_TERMS; i++) terms[i] = 0;
  for (int j = threadIdx.x; j < samples; j += BLOCK_THREADS) {
    const double t = time[j] - origin;
    REAL s, c;
    math::sincos_reduced(w0 * t, &s, &c);
    terms[CC] += c * c;
    terms[SS_CONSTANT] += s * s;
    terms[CS] += c * s;
    const sample_angle angle = {s, c, 2 * c * s, (c - s) * (c + s), (REAL)(t * half_width)};
    terms_from<0>::add(terms, angle, value[j], (REAL)0.5);
  }
#pragma unroll
  for (int i = 0; i < PADDED_TERMS; i += WARP_SIZE)
    warp_terms[warp][i + lane] = warp_transpose_sum<WARP_SIZE / 2>::reduce(terms + i, lane);
  __syncthreads();
  for (int i = threadIdx.x; i < PADDED_TERMS; i += BLOCK_THREADS) {
    REAL sum = 0;
    for (int k = 0; k < BLOCK_THREADS / WARP_SIZE; k++) sum += warp_terms[k][i];
    block_terms[i] = sum;
  }
  __syncthreads();
  const REAL scale = (REAL)2 / frequencies_per_block;
  for (int i = threadIdx.x; i < frequencies_per_block && begin + i < frequencies; i += BLOCK_THREADS) {
    const REAL x = (i - frequencies_per_block / 2) * scale, cc_rest = series_without_constant(block_terms + CC, x);
    power[begin + i] =
        power_of(block_terms[XC] + series_without_constant(block_terms + XC, x),
                 block_terms[XS] + series_without_constant(block_terms + XS, x), block_terms[CC] + cc_rest,
                 block_terms[SS_CONSTANT] - cc_rest, block_terms[CS] + series_without_constant(block_terms + CS, x));
  }
}
#endif
