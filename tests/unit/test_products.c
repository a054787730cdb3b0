/* Tests gemm, attention and convolutions: compares the references and CPU engines with loops that follow the definitions, on
 * random shapes and values; computes segments of the output from their input windows only; checks costs, tolerances and refused
 * parameters. */
#include "kernel_cases.h"

#include <stdlib.h>
#include <time.h>

#include "kernel/cpu.h"
#include "random_numbers.h"

static rl_device *device;

/* Returns an integer that is uniform in [minimum, maximum]. */
static int64_t random_between(int64_t minimum, int64_t maximum) {
  return minimum + (int64_t)(random_bits() % (uint64_t)(maximum - minimum + 1));
}

enum { SHAPES_PER_OPERATOR = 40 };

/* --- the definitions --------------------------------------------------------------------------------------------------- */

/* Each function computes an output from `sizes` and the inputs `in`. M, N, K, and BATCH … and IMAGES … below, are indexes of
 * sizes. */
enum { M, N, K };
static void compute_gemm(const int64_t *sizes, const double *const *in, double *c) {
  for (int64_t i = 0; i < sizes[M]; i++)
    for (int64_t j = 0; j < sizes[N]; j++) {
      c[i * sizes[N] + j] = 0;
      for (int64_t l = 0; l < sizes[K]; l++) c[i * sizes[N] + j] += in[0][i * sizes[K] + l] * in[1][l * sizes[N] + j];
    }
}

enum { BATCH, HEADS, KV_HEADS, SEQUENCE, HEAD_SIZE, CAUSAL };
static void compute_attention(const int64_t *sizes, const double *const *in, double *output) {
  const int64_t sequence = sizes[SEQUENCE], head_size = sizes[HEAD_SIZE];
  for (int64_t head = 0; head < sizes[BATCH] * sizes[HEADS]; head++) {
    const int64_t batch = head / sizes[HEADS],
                  kv_head = batch * sizes[KV_HEADS] + head % sizes[HEADS] / (sizes[HEADS] / sizes[KV_HEADS]);
    const double *q = in[0] + head * sequence * head_size, *k = in[1] + kv_head * sequence * head_size,
                 *v = in[2] + kv_head * sequence * head_size;
    for (int64_t query_row = 0; query_row < sequence; query_row++) {
      double weight_sum = 0, *out = output + (head * sequence + query_row) * head_size;
      for (int64_t element = 0; element < head_size; element++) out[element] = 0;
      for (int64_t key_row = 0; key_row < sequence; key_row++) {
        double score = 0;
        for (int64_t element = 0; element < head_size; element++)
          score += q[query_row * head_size + element] * k[key_row * head_size + element];
        const double weight = sizes[CAUSAL] && key_row > query_row ? 0 : exp(score / sqrt((double)head_size));
        for (int64_t element = 0; element < head_size; element++) out[element] += weight * v[key_row * head_size + element];
        weight_sum += weight;
      }
      for (int64_t element = 0; element < head_size; element++) out[element] /= weight_sum;
    }
  }
}

enum { IMAGES, HEIGHT, WIDTH, CHANNELS, FILTERS, KERNEL, STRIDE, PADDING };
/* For every product that the convolution adds to its output, calls `add` with the indexes of the input element x, the weight w
 * and the output element y. The gradients add products of the same triples: w dy to dx, and x dy to dw. */
