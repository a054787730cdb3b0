/* The Lomb-Scargle periodogram: text that is compiled in several ways, by nvcc into fatbins and by NVRTC when it is asked for, so
 * it includes nothing. Macros say which version it becomes:
 *   REAL           float or double
 *   LITERAL(x)     a constant: x as it stands, a double that drags float arithmetic along, or ((REAL)x)
 *   BOUNDS         __launch_bounds__(BLOCK), or nothing
 *   EXPANSION      with the kernel for frequencies in even steps, to this order
 * The sums of a frequency w over samples (t, y), and the power they make, are those of Press and Rybicki (1989) as
 * scipy.signal.lombscargle (1.10) has them:
 *   xc = Σ y cos wt, xs = Σ y sin wt, cc = Σ cos² wt, ss = Σ sin² wt, cs = Σ cos wt sin wt. */
enum { BLOCK = 128, WARP = 32 };

template <class T> struct functions;
template <> struct functions<float> {
  __device__ static void sincos_of(float x, float *s, float *c) { sincosf(x, s, c); }
  __device__ static float atan2_of(float y, float x) { return atan2f(y, x); }
  __device__ static float sqrt_of(float x) { return sqrtf(x); }
  __device__ static float over(float a, float b) { return __fdividef(a, b); }
  /* Of a large angle that float can't hold. */
  __device__ static void sincos_of_double(double x, float *s, float *c) {
    sincosf((float)(x - rint(x * 0.15915494309189535) * 6.283185307179586), s, c);
  }
};
template <> struct functions<double> {
  __device__ static void sincos_of(double x, double *s, double *c) { sincos(x, s, c); }
  __device__ static double atan2_of(double y, double x) { return atan2(y, x); }
  __device__ static double sqrt_of(double x) { return sqrt(x); }
  __device__ static double over(double a, double b) { return a / b; }
  __device__ static void sincos_of_double(double x, double *s, double *c) { sincos(x, s, c); }
};
typedef functions<REAL> of;

/* Any frequencies: a thread takes one after another, in steps of the grid, over all samples, as the versions of the talk do. */
extern "C" __global__ void BOUNDS periodogram(int samples, int frequencies, const REAL *__restrict__ time,
                                              const REAL *__restrict__ value, const REAL *__restrict__ frequency,
                                              REAL *__restrict__ power) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < frequencies; i += gridDim.x * blockDim.x) {
    const REAL w = frequency[i];
    REAL xc = 0, xs = 0, cc = 0, ss = 0, cs = 0;
    for (int j = 0; j < samples; j++) {
      REAL s, c;
      of::sincos_of(w * time[j], &s, &c);
      xc += value[j] * c;
      xs += value[j] * s;
      cc += c * c;
      ss += s * s;
      cs += c * s;
    }
    const REAL tau = of::atan2_of(LITERAL(2.0) * cs, cc - ss) / (LITERAL(2.0) * w);
    REAL st, ct;
    of::sincos_of(w * tau, &st, &ct);
    const REAL ct2 = ct * ct, st2 = st * st, cst = LITERAL(2.0) * ct * st;
    const REAL a = ct * xc + st * xs, b = ct * xs - st * xc;
    power[i] = LITERAL(0.5) * (a * a / (ct2 * cc + cst * cs + st2 * ss) + b * b / (ct2 * ss - cst * cs + st2 * cc));
  }
}

#ifdef EXPANSION
/* Frequencies first + i step. As functions of the frequency the sums are smooth on the scale of one over the span of time, which
 * is many steps. A block takes `per_block` frequencies around w0 and expands the sums by Taylor in w - w0: a thread works out the
 * terms of its samples, the block adds them up, and then a frequency costs four polynomials and no sine. Time is counted from
 * `origin`, the middle of its span: the power does not depend on it, and the powers of time stay small. `reach` = (w - w0) at the
 * block's edge; terms are in units of it, so that x = (w - w0) / reach is at most 1. */

/* cos, -sin, -cos, sin, ...: the derivatives of cos at an angle, of which those of sin are the ones before. */
template <int P> __device__ static inline REAL derivative(REAL s, REAL c) {
  return P % 4 == 0 ? c : P % 4 == 1 ? -s : P % 4 == 2 ? -c : s;
}

enum {
  XC = 0,
  XS = EXPANSION + 1,
  CC = 2 * (EXPANSION + 1),
  CS = 3 * (EXPANSION + 1),
  SS0 = 4 * (EXPANSION + 1),
  TERMS = SS0 + 1,
  ROOM = (TERMS + WARP - 1) / WARP * WARP
};

/* Terms of order P and up of one sample: power_y = y (t reach)^P / P!, power_2 = (2 t reach)^P / P! / 2. ss is that of cc with
 * the other sign, but for order 0. */
