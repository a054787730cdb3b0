/* The periodogram in T (in_both_types.h). Of RUN frequencies in even steps the first one's angle is taken by sine and cosine and
 * turned by each step from there; a sample's turns serve RUNS such runs. A frequency alone is not turned: that is the variant
 * template. */
typedef struct IN_T(sums) {
  T xc[SPAN], xs[SPAN], cc[SPAN], ss[SPAN], cs[SPAN];
} IN_T(sums);

static void IN_T(add_run)(T y, T c0, T s0, const T *turn_c, const T *turn_s, int64_t at, int64_t count, IN_T(sums) * sums) {
  for (int64_t k = 0; k < count; k++) {
    const T c = c0 * turn_c[k] - s0 * turn_s[k], s = s0 * turn_c[k] + c0 * turn_s[k];
    sums->xc[at + k] += y * c;
    sums->xs[at + k] += y * s;
    sums->cc[at + k] += c * c;
    sums->ss[at + k] += s * s;
    sums->cs[at + k] += c * s;
  }
}

static void IN_T(add_sample)(T t, T y, const T *w, T step, int64_t count, IN_T(sums) * sums) {
  T turn_c[RUN] = {1}, turn_s[RUN] = {0};
  for (int64_t k = 1; k < RUN && k < count; k++) turn_c[k] = cos(k * (step * t)), turn_s[k] = sin(k * (step * t));
  for (int64_t at = 0; at < count; at += RUN)
    IN_T(add_run)(y, cos(w[at] * t), sin(w[at] * t), turn_c, turn_s, at, count - at < RUN ? count - at : RUN, sums);
}

static T IN_T(power)(const IN_T(sums) * of, int64_t i) {
  const T xc = of->xc[i], xs = of->xs[i], cc = of->cc[i], ss = of->ss[i], cs = of->cs[i];
  const T angle = atan2(2 * cs, cc - ss) / 2, c = cos(angle), s = sin(angle);
  const T a = c * xc + s * xs, b = c * xs - s * xc;
  return (a * a / (c * c * cc + 2 * c * s * cs + s * s * ss) + b * b / (c * c * ss - 2 * c * s * cs + s * s * cc)) / 2;
}

static void IN_T(in)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const T step = (T)rl_lombscargle_step(shape->size[FREQUENCIES]);
  (void)first;
  for (int64_t at = 0; at < count; at += SPAN) {
    const int64_t some = count - at < SPAN ? count - at : SPAN;
    IN_T(sums) sums;
    for (int64_t i = 0; i < some; i++) sums.xc[i] = sums.xs[i] = sums.cc[i] = sums.ss[i] = sums.cs[i] = 0;
    for (int64_t j = 0; j < shape->size[SAMPLES]; j++)
      IN_T(add_sample)(in[TIME][j], in[VALUE][j], in[FREQUENCY] + at, step, some, &sums);
    for (int64_t i = 0; i < some; i++) out[at + i] = IN_T(power)(&sums, i);
  }
}