static void for_each_product(const int64_t *sizes,
                             void (*add)(int64_t x, int64_t w, int64_t y, const double *const *in, double *out),
                             const double *const *in, double *out) {
  const int64_t output_height = (sizes[HEIGHT] + 2 * sizes[PADDING] - sizes[KERNEL]) / sizes[STRIDE] + 1,
                output_width = (sizes[WIDTH] + 2 * sizes[PADDING] - sizes[KERNEL]) / sizes[STRIDE] + 1;
  for (int64_t y = 0; y < sizes[IMAGES] * output_height * output_width * sizes[FILTERS]; y++)
    for (int64_t tap = 0; tap < sizes[KERNEL] * sizes[KERNEL] * sizes[CHANNELS]; tap++) {
      const int64_t filter = y % sizes[FILTERS], column = y / sizes[FILTERS] % output_width,
                    row = y / sizes[FILTERS] / output_width % output_height,
                    image = y / sizes[FILTERS] / output_width / output_height;
      const int64_t channel = tap % sizes[CHANNELS], tap_column = tap / sizes[CHANNELS] % sizes[KERNEL],
                    tap_row = tap / sizes[CHANNELS] / sizes[KERNEL];
      const int64_t input_row = row * sizes[STRIDE] - sizes[PADDING] + tap_row,
                    input_column = column * sizes[STRIDE] - sizes[PADDING] + tap_column;
      if (input_row < 0 || input_row >= sizes[HEIGHT] || input_column < 0 || input_column >= sizes[WIDTH]) continue;
      add(((image * sizes[HEIGHT] + input_row) * sizes[WIDTH] + input_column) * sizes[CHANNELS] + channel,
          filter * sizes[KERNEL] * sizes[KERNEL] * sizes[CHANNELS] + tap, y, in, out);
    }
}
static void add_forward(int64_t x, int64_t w, int64_t y, const double *const *in, double *out) { out[y] += in[0][x] * in[1][w]; }
static void add_dgrad(int64_t x, int64_t w, int64_t y, const double *const *in, double *out) { out[x] += in[0][y] * in[1][w]; }
static void add_wgrad(int64_t x, int64_t w, int64_t y, const double *const *in, double *out) { out[w] += in[0][x] * in[1][y]; }
static void compute_conv(const int64_t *sizes, const double *const *in, double *out) {
  for_each_product(sizes, add_forward, in, out);
}
static void compute_dgrad(const int64_t *sizes, const double *const *in, double *out) {
  for_each_product(sizes, add_dgrad, in, out);
}
static void compute_wgrad(const int64_t *sizes, const double *const *in, double *out) {
  for_each_product(sizes, add_wgrad, in, out);
}

static rl_kernel_shape random_gemm_shape(void) {
  return (rl_kernel_shape){{random_between(1, 40), random_between(1, 40), random_between(1, 90)}};
}
static rl_kernel_shape random_attention_shape(void) {
  const int64_t kv_heads = random_between(1, 3);
  return (rl_kernel_shape){{random_between(1, 2), kv_heads * random_between(1, 3), kv_heads, random_between(1, 150),
                            random_between(1, 20), random_between(0, 1)}};
}
static rl_kernel_shape random_conv_shape(void) {
  const int64_t kernel = random_between(1, 5), padding = random_between(0, kernel - 1),
                min_side = kernel > 2 * padding ? kernel - 2 * padding : 1;
  return (rl_kernel_shape){{random_between(1, 3), random_between(min_side, 9), random_between(min_side, 9), random_between(1, 9),
                            random_between(1, 9), kernel, random_between(1, 7), padding}};
}

static const struct definition {
  const rl_kernel_operator *op;
  rl_kernel_shape (*random_shape)(void);
  void (*compute)(const int64_t *sizes, const double *const *in, double *out);
} definitions[] = {{&rl_kernel_gemm, random_gemm_shape, compute_gemm},
                   {&rl_kernel_attention, random_attention_shape, compute_attention},
                   {&rl_kernel_conv, random_conv_shape, compute_conv},
                   {&rl_kernel_conv_dgrad, random_conv_shape, compute_dgrad},
                   {&rl_kernel_conv_wgrad, random_conv_shape, compute_wgrad}};
enum { DEFINITION_COUNT = sizeof definitions / sizeof *definitions };

/* --- the references ---------------------------------------------------------------------------------------------------- */

typedef struct problem {
  const rl_kernel_operator *op;
  rl_kernel_shape shape;
  double *in[RL_KERNEL_INPUTS_MAX], *expected, *result;
  int64_t elements; /* of the output */
} problem;

