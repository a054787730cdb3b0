/* reduction in T, by the sums of either type (in_both_types.h). */
static void IN_T(reduction)(const rl_kernel_shape *shape, const T *const *in, int64_t first, int64_t count, T *out) {
  (void)first;
  for (int64_t row = 0; row < count; row++) out[row] = IN_T(sum)(in[0] + row * shape->size[RL_COLUMNS], shape->size[RL_COLUMNS]);
}
