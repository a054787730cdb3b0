/* rope in T; angles are always in double (in_both_types.h). */
static void IN_T(rope)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  const int64_t heads = shape->size[RL_HEADS], size = shape->size[RL_HEAD_SIZE], half = size / 2;
  for (int64_t pair = 0; pair < half; pair++) {
    const long double turn = rl_rope_turn(pair, size);
    for (int64_t token = 0; token < count; token++) {
      const double angle = angle_of(first + token, turn);
      const T cosine = (T)cos(angle), sine = (T)sin(angle);
      for (int64_t head = 0; head < heads; head++) {
        const int64_t at = (token * heads + head) * size + pair;
        const T x = in[0][at], y = in[0][at + half];
        out[at] = x * cosine - y * sine;
        out[at + half] = y * cosine + x * sine;
      }
    }
  }
}