template <int P> struct orders {
  __device__ static inline void add(REAL *terms, REAL s, REAL c, REAL s2, REAL c2, REAL power_y, REAL power_2, REAL t) {
    terms[XC + P] += power_y * derivative<P>(s, c);
    terms[XS + P] += power_y * derivative<P + 3>(s, c);
    if (P > 0) {
      terms[CC + P] += power_2 * derivative<P>(s2, c2);
      terms[CS + P] += power_2 * derivative<P + 3>(s2, c2);
    }
    orders<P + 1>::add(terms, s, c, s2, c2, power_y * t / (P + 1), power_2 * (2 * t) / (P + 1), t);
  }
};
template <> struct orders<EXPANSION + 1> {
  __device__ static inline void add(REAL *, REAL, REAL, REAL, REAL, REAL, REAL, REAL) {}
};

/* 32 numbers of each lane become the sum over the warp of number `lane`, by halves: 31 exchanges instead of 5 for each number. */
template <int WIDTH> struct halves {
  __device__ static inline REAL fold(REAL *numbers, int lane) {
    const bool upper = lane & WIDTH;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
      const REAL keep = upper ? numbers[i + WIDTH] : numbers[i], give = upper ? numbers[i] : numbers[i + WIDTH];
      numbers[i] = keep + __shfl_xor_sync(0xffffffffu, give, WIDTH);
    }
    return halves<WIDTH / 2>::fold(numbers, lane);
  }
};
template <> struct halves<0> {
  __device__ static inline REAL fold(REAL *numbers, int) { return numbers[0]; }
};

/* Without its constant, so that sums which nearly vanish keep their digits. */
__device__ static inline REAL change(const REAL *terms, REAL x) {
  REAL sum = terms[EXPANSION];
#pragma unroll
  for (int p = EXPANSION - 1; p > 0; p--) sum = sum * x + terms[p];
  return sum * x;
}

/* tau's angle without a trigonometric function: its double has the tangent 2 cs / (cc - ss). Which of the angles that differ by a
 * right one is taken does not matter: the two fractions change places. */
__device__ static inline REAL power_of(REAL xc, REAL xs, REAL cc, REAL ss, REAL cs) {
  const REAL x = cc - ss, y = 2 * cs, r = of::sqrt_of(x * x + y * y);
  const REAL c2 = r > 0 ? of::over(x, r) : (REAL)1, s2 = r > 0 ? of::over(y, r) : (REAL)0;
  const REAL large = of::sqrt_of((REAL)0.5 * (1 + (c2 < 0 ? -c2 : c2))), small = of::over(s2, 2 * large);
  const REAL c = c2 < 0 ? small : large, s = c2 < 0 ? large : small;
  const REAL a = c * xc + s * xs, b = c * xs - s * xc, cst = 2 * c * s;
  return (REAL)0.5 * (of::over(a * a, c * c * cc + cst * cs + s * s * ss) + of::over(b * b, c * c * ss - cst * cs + s * s * cc));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    uniform(int samples, int frequencies, int per_block, double first, double step, double origin, const REAL *__restrict__ time,
            const REAL *__restrict__ value, REAL *__restrict__ power) {
  __shared__ REAL of_warp[BLOCK / WARP][ROOM];
  __shared__ REAL sums[ROOM];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, begin = blockIdx.x * per_block;
  const double reach = 0.5 * per_block * step, w0 = first + begin * step + reach;
  REAL terms[ROOM];
#pragma unroll
  for (int i = 0; i < ROOM; i++) terms[i] = 0;
  for (int j = threadIdx.x; j < samples; j += BLOCK) {
    const double t = time[j] - origin;
    REAL s, c;
    of::sincos_of_double(w0 * t, &s, &c);
    terms[CC] += c * c;
    terms[SS0] += s * s;
    terms[CS] += c * s;
    orders<0>::add(terms, s, c, 2 * c * s, (c - s) * (c + s), value[j], (REAL)0.5, (REAL)(t * reach));
  }
#pragma unroll
  for (int i = 0; i < ROOM; i += WARP) of_warp[warp][i + lane] = halves<WARP / 2>::fold(terms + i, lane);
  __syncthreads();
  for (int i = threadIdx.x; i < ROOM; i += BLOCK) {
    REAL sum = 0;
    for (int k = 0; k < BLOCK / WARP; k++) sum += of_warp[k][i];
    sums[i] = sum;
  }
  __syncthreads();
  const REAL scale = (REAL)2 / per_block;
  for (int i = threadIdx.x; i < per_block && begin + i < frequencies; i += BLOCK) {
    const REAL x = (i - per_block / 2) * scale, changed = change(sums + CC, x);
    power[begin + i] = power_of(sums[XC] + change(sums + XC, x), sums[XS] + change(sums + XS, x), sums[CC] + changed,
                                sums[SS0] - changed, sums[CS] + change(sums + CS, x));
  }
}
#endif
