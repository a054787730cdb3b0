/* Rotary position embedding; float_and_double.h defines rope_double and rope_float from this file. Angles are computed in double
 * for both types. */
static void TYPED(rope)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t heads = shape->size[RL_HEADS], size = shape->size[RL_HEAD_SIZE], half = size / 2;
  for (int64_t pair = 0; pair < half; pair++) {
    const long double turns_per_position = rl_rope_turns_per_position(pair, size);
    for (int64_t token = 0; token < count; token++) {
      const double angle = rl_rope_angle(first + token, turns_per_position);
      const T cosine = (T)cos(angle), sine = (T)sin(angle);
      for (int64_t head = 0; head < heads; head++) {
        const int64_t i = (token * heads + head) * size + pair;
        const T x = in[0][i], y = in[0][i + half];
        out[i] = x * cosine - y * sine;
        out[i + half] = y * cosine + x * sine;
      }
    }
  }
}
