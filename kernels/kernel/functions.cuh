/* Functions in as few instructions as their exactness allows: a handful of units in the last place of float or double. Polynomials
 * interpolate at Chebyshev's points. */
#ifndef RL_KERNELS_KERNEL_FUNCTIONS_CUH
#define RL_KERNELS_KERNEL_FUNCTIONS_CUH

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

/* From the hardware's 20 bits by two steps of Newton's; x is neither zero nor near the ends of the range. */
__device__ static inline double reciprocal_of(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  y = fma(y, fma(-x, y, 1.0), y);
  return fma(y, fma(-x, y, 1.0), y);
}

__device__ static inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* The whole part of x goes into the exponent, the rest, in [-1/2, 1/2], through a polynomial with an error of 3e-16. */
__device__ static inline double power_of_two(double x) {
  const double c[] = {
      7.0725859492692234e-09, 1.0208690299958306e-07, 1.3215442587921689e-06, 1.5252657260200837e-05, 0.0001540353044173605,
      0.0013333558230164974, 0.0096181291076068882, 0.055504108664447722, 0.24022650695910097, 0.69314718055994995, 1.0};
  const double shift = 6755399441055744.0; /* 1.5 · 2^52: what is added to it loses its fraction */
  if ((__double2hiint(x) & 0x7fffffff) >= 0x408fe000) return exp2(x); /* 1020 and more, infinite, no number */
  const double shifted = x + shift, y = polynomial(c, x - (shifted - shift));
  return __hiloint2double(__double2hiint(y) + (__double2loint(shifted) << 20), __double2loint(y));
}

__device__ static inline float exponential_of(float x) { return power_of_two(x * 1.44269504088896340736f); }
__device__ static inline double exponential_of(double x) { return power_of_two(x * 1.44269504088896340736); }

/* v Φ(v) = max(v, 0) - t Φ(-t), t = |v|, where
 *   Φ(-t) = s · 2^(P - t² log2(e) / 2),  s = 1 / (1 + c t)
 * with P a polynomial that makes that true over all of 0 < s ≤ 1, and so also where Φ is tiny (1 + erf would cancel there). Its relative
 * error is 6e-7 for float (degree 8 in s, c = 0.3) and 2e-15 for double (degree 22 in 2s - 1, c = 0.25). */
__device__ static inline float gelu_of(float v) {
  const float c[] = {
      -0.26210970363220398f, 1.0419632224464337f, -1.3944704277079762f, 0.62403055079343761f, -0.2428658715900453f,
      0.26598273816538143f, 0.58733614486504349f, 1.4428472099691971f, -3.0627145930832134f};
  const float t = fabsf(v), s = reciprocal_of(1 + 0.3f * t);
  return fmaxf(v, 0) - t * s * power_of_two(polynomial(c, s) - 0.72134752044448170368f * (t * t));
}

__device__ static inline double gelu_of(double v) {
  const double c[] = {
      -3.3144210979793963e-08, 2.014043188951813e-08, 3.5222928661957255e-07, -1.0692865332455696e-07,
      -2.0711431226120354e-06, -1.4956176033291958e-07, 9.2186464814402179e-06, 4.7541783904071576e-06,
      -3.4603944979692777e-05, -3.6655004265879642e-05, 0.0001110693396514864, 0.00020487836423692011,
      -0.00027920789046355566, -0.00096598406661368573, 0.000277260798395152, 0.003970090141380658, 0.0029800159594164269,
      -0.013300842043172036, -0.033227894708368816, 0.011834599684488689, 0.27219857209742687, 1.1611634274636182,
      -2.4049067106075932};
  const double t = fabs(v), s = reciprocal_of(1 + 0.25 * t);
  return (v > 0 ? v : 0) - t * s * power_of_two(polynomial(c, 2 * s - 1) - 0.72134752044448170368 * (t * t));
}

#endif
