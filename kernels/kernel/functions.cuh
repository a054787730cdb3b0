/* Functions in as few instructions as their exactness allows: a handful of units in the last place of float or double.
 * Polynomials interpolate at Chebyshev's points. */
#ifndef RL_KERNELS_KERNEL_FUNCTIONS_CUH
#define RL_KERNELS_KERNEL_FUNCTIONS_CUH

#include <stdint.h>

/* Doubles as operands in constant memory; else each would take two instructions to come into a register. */
static __constant__ double exp2_terms[] = {7.0725859492692234e-09,
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

static __constant__ double tail_terms[] = {
    1.0612401137016804e-09,  3.4696463160525714e-11,  -1.3004872083569148e-08, 3.3638024732198547e-09, 1.1125826582217401e-07,
    -5.0869205591208767e-08, -9.5589084403292953e-07, 2.5441819443620618e-07,  9.1081818092710885e-06, 5.7375294196256556e-06,
    -8.861800444344878e-05,  -0.00024105828260253056, 0.0004419499375052655,   0.0050098062263838295,  0.019224257752675316,
    0.049163783354718028,    0.095316572896679622,    0.1470430824138641,      0.18411602762271412};

/* c[0] is of the highest power. */
template <class M, int COUNT> __device__ static inline M polynomial(const M (&c)[COUNT], M x) {
  M sum = c[0];
#pragma unroll
  for (int i = 1; i < COUNT; i++) sum = sum * x + c[i];
  return sum;
}

__device__ static inline float reciprocal_of(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* From the hardware's 20 bits by a step of third order; x is neither zero nor near the ends of the range. */
__device__ static inline double reciprocal_of(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double rest = fma(-x, y, 1.0);
  return fma(y, fma(rest, rest, rest), y);
}

__device__ static inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* |x| < 1020: its whole part goes into the exponent, the rest, in [-1/2, 1/2], through a polynomial with an error of 3e-16. */
__device__ static inline double bounded_exp2_of(double x) {
  const double shift = 6755399441055744.0; /* 1.5 · 2^52: what is added to it loses its fraction */
  const double shifted = x + shift, y = polynomial(exp2_terms, x - (shifted - shift));
  return __hiloint2double(__double2hiint(y) + (__double2loint(shifted) << 20), __double2loint(y));
}

__device__ static inline double exp2_of(double x) {
  if ((__double2hiint(x) & 0x7fffffff) >= 0x408fe000) return exp2(x); /* 1020 and more, infinite, no number */
  return bounded_exp2_of(x);
}

/* exp(x) in units of 2^power: of numbers up to about power / log2 e, which may be 7e8 on either side. Units differ by factors
 * that are exact. What is below 2^-126 units of float's, or 2^-1020 of double's, is zero, and so may be what is no number. */
static constexpr int32_t LEAST_POWER = -(1 << 30);

__device__ static inline int32_t bounded_power(int32_t power) { return min(max(power, LEAST_POWER), -LEAST_POWER); }
__device__ static inline int32_t power_next_to(float x) { return bounded_power(__float2int_rn(x * 1.44269504088896340736f)); }
__device__ static inline int32_t power_next_to(double x) { return bounded_power(__double2int_rn(x * 1.44269504088896340736)); }

template <class M> struct exponentials;

template <> struct exponentials<float> {
  float units;
  __device__ exponentials(int32_t power) : units((float)power) {}
  __device__ float operator()(float x) const { return exp2_of(fmaf(x, 1.44269504088896340736f, -units)); }
};

/* The steps of bounded_exp2_of, without a branch, so that several are computed at once. */
template <> struct exponentials<double> {
  double shift;
  __device__ exponentials(int32_t power) : shift(6755399441055744.0 - power) {}
  __device__ double operator()(double x) const {
    const double shifted = fma(x, 1.44269504088896340736, shift),
                 y = polynomial(exp2_terms, fma(x, 1.44269504088896340736, -(shifted - shift)));
    const bool none = __double_as_longlong(shifted) < 0x4338000000000000 - 1020; /* also of -infinity */
    return __hiloint2double(none ? 0 : __double2hiint(y) + (__double2loint(shifted) << 20), none ? 0 : __double2loint(y));
  }
};

/* 2^power, of what is not positive. */
template <class M> __device__ static inline M unit_of(int32_t power);
template <> __device__ inline float unit_of<float>(int32_t power) { return exp2_of((float)power); }
template <> __device__ inline double unit_of<double>(int32_t power) {
  return __hiloint2double(power < -1022 ? 0 : (1023 + power) << 20, 0);
}

/* v Φ(v) = max(v, 0) - t Φ(-t), t = |v|, of finite numbers, where
 *   Φ(-t) = s · P(s) · exp(-t² / 2),  s = 1 / (1 + c t)
 * with P a polynomial that makes that true wherever Φ(-t) is no zero of its type, and so also where it is tiny (1 + erf would
 * cancel there): t < 14.5, with a relative error of 3e-7, for float (degree 7 in s, c = 0.24); t < 38.6, with 3e-15, for double
 * (degree 18, c = 0.22, in what takes that range of s to [-1, 1]). */
__device__ static inline float gelu_of(float v) {
  const float c[] = {-0.05289973691f, 0.1518377476f,  -0.06300970184f, 0.1148895553f,
                     0.06582068086f,  0.09192144651f, 0.09569975043f,  0.09574015668f};
  const float t = fabsf(v), s = reciprocal_of(1 + 0.24f * t);
  return fmaxf(v, 0) - t * s * (polynomial(c, s) * exp2_of(-0.72134752044448170368f * (t * t)));
}

/* Comparing doubles would take their arithmetic's time, which is what this is short of: the sign is a bit of the upper half. */
__device__ static inline double gelu_of(double v) {
  const double t = fabs(v), s = reciprocal_of(1 + 0.22 * t), above = __double2hiint(v) < 0 ? 0 : v;
  const double scaled = polynomial(tail_terms, 2.23551577955723033 * s - 1.23551577955723033);
  return above - t * s * (scaled * exp2_of(-0.72134752044448170368 * (t * t)));
}

#endif
