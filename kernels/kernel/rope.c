/* The operator rope: rotary position embedding of [tokens][heads][head_size] numbers. Pair i of a head is its elements i and i +
 * head_size / 2. At position p (the index of the token) the pair is rotated by the angle p · 10000^(-2i / head_size). Variants
 * (rope.cu): scalar computes the angle for each pair; vector computes it once for all heads of a token and accesses 16 bytes at a
 * time. An output segment (kernel.h) is a token. */
#include <math.h>

#include "kernel/kernel.h"
#include "kernel/rope.h"

static const char *const variants[] = {"scalar", "vector", NULL};

enum { TOKENS_MAX = 1 << 20, HEADS_MAX = 1 << 16, HEAD_SIZE_MAX = 1 << 12 };
static const rl_field shape_fields[] = {
    RL_KERNEL_SIZE(RL_TOKENS, "tokens", TOKENS_MAX, "number of tokens, at most 1048576; their positions are 0, 1, ..."),
    RL_KERNEL_SIZE(RL_HEADS, "heads", HEADS_MAX, "heads of a token, at most 65536"),
    RL_KERNEL_SIZE(RL_HEAD_SIZE, "head_size", HEAD_SIZE_MAX, "elements of a head, an even number of at most 4096"),
    {0}};

static int shape_check(const rl_kernel_shape *shape, rl_error *err) {
  return shape->size[RL_HEAD_SIZE] % 2 == 0 ? 0 : rl_fail_at(err, "/shape/head_size", "must be even: a head consists of pairs");
}

long double rl_rope_turns_per_position(int64_t pair, int64_t head_size) {
  return powl(10000, -2 * (long double)pair / (long double)head_size) / (2 * M_PIl);
}

/* turns_per_position is split into its upper 43 bits and a small rest. A position is below 2^20, so its product with the upper
 * bits fits into the 64 bits of a long double and is exact, and so is the subtraction of full turns. */
double rl_rope_angle(int64_t position, long double turns_per_position) {
  const long double upper = ldexpl(rintl(ldexpl(turns_per_position, 43)), -43), turns = (long double)position * upper;
  return (double)((turns - rintl(turns) + (long double)position * (turns_per_position - upper)) * (2 * M_PIl));
}

#define RL_LOOPS_HEADER "kernel/loops/rope.h"
#include "kernel/float_and_double.h"

static int64_t token_elements(const rl_kernel_shape *shape) {
  return rl_kernel_saturating_mul(shape->size[RL_HEADS], shape->size[RL_HEAD_SIZE]);
}
static int64_t output_elements(const rl_kernel_shape *shape) {
  return rl_kernel_saturating_mul(shape->size[RL_TOKENS], token_elements(shape));
}
static int64_t input_elements(const rl_kernel_shape *shape, uint32_t input) { return (void)input, output_elements(shape); }
static int64_t output_segment_count(const rl_kernel_shape *shape) { return shape->size[RL_TOKENS]; }
static void input_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                         int64_t *elements) {
  (void)input;
  *start = first * token_elements(shape);
  *elements = count * token_elements(shape);
}
/* Returns the operations of all pairs, each of which needs four products, a difference and a sum. */
static double operations(const rl_kernel_shape *shape) { return 3 * (double)output_elements(shape); }
/* Returns the accepted error in units in the last place. A part of it grows with the number of tokens, because the angle between
 * two positions is rounded to 64 bits, and at position p this rounding error is multiplied by p. */
static double tolerance_ulps(const rl_kernel_shape *shape) { return 8 + (double)shape->size[RL_TOKENS] / 4096; }
/* Returns the magnitude of outputs to which errors are relative. A rotation preserves the norm of a pair, which is about 1, but
 * can make one of its two elements much smaller. */
static double output_scale(const rl_kernel_shape *shape) { return (void)shape, 1; }

static void rope_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_rope); }
const rl_kernel_operator rl_kernel_rope = {
    .workload = RL_KERNEL_WORKLOAD(
        rope, "rotary position embedding with base 10000: rotates element i and element i + head_size / 2 of a head as a pair"),
    .shape_fields = shape_fields,
    .shape_check = shape_check,
    .dtypes = RL_KERNEL_COMMON_DTYPES,
    .variants = variants,
    .input_count = 1,
    .input_elements = input_elements,
    .output_elements = output_elements,
    .output_segment_count = output_segment_count,
    .input_window = input_window,
    .reference = rope_double,
    .compute_double = rope_double,
    .compute_float = rope_float,
    .operations = operations,
    .tolerance_ulps = tolerance_ulps,
    .output_scale = output_scale};