static problem new_problem(const struct definition *definition) {
  problem p = {.op = definition->op, .shape = definition->random_shape()};
  p.elements = p.op->output_elements(&p.shape);
  for (uint32_t input = 0; input < p.op->input_count; input++) {
    const int64_t count = p.op->input_elements(&p.shape, input);
    p.in[input] = malloc((size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++) p.in[input][i] = 2 * random_value();
  }
  p.expected = calloc((size_t)p.elements, sizeof(double));
  p.result = malloc((size_t)p.elements * sizeof(double));
  definition->compute(p.shape.size, (const double *const *)p.in, p.expected);
  return p;
}

static void free_problem(problem *p) {
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS_MAX; input++) free(p->in[input]);
  free(p->expected);
  free(p->result);
}

static void assert_agreement(const problem *p, double limit, const char *function) {
  double scale = p->op->output_scale(&p->shape);
  for (int64_t i = 0; i < p->elements; i++)
    if (!(fabs(p->result[i] - p->expected[i]) <= limit * fmax(scale, fabs(p->expected[i])))) {
      const int64_t *sizes = p->shape.size;
      fail_msg("%s, %s: element %lld is %.17g, not %.17g; sizes %lld %lld %lld %lld %lld %lld %lld %lld, seed %llu",
               p->op->workload.name, function, (long long)i, p->result[i], p->expected[i], (long long)sizes[0],
               (long long)sizes[1], (long long)sizes[2], (long long)sizes[3], (long long)sizes[4], (long long)sizes[5],
               (long long)sizes[6], (long long)sizes[7], (unsigned long long)test_seed);
    }
}

static void references_match_the_definitions(void **state) {
  (void)state;
  for (int i = 0; i < SHAPES_PER_OPERATOR * DEFINITION_COUNT; i++) {
    problem p = new_problem(&definitions[i % DEFINITION_COUNT]);
    p.op->reference(&p.shape, (const double *const *)p.in, 0, p.op->output_segment_count(&p.shape), p.result);
    assert_agreement(&p, 1e-13, "reference");
    p.op->compute_double(&p.shape, (const double *const *)p.in, 0, p.op->output_segment_count(&p.shape), p.result);
    assert_agreement(&p, 1e-13, "compute_double");
    free_problem(&p);
  }
}

static void float_results_are_within_the_tolerance(void **state) {
  (void)state;
  for (int i = 0; i < SHAPES_PER_OPERATOR * DEFINITION_COUNT; i++) {
    problem p = new_problem(&definitions[i % DEFINITION_COUNT]);
    float *in[RL_KERNEL_INPUTS_MAX] = {NULL}, *out = malloc((size_t)p.elements * sizeof(float));
    for (uint32_t input = 0; input < p.op->input_count; input++) {
      const int64_t count = p.op->input_elements(&p.shape, input);
      in[input] = malloc((size_t)count * sizeof(float));
      for (int64_t k = 0; k < count; k++) p.in[input][k] = in[input][k] = (float)p.in[input][k];
    }
    memset(p.expected, 0, (size_t)p.elements * sizeof(double));
    definitions[i % DEFINITION_COUNT].compute(p.shape.size, (const double *const *)p.in, p.expected);
    p.op->compute_float(&p.shape, (const float *const *)in, 0, p.op->output_segment_count(&p.shape), out);
    for (int64_t k = 0; k < p.elements; k++) p.result[k] = (double)out[k];
    assert_agreement(
        &p, 4 * p.op->tolerance_ulps(&p.shape) * 0x1p-23,
        "compute_float"); /* 4 times the tolerance, which bounds the norm of all errors: a single error may be larger */
    for (uint32_t input = 0; input < RL_KERNEL_INPUTS_MAX; input++) free(in[input]);
    free(out);
    free_problem(&p);
  }
}

/* Computes segments [first, first + count) of the output. The inputs are exact copies of their windows, so that AddressSanitizer
 * finds accesses outside of them. */
