/* Returns Σ a[i] b[i], computed in eight partial sums, which the compiler vectorises; float_and_double.h defines rl_dot_double
 * and rl_dot_float from this file. */
static inline T TYPED(rl_dot)(const T *a, const T *b, int64_t count) {
  T lanes[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int lane = 0; lane < 8; lane++) lanes[lane] += a[i + lane] * b[i + lane];
  for (; i < count; i++) lanes[0] += a[i] * b[i];
  return (lanes[0] + lanes[4]) + (lanes[1] + lanes[5]) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}
