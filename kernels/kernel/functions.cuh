/* exp, exp2, the reciprocal and GELU in few instructions, with errors of a few units in the last place of float or double. The
 * polynomials interpolate these functions at Chebyshev nodes. */
#ifndef RL_KERNELS_KERNEL_FUNCTIONS_CUH
#define RL_KERNELS_KERNEL_FUNCTIONS_CUH

#include <stdint.h>

/* Coefficients of 2^x on [-1/2, 1/2], highest power first. They are in constant memory, because an instruction can read a double
 * from there as an operand; loading an immediate double would take two instructions. */
static __constant__ double exp2_coefficients[] = {7.0725859492692234e-09,
                                                  1.0208690299958306e-07,
                                                  1.3215442587921689e-06,
                                                  1.5252657260200837e-05,
                                                  0.0001540353044173605,
                                                  0.0013333558230164974,
                                                  0.0096181291076068882,
                                                  0.055504108664447722,
                                                  0.24022650695910097,
                                                  0.69314718055994995,
                                                  1.0};

/* Coefficients of P in gelu(double), highest power first. */
static __constant__ double gelu_coefficients[] = {
    1.0612401137016804e-09,  3.4696463160525714e-11,  -1.3004872083569148e-08, 3.3638024732198547e-09, 1.1125826582217401e-07,
    -5.0869205591208767e-08, -9.5589084403292953e-07, 2.5441819443620618e-07,  9.1081818092710885e-06, 5.7375294196256556e-06,
    -8.861800444344878e-05,  -0.00024105828260253056, 0.0004419499375052655,   0.0050098062263838295,  0.019224257752675316,
    0.049163783354718028,    0.095316572896679622,    0.1470430824138641,      0.18411602762271412};

/* Returns c[0] x^(COUNT - 1) + … + c[COUNT - 1]. */
template <class M, int COUNT> __device__ static inline M polynomial(const M (&c)[COUNT], M x) {
  M value = c[0];
#pragma unroll
  for (int i = 1; i < COUNT; i++) value = value * x + c[i];
  return value;
}

__device__ static inline float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* Improves the 20 bits of rcp.approx by one third-order iteration. x must not be zero, subnormal, or so large that 1 / x is
 * subnormal. */
__device__ static inline double fast_reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double error = fma(-x, y, 1.0);
  return fma(y, fma(error, error, error), y);
}

__device__ static inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* Returns 2^x for |x| < 1020. Splits x into an integer and a fraction in [-1/2, 1/2]. 2^fraction is a polynomial with a relative
 * error of 3e-16; the integer is added to the exponent of the result. */
__device__ static inline double exp2_in_range(double x) {
  const double shift = 6755399441055744.0; /* 1.5 · 2^52: doubles near it are integers, so the sum x + shift rounds x */
  const double shifted = x + shift, y = polynomial(exp2_coefficients, x - (shifted - shift));
  return __hiloint2double(__double2hiint(y) + (__double2loint(shifted) << 20), __double2loint(y));
}

__device__ static inline double fast_exp2(double x) {
  if ((__double2hiint(x) & 0x7fffffff) >= 0x408fe000) return exp2(x); /* |x| ≥ 1020, infinity or NaN */
  return exp2_in_range(x);
}

/* scaled_exp<M>(power)(x) returns exp(x) / 2^power. The result must not be much larger than 1, so x must be at most about
 * power / log2 e. |power| may be up to 2^30, and |x| up to 7e8. A result with one power is converted to another by a product with
 * a power of two, which is exact. Results below 2^-126 (float) or 2^-1020 (double) are zero. The result
 * for NaN is unspecified. */
static constexpr int32_t MIN_POWER = -(1 << 30);

__device__ static inline int32_t clamp_power(int32_t power) { return min(max(power, MIN_POWER), -MIN_POWER); }
/* Returns the exponent of the power of two that is nearest to exp(x). */
__device__ static inline int32_t nearest_power(float x) { return clamp_power(__float2int_rn(x * 1.44269504088896340736f)); }
__device__ static inline int32_t nearest_power(double x) { return clamp_power(__double2int_rn(x * 1.44269504088896340736)); }

template <class M> struct scaled_exp;

template <> struct scaled_exp<float> {
  float power;
  __device__ scaled_exp(int32_t power_of_unit) : power((float)power_of_unit) {}
  __device__ float operator()(float x) const { return fast_exp2(fmaf(x, 1.44269504088896340736f, -power)); }
};

/* Computes as exp2_in_range does. If the result underflows, a select instruction yields zero. fast_exp2 uses a branch for that,
 * but without branches the compiler interleaves several calls. */
template <> struct scaled_exp<double> {
  double shift; /* the shift of exp2_in_range, minus the power */
  __device__ scaled_exp(int32_t power) : shift(6755399441055744.0 - power) {}
  __device__ double operator()(double x) const {
    const double shifted = fma(x, 1.44269504088896340736, shift),
                 y = polynomial(exp2_coefficients, fma(x, 1.44269504088896340736, -(shifted - shift)));
    const bool underflows = __double_as_longlong(shifted) < 0x4338000000000000 - 1020; /* includes -infinity */
    return __hiloint2double(underflows ? 0 : __double2hiint(y) + (__double2loint(shifted) << 20),
                            underflows ? 0 : __double2loint(y));
  }
};

/* Returns 2^power for power ≤ 0; zero below the normal range. */
template <class M> __device__ static inline M power_of_two(int32_t power);
template <> __device__ inline float power_of_two<float>(int32_t power) { return fast_exp2((float)power); }
template <> __device__ inline double power_of_two<double>(int32_t power) {
  return __hiloint2double(power < -1022 ? 0 : (1023 + power) << 20, 0);
}

/* Returns GELU(v) = v Φ(v) = max(v, 0) - t Φ(-t) for finite v, where t = |v| and
 *   Φ(-t) = s · P(s) · exp(-t² / 2),  s = 1 / (1 + c t)
 * P is a polynomial that approximates all t for which Φ(-t) does not underflow, so tiny results are accurate too. A formula
 * with 1 + erf would lose their digits by cancellation.
 *   float    t < 14.5, relative error 3e-7, degree 7 in s, c = 0.24
 *   double   t < 38.6, relative error 3e-15, degree 18 in s mapped to [-1, 1], c = 0.22 */
__device__ static inline float gelu(float v) {
  const float coefficients[] = {-0.05289973691f, 0.1518377476f,  -0.06300970184f, 0.1148895553f,
                                0.06582068086f,  0.09192144651f, 0.09569975043f,  0.09574015668f};
  const float t = fabsf(v), s = fast_reciprocal(1 + 0.24f * t);
  return fmaxf(v, 0) - t * s * (polynomial(coefficients, s) * fast_exp2(-0.72134752044448170368f * (t * t)));
}

/* Tests the sign of v in its upper word, because a comparison of doubles is FP64 arithmetic, which is the bottleneck. */
__device__ static inline double gelu(double v) {
  const double t = fabs(v), s = fast_reciprocal(1 + 0.22 * t), positive_part = __double2hiint(v) < 0 ? 0 : v;
  const double scaled = polynomial(gelu_coefficients, 2.23551577955723033 * s - 1.23551577955723033);
  return positive_part - t * s * (scaled * fast_exp2(-0.72134752044448170368 * (t * t)));
}

#endif
