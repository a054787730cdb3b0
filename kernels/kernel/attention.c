/* The operator attention: O = softmax(Q Kᵀ / √head_size) V for each head. Q and O are [batch][heads][sequence][head_size], K
 * and V are [batch][kv_heads][sequence][head_size]: heads / kv_heads consecutive heads share one head of K and V (grouped-query
 * attention). With `causal`, a row attends only to itself and to the rows before it. An output segment (kernel.h) is a row of
 * one head. Variant `heuristic` uses the algorithm that the library proposes, `searched` the fastest of those it offers. */
#include <math.h>

#include "kernel/kernel.h"
#include "kernel/sums.h"

static const char *const variants[] = {"heuristic", "searched", NULL};

enum { BATCH, HEADS, KV_HEADS, SEQUENCE, HEAD_SIZE, CAUSAL }; /* indices of the shape's sizes */
enum { QUERIES = 0 };                                         /* index of an input; keys and values are 1 and 2 */
enum { HEAD_SIZE_STEP = 8, MAX_HEAD_SIZE = 256 };             /* limits of cuDNN's fused kernel */
static const rl_field shape_fields[] = {
    RL_KERNEL_SIZE(BATCH, "batch", RL_KERNEL_ELEMENTS_MAX, "sequences"),
    RL_KERNEL_SIZE(HEADS, "heads", RL_KERNEL_ELEMENTS_MAX, "heads of Q and O"),
    RL_KERNEL_SIZE(KV_HEADS, "kv_heads", RL_KERNEL_ELEMENTS_MAX, "heads of K and V: a divisor of heads"),
    RL_KERNEL_SIZE(SEQUENCE, "sequence", RL_SUM_LENGTH_MAX, "rows of a head"),
    RL_KERNEL_SIZE(HEAD_SIZE, "head_size", 4096, "elements of a row"),
    RL_KERNEL_FLAG(CAUSAL, "causal", "true or false: whether a row attends only to itself and to the rows before it"),
    {0}};

static int check_heads(const rl_kernel_shape *shape, rl_error *err) {
  if (shape->size[HEADS] % shape->size[KV_HEADS] == 0) return 0;
  return rl_fail_at(err, "/shape/kv_heads", "kv_heads must divide heads");
}

static int check_gpu(const rl_kernel_params *params, rl_error *err) {
  rl_kernel_shape shape;
  if (params->dtype != RL_DTYPE_FP16 && params->dtype != RL_DTYPE_BF16)
    return rl_fail_at(err, "/dtype", "attention on a GPU is computed by cuDNN's fused kernel, which supports only fp16 and bf16");
  if (rl_kernel_params_shape(params, &shape, err) < 0) return -1;
  if (shape.size[HEAD_SIZE] % HEAD_SIZE_STEP == 0 && shape.size[HEAD_SIZE] <= MAX_HEAD_SIZE) return 0;
  return rl_fail_at(err, "/shape/head_size",
                    "attention on a GPU is computed by cuDNN's fused kernel: head_size must be a multiple of %d and at most %d",
                    HEAD_SIZE_STEP, MAX_HEAD_SIZE);
}

static int64_t head_elements(const rl_kernel_shape *shape) {
  return rl_kernel_saturating_mul(shape->size[SEQUENCE], shape->size[HEAD_SIZE]);
}
static int64_t tensor_elements(const rl_kernel_shape *shape, int64_t heads) {
  return rl_kernel_saturating_mul(rl_kernel_saturating_mul(shape->size[BATCH], heads), head_elements(shape));
}
static int64_t input_elements(const rl_kernel_shape *shape, uint32_t input) {
  return tensor_elements(shape, shape->size[input == QUERIES ? HEADS : KV_HEADS]);
}
static int64_t output_elements(const rl_kernel_shape *shape) { return tensor_elements(shape, shape->size[HEADS]); }
static int64_t output_segment_count(const rl_kernel_shape *shape) {
  return shape->size[BATCH] * shape->size[HEADS] * shape->size[SEQUENCE];
}

/* Returns the index of the head of K and V that a row of Q attends to. Rows and heads are numbered through the whole batch. */
static int64_t kv_head(const rl_kernel_shape *shape, int64_t row) {
  const int64_t head = row / shape->size[SEQUENCE];
  return head / (shape->size[HEADS] / shape->size[KV_HEADS]);
}

static void input_window(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                         int64_t *elements) {
  const int64_t from = input == QUERIES ? first : kv_head(shape, first);
  const int64_t to = input == QUERIES ? first + count : kv_head(shape, first + count - 1) + 1;
  const int64_t size = input == QUERIES ? shape->size[HEAD_SIZE] : head_elements(shape);
  *start = from * size;
  *elements = (to - from) * size;
}

/* Counts two dot products of head_size multiply-adds for each pair of a query and a key that the query attends to. Does not count
 * the softmax. */
static double operations(const rl_kernel_shape *shape) {
  const double n = (double)shape->size[SEQUENCE], pairs = shape->size[CAUSAL] ? n * (n + 1) / 2 : n * n;
  return 4.0 * (double)shape->size[BATCH] * (double)shape->size[HEADS] * pairs * (double)shape->size[HEAD_SIZE];
}

/* A softmax weight is the exponential of a score, so that an absolute error of the score becomes an equal relative error of the
 * weight. Scores are at most a few units large. exp adds its own error. */
static double tolerance_ulps(const rl_kernel_shape *shape) {
  return 16 + 4 * rl_sum_ulps(shape->size[HEAD_SIZE]) + rl_sum_ulps(shape->size[SEQUENCE]);
}
static double truncation_ulps(const rl_kernel_shape *shape) {
  return 4 * rl_sum_truncation_ulps(shape->size[HEAD_SIZE]) + rl_sum_truncation_ulps(shape->size[SEQUENCE]);
}

/* Returns the standard deviation of an output element, for inputs that are uniform in [-2, 2): 2/√3 (of an element of V) times
 * √Σw², where w are the softmax weights. Scores then have variance (4/3)². For normally distributed scores with this variance,
 * Σw² is about exp(16/9) / sequence; it is at most 1. */
static double output_scale(const rl_kernel_shape *shape) {
  return 2 / sqrt(3) * sqrt(fmin(1, exp(16.0 / 9) / (double)shape->size[SEQUENCE]));
}

#define RL_LOOPS_HEADER "kernel/loops/attention.h"
#include "kernel/float_and_double.h"

static void attention_defaults(void *params) { rl_kernel_defaults(params, &rl_kernel_attention); }
const rl_kernel_operator rl_kernel_attention = {
    .workload = RL_KERNEL_WORKLOAD(attention, "O = softmax(Q Kᵀ / √d) V for each head"),
    .shape_fields = shape_fields,
    .shape_check = check_heads,
    .dtypes = RL_KERNEL_COMMON_DTYPES,
    .variants = variants,
    .gpu_only_variants = 1u << 1, /* the variant "searched" */
    .gpu_check = check_gpu,
    .input_count = 3,
    .input_elements = input_elements,
    .output_elements = output_elements,
    .output_segment_count = output_segment_count,
    .input_window = input_window,
    .operations = operations,
    .tolerance_ulps = tolerance_ulps,
    .truncation_ulps = truncation_ulps,
    .output_scale = output_scale,
    .intermediate_roundings = 1, /* the weights are rounded before the product with V */
    .reference = attention_double,
    .compute_float = attention_float,
    .compute_double = attention_double};