static void compute_segments(const problem *p, int64_t first, int64_t count) {
  const int64_t segment_elements = p->elements / p->op->output_segment_count(&p->shape);
  double *window[RL_KERNEL_INPUTS_MAX] = {NULL};
  for (uint32_t input = 0; input < p->op->input_count; input++) {
    int64_t start, elements;
    p->op->input_window(&p->shape, input, first, count, &start, &elements);
    assert_true(start >= 0 && elements > 0 && start + elements <= p->op->input_elements(&p->shape, input));
    window[input] = malloc((size_t)elements * sizeof(double));
    memcpy(window[input], p->in[input] + start, (size_t)elements * sizeof(double));
  }
  p->op->reference(&p->shape, (const double *const *)window, first, count, p->result + first * segment_elements);
  for (uint32_t input = 0; input < RL_KERNEL_INPUTS_MAX; input++) free(window[input]);
}

static void segments_need_only_their_windows(void **state) {
  (void)state;
  for (int i = 0; i < SHAPES_PER_OPERATOR * DEFINITION_COUNT; i++) {
    problem p = new_problem(&definitions[i % DEFINITION_COUNT]);
    const int64_t segments = p.op->output_segment_count(&p.shape);
    for (int64_t first = 0, count; first < segments; first += count) {
      count = random_between(1, segments - first);
      compute_segments(&p, first, count);
    }
    assert_agreement(&p, 1e-13, "segments");
    free_problem(&p);
  }
}

/* --- the engines on the CPU -------------------------------------------------------------------------------------------- */

