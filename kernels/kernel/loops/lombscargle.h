/* The Lomb-Scargle periodogram; float_and_double.h defines its functions for double and for float from this file. Frequencies
 * are processed in groups of GROUP_FREQUENCIES equally spaced frequencies, and CHUNK_FREQUENCIES at a time. The sine and cosine
 * of a sample's angle are computed for the first frequency of each group. Rotations turn them into those of the group's other
 * frequencies; the rotations are the same for all groups of a chunk. The variant template passes single frequencies, for which
 * nothing is rotated. The sums xc to cs are those of lombscargle.c, each for all frequencies of a chunk. */
typedef struct TYPED(sums) {
  T xc[CHUNK_FREQUENCIES], xs[CHUNK_FREQUENCIES], cc[CHUNK_FREQUENCIES], ss[CHUNK_FREQUENCIES], cs[CHUNK_FREQUENCIES];
} TYPED(sums);

/* Adds the terms of a sample with the value y to the sums of a group, whose first frequency is number `offset` of the chunk. c0,
 * s0: cosine and sine of the sample's angle for the first frequency of the group. rotation_c[k], rotation_s[k]: cosine and sine
 * of the angle between the first frequency and frequency k. */
static void TYPED(add_group)(T y, T c0, T s0, const T *rotation_c, const T *rotation_s, int64_t offset, int64_t count,
                             TYPED(sums) * sums) {
  for (int64_t k = 0; k < count; k++) {
    const T c = c0 * rotation_c[k] - s0 * rotation_s[k], s = s0 * rotation_c[k] + c0 * rotation_s[k];
    sums->xc[offset + k] += y * c;
    sums->xs[offset + k] += y * s;
    sums->cc[offset + k] += c * c;
    sums->ss[offset + k] += s * s;
    sums->cs[offset + k] += c * s;
  }
}

/* Adds the terms of the sample (t, y) to the sums of the frequencies w[0 … count - 1], which are `step` apart. */
static void TYPED(add_sample)(T t, T y, const T *w, T step, int64_t count, TYPED(sums) * sums) {
  T rotation_c[GROUP_FREQUENCIES] = {1}, rotation_s[GROUP_FREQUENCIES] = {0};
  for (int64_t k = 1; k < GROUP_FREQUENCIES && k < count; k++)
    rotation_c[k] = cos(k * (step * t)), rotation_s[k] = sin(k * (step * t));
  for (int64_t offset = 0; offset < count; offset += GROUP_FREQUENCIES) {
    const int64_t group = count - offset < GROUP_FREQUENCIES ? count - offset : GROUP_FREQUENCIES;
    TYPED(add_group)(y, cos(w[offset] * t), sin(w[offset] * t), rotation_c, rotation_s, offset, group, sums);
  }
}

static T TYPED(power)(const TYPED(sums) * sums, int64_t i) {
  const T xc = sums->xc[i], xs = sums->xs[i], cc = sums->cc[i], ss = sums->ss[i], cs = sums->cs[i];
  const T angle = atan2(2 * cs, cc - ss) / 2, c = cos(angle), s = sin(angle);
  const T a = c * xc + s * xs, b = c * xs - s * xc;
  return (a * a / (c * c * cc + 2 * c * s * cs + s * s * ss) + b * b / (c * c * ss - 2 * c * s * cs + s * s * cc)) / 2;
}

static void TYPED(lombscargle)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const T step = (T)rl_lombscargle_frequency_step(shape->size[FREQUENCIES]);
  (void)first;
  for (int64_t offset = 0; offset < count; offset += CHUNK_FREQUENCIES) {
    const int64_t chunk = count - offset < CHUNK_FREQUENCIES ? count - offset : CHUNK_FREQUENCIES;
    TYPED(sums) sums;
    for (int64_t i = 0; i < chunk; i++) sums.xc[i] = sums.xs[i] = sums.cc[i] = sums.ss[i] = sums.cs[i] = 0;
    for (int64_t j = 0; j < shape->size[SAMPLES]; j++)
      TYPED(add_sample)(in[TIME][j], in[VALUE][j], in[FREQUENCY] + offset, step, chunk, &sums);
    for (int64_t i = 0; i < chunk; i++) out[offset + i] = TYPED(power)(&sums, i);
  }
}