static void both_engines_of_gemm_are_correct(void **state) {
  (void)state;
  static const rl_engine *const engines[] = {&rl_kernel_openblas_gemm, &rl_kernel_cpu_gemm};
  static const char *const shapes[] = {"{\"m\":1,\"n\":1,\"k\":1}", "{\"m\":1,\"n\":1023,\"k\":300}",
                                       "{\"m\":777,\"n\":3,\"k\":65}"};
  for (int i = 0; i < 2 * 3 * RL_DTYPE_COUNT; i++) {
    rl_error err = {0};
    rl_instance *instance = NULL;
    rl_kernel_params params = kernel_params(&rl_kernel_gemm, i % RL_DTYPE_COUNT, "heuristic", shapes[i / RL_DTYPE_COUNT % 3]);
    params.seed = random_between(1, 1 << 30);
    if (engines[i / RL_DTYPE_COUNT / 3]->open(device, &params, &instance, &err) < 0) fail_msg("%s", err.message);
    assert_correct((rl_kernel_instance *)instance);
    instance->ops->close(instance);
  }
  rl_kernel_params params = kernel_params(&rl_kernel_gemm, RL_DTYPE_FP32, "heuristic", shapes[0]);
  assert_ptr_equal(rl_engine_find("gemm", "auto", &params, NULL), &rl_kernel_openblas_gemm);
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

/* The fp32 tolerance must be too small for inputs rounded to TF32. */
static void the_check_rejects_inputs_rounded_to_tf32(void **state) {
  (void)state;
  rl_kernel_params params = kernel_params(&rl_kernel_gemm, RL_DTYPE_FP32, "heuristic", "{\"m\":64,\"n\":64,\"k\":4096}");
  rl_kernel_instance *kernel = open_kernel(device, &params);
  rl_check check = {NAN, NAN, NAN};
  rl_error err = {0};
  assert_true(assert_correct(kernel) > 0);
  float *a = kernel->in[0];
  for (int64_t i = 0; i < 64 * 4096; i++) rl_dtype_store(RL_DTYPE_TF32, a, (size_t)i, (double)a[i]);
  assert_int_equal(kernel->base.ops->check(&kernel->base, &check, &err), 0);
  assert_true(check.relative_error > 16 * check.tolerance);
  close_kernel(kernel);
}

/* --- costs, tolerances, refusals --------------------------------------------------------------------------------------- */

static rl_cost cost_of(const rl_kernel_operator *op, int dtype, const char *shape) {
  rl_kernel_params params = kernel_params(op, dtype, "heuristic", shape);
  return op->workload.cost(&params, 0);
}

static void costs_count_compulsory_bytes_and_operations(void **state) {
  (void)state;
  rl_cost cost = cost_of(&rl_kernel_gemm, RL_DTYPE_FP16, "{\"m\":2048,\"n\":4096,\"k\":4096}");
  assert_true(cost.operations == 2.0 * 2048 * 4096 * 4096 && cost.bytes == 2.0 * (2048 * 4096 + 4096 * 4096 + 2048 * 4096));
  const char *full = "{\"batch\":2,\"heads\":8,\"kv_heads\":2,\"sequence\":100,\"head_size\":64,\"causal\":false}";
  const char *causal = "{\"batch\":2,\"heads\":8,\"kv_heads\":2,\"sequence\":100,\"head_size\":64,\"causal\":true}";
  cost = cost_of(&rl_kernel_attention, RL_DTYPE_BF16, full);
  assert_true(cost.operations == 4.0 * 2 * 8 * 100 * 100 * 64 && cost.bytes == 2.0 * 2 * 100 * 64 * (8 + 2 + 2 + 8));
  cost = cost_of(&rl_kernel_attention, RL_DTYPE_BF16, causal);
  assert_true(cost.operations == 4.0 * 2 * 8 * (100 * 101 / 2) * 64);
  /* A 3×3 kernel with padding 1 on a 5×7 image: 13 of 15 vertical and 19 of 21 horizontal positions of its taps lie inside. */
  const char *conv =
      "{\"images\":2,\"height\":5,\"width\":7,\"channels\":3,\"filters\":4,\"kernel\":3,\"stride\":1,\"padding\":1}";
  for (int i = 2; i < DEFINITION_COUNT; i++) {
    cost = cost_of(definitions[i].op, RL_DTYPE_FP32, conv);
    assert_true(cost.operations == 2.0 * 2 * 13 * 19 * 3 * 4 && cost.bytes == 4.0 * (2 * 5 * 7 * 3 + 4 * 9 * 3 + 2 * 5 * 7 * 4));
  }
}

#define STRIDED_CONV(SIDE, KERNEL, STRIDE, PADDING)                                                          \
  "{\"images\":8,\"height\":" #SIDE ",\"width\":" #SIDE ",\"channels\":64,\"filters\":1,\"kernel\":" #KERNEL \
  ",\"stride\":" #STRIDE ",\"padding\":" #PADDING "}"
/* A 1×1 filter with stride 2 reads every fourth pixel. Without padding, a 3×3 filter with stride 2 does not reach the last row of
 * 112. On an image of one pixel, only the middle tap is not in the padding. All of dx and dw is written. */
static void costs_omit_pixels_that_no_filter_covers(void **state) {
  (void)state;
  static const struct {
    const char *shape;
    double x_side, covered_side, w_side, used_side, y_side;
  } cases[] = {
      {STRIDED_CONV(112, 1, 1, 0), 112, 112, 1, 1, 112}, {STRIDED_CONV(112, 1, 2, 0), 112, 56, 1, 1, 56},
      {STRIDED_CONV(112, 1, 8, 0), 112, 14, 1, 1, 14},   {STRIDED_CONV(112, 3, 2, 1), 112, 112, 3, 3, 56},
      {STRIDED_CONV(112, 3, 1, 1), 112, 112, 3, 3, 112}, {STRIDED_CONV(112, 3, 2, 0), 112, 111, 3, 3, 55},
      {STRIDED_CONV(1, 3, 1, 1), 1, 1, 3, 1, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const double x = 8 * 64 * pow(cases[i].x_side, 2), covered_x = 8 * 64 * pow(cases[i].covered_side, 2),
                 w = 64 * pow(cases[i].w_side, 2), used_w = 64 * pow(cases[i].used_side, 2), y = 8 * pow(cases[i].y_side, 2);
    assert_true(cost_of(&rl_kernel_conv, RL_DTYPE_FP32, cases[i].shape).bytes == 4 * (covered_x + used_w + y));
    assert_true(cost_of(&rl_kernel_conv_dgrad, RL_DTYPE_FP32, cases[i].shape).bytes == 4 * (y + used_w + x));
    assert_true(cost_of(&rl_kernel_conv_wgrad, RL_DTYPE_FP32, cases[i].shape).bytes == 4 * (covered_x + y + w));
  }
}

static uint8_t *used[3]; /* whether an element of x, w or y is in a product */
static void mark_used(int64_t x, int64_t w, int64_t y, const double *const *in, double *out) {
  (void)in, (void)out;
  used[0][x] = used[1][w] = used[2][y] = 1;
}

static void compulsory_elements_are_those_in_products(void **state) {
  (void)state;
  const rl_kernel_operator *const conv = &rl_kernel_conv, *const dgrad = &rl_kernel_conv_dgrad,
                                  *const wgrad = &rl_kernel_conv_wgrad;
  for (int i = 0; i < 20 * SHAPES_PER_OPERATOR; i++) {
    const rl_kernel_shape shape = random_conv_shape();
    const int64_t elements[] = {conv->input_elements(&shape, 0), conv->input_elements(&shape, 1), conv->output_elements(&shape)};
    int64_t counts[3] = {0};
    for (int k = 0; k < 3; k++) used[k] = calloc((size_t)elements[k], 1);
    for_each_product(shape.size, mark_used, NULL, NULL);
    for (int k = 0; k < 3; k++) {
      for (int64_t element = 0; element < elements[k]; element++) counts[k] += used[k][element];
      free(used[k]);
    }
    assert_int_equal(conv->compulsory_elements(&shape, 0), counts[0]);
    assert_int_equal(conv->compulsory_elements(&shape, 1), counts[1]);
    assert_int_equal(dgrad->compulsory_elements(&shape, 0), counts[2]);
    assert_int_equal(dgrad->compulsory_elements(&shape, 1), counts[1]);
    assert_int_equal(wgrad->compulsory_elements(&shape, 0), counts[0]);
    assert_int_equal(wgrad->compulsory_elements(&shape, 1), counts[2]);
  }
}

static void tolerances_grow_with_sums(void **state) {
  (void)state;
  rl_kernel_params gemm = kernel_params(&rl_kernel_gemm, RL_DTYPE_TF32, "heuristic", "{\"m\":1,\"n\":1,\"k\":4096}");
  rl_kernel_shape shape;
  assert_int_equal(rl_kernel_params_shape(&gemm, &shape, NULL), 0);
  assert_true(rl_kernel_tolerance(&gemm, &shape) == (1 + 32 + 128 + 0.5) * 0x1p-23);
  gemm.dtype = RL_DTYPE_FP32; /* FP32 uses no tensor cores, so inputs are not truncated */
  assert_true(rl_kernel_tolerance(&gemm, &shape) == (1 + 32 + 0.5) * 0x1p-23);
  gemm.dtype = RL_DTYPE_FP16;
  assert_true(rl_kernel_tolerance(&gemm, &shape) == 161 * 0x1p-23 + 0x1p-11);
  /* The softmax weights, by which V is multiplied, are rounded too. */
  rl_kernel_params attention =
      kernel_params(&rl_kernel_attention, RL_DTYPE_BF16, "heuristic",
                    "{\"batch\":1,\"heads\":1,\"kv_heads\":1,\"sequence\":1,\"head_size\":64,\"causal\":true}");
  assert_int_equal(rl_kernel_params_shape(&attention, &shape, NULL), 0);
  assert_true(rl_kernel_tolerance(&attention, &shape) > 2 * 0x1p-8 && rl_kernel_tolerance(&attention, &shape) < 2.1 * 0x1p-8);
}

static void unsupported_parameters_are_refused(void **state) {
  (void)state;
#define CONV(N, H, W, C, K, R, S, P)                                                                            \
  "{\"images\":" #N ",\"height\":" #H ",\"width\":" #W ",\"channels\":" #C ",\"filters\":" #K ",\"kernel\":" #R \
  ",\"stride\":" #S ",\"padding\":" #P "}"
#define ATTENTION(HEADS, KV_HEADS, CAUSAL) \
  "{\"batch\":1,\"heads\":" #HEADS ",\"kv_heads\":" #KV_HEADS ",\"sequence\":4,\"head_size\":8,\"causal\":" #CAUSAL "}"
  static const struct {
    const rl_kernel_operator *op;
    int dtype;
    const char *shape, *pointer;
  } cases[] = {{&rl_kernel_gemm, RL_DTYPE_FP32, "{\"m\":1,\"n\":1}", "/shape/k"},
               {&rl_kernel_gemm, RL_DTYPE_FP32, "{\"m\":1,\"n\":0,\"k\":1}", "/shape/n"},
               {&rl_kernel_gemm, RL_DTYPE_FP32, "{\"m\":1,\"n\":1,\"k\":16777217}", "/shape/k"},
               {&rl_kernel_gemm, RL_DTYPE_FP32, "{\"m\":268435456,\"n\":268435456,\"k\":1}", "/shape"},
               {&rl_kernel_gemm, RL_DTYPE_FP32, "{\"m\":1,\"n\":65536,\"k\":65536}", "/shape"},
               {&rl_kernel_attention, RL_DTYPE_TF32, ATTENTION(1, 1, true), "/dtype"},
               {&rl_kernel_attention, RL_DTYPE_FP16, ATTENTION(3, 2, true), "/shape/kv_heads"},
               {&rl_kernel_attention, RL_DTYPE_FP16, ATTENTION(2, 4, true), "/shape/kv_heads"},
               {&rl_kernel_attention, RL_DTYPE_FP16, ATTENTION(2, 2, 1), "/shape/causal"},
               {&rl_kernel_conv, RL_DTYPE_FP32, CONV(1, 8, 8, 1, 1, 3, 1, 3), "/shape/padding"},
               {&rl_kernel_conv, RL_DTYPE_FP32, CONV(1, 8, 8, 1, 1, 3, 1, -1), "/shape/padding"},
               {&rl_kernel_conv, RL_DTYPE_FP32, CONV(1, 8, 2, 1, 1, 3, 1, 0), "/shape/kernel"},
               {&rl_kernel_conv_dgrad, RL_DTYPE_FP32, CONV(1, 2, 8, 1, 1, 3, 2, 0), "/shape/kernel"},
               {&rl_kernel_conv_dgrad, RL_DTYPE_FP32, CONV(1, 1, 1, 1, 1, 1, 0, 0), "/shape/stride"},
               {&rl_kernel_conv_wgrad, RL_DTYPE_FP32, CONV(1, 8192, 8192, 1, 1, 1, 1, 0), "/shape"},
               {&rl_kernel_conv_wgrad, RL_DTYPE_FP32, CONV(268435456, 1048576, 1048576, 268435456, 268435456, 1, 1, 0), "/shape"},
               {&rl_kernel_conv, RL_DTYPE_FP32, CONV(268435456, 1, 1, 2, 1, 1, 1, 0), "/shape"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_params params = kernel_params(cases[i].op, cases[i].dtype, "searched", cases[i].shape);
    rl_error err = {0};
    assert_null(rl_engine_find(cases[i].op->workload.name, "auto", &params, &err));
    assert_int_equal(err.domain, RL_INPUT);
    assert_string_equal(err.json_pointer, cases[i].pointer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(references_match_the_definitions),
                                     cmocka_unit_test(float_results_are_within_the_tolerance),
                                     cmocka_unit_test(segments_need_only_their_windows),
                                     cmocka_unit_test(both_engines_of_gemm_are_correct),
                                     cmocka_unit_test(the_check_rejects_inputs_rounded_to_tf32),
                                     cmocka_unit_test(costs_count_compulsory_bytes_and_operations),
                                     cmocka_unit_test(costs_omit_pixels_that_no_filter_covers),
                                     cmocka_unit_test(compulsory_elements_are_those_in_products),
                                     cmocka_unit_test(tolerances_grow_with_sums),
                                     cmocka_unit_test(unsupported_parameters_are_refused)};
  setenv("ROOFLINED_THREADS", "3", 1);
  choose_test_seed();
  device = rl_device_open(0, NULL);
  if (!device) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
