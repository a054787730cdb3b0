/* Defines the workload transformer_layer (layer.h): its parameters, the parameters that each engine supports, and its cost. */
#include "layer/layer.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/dtype.h"

enum { TOKENS_MAX = 1 << 17, HIDDEN_MAX = 1 << 15, FFN_MAX = 1 << 17, HEADS_MAX = 1 << 10, BATCH_MAX = 1 << 10 };
enum { MAX_ELEMENTS = 1 << 29 /* of a tensor */ };
enum { GPU_SIZE_MULTIPLE = 8 };

const char *const rl_layer_variant_names[] = {"baseline", "graph", "fused", "streams", "tuned", "best", NULL};
const char *const rl_layer_dtype_names[] = {"fp16", "bf16", NULL};

int rl_layer_element_dtype(const rl_layer_params *params) {
  static const int dtypes[] = {RL_DTYPE_FP16, RL_DTYPE_BF16};
  return dtypes[params->dtype];
}

const rl_field rl_layer_fields[] = {
    RL_FIELD(rl_layer_params, dtype, RL_FIELD_CHOICE, .names = rl_layer_dtype_names,
             .summary = "type of weights and activations; default fp16. The CPU computes in fp32 with weights of this type"),
    RL_FIELD(rl_layer_params, variant, RL_FIELD_CHOICE, .names = rl_layer_variant_names,
             .summary = "implementation of the layer; default best"),
    RL_FIELD(rl_layer_params, batch, RL_FIELD_INT, .minimum = 1, .maximum = BATCH_MAX,
             .summary = "number of sequences; default 1"),
    RL_FIELD(rl_layer_params, tokens, RL_FIELD_INT, .minimum = 1, .maximum = TOKENS_MAX,
             .summary = "number of new tokens per sequence; 1: decode; default 2048"),
    RL_FIELD(rl_layer_params, cached_tokens, RL_FIELD_INT, .minimum = 0, .maximum = TOKENS_MAX,
             .summary = "number of tokens per sequence in the KV cache; default 0: prefill"),
    RL_FIELD(rl_layer_params, hidden, RL_FIELD_INT, .minimum = 2, .maximum = HIDDEN_MAX,
             .summary = "number of elements of a token; default 4096"),
    RL_FIELD(rl_layer_params, heads, RL_FIELD_INT, .minimum = 1, .maximum = HEADS_MAX,
             .summary = "number of attention heads; each has hidden / heads elements; default 32"),
    RL_FIELD(rl_layer_params, ffn, RL_FIELD_INT, .minimum = 1, .maximum = FFN_MAX,
             .summary = "number of outputs of the gate projection, and of the up projection; default 11008"),
    RL_FIELD(rl_layer_params, causal, RL_FIELD_BOOL,
             .summary = "whether a token attends only to itself and to the tokens before it; default true"),
    RL_FIELD(rl_layer_params, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
             .summary = "number of samples with a cold cache, and of samples with a warm cache; default 20"),
    RL_PAUSE_FIELD(rl_layer_params),
    RL_FIELD(rl_layer_params, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of weights and inputs; default 1"),
    {0}};

static const rl_multi_value_parameter variants = {.field = "variant",
                                                  .request_key = "variants",
                                                  .summary = "one run for each; default: every variant that the device has",
                                                  .default_value_mask = (1u << RL_LAYER_VARIANT_COUNT) - 1,
                                                  .default_skips_unsupported_values = true};

static void defaults(void *params) {
  memset(params, 0, sizeof(rl_layer_params)); /* padding too: parameters are compared as bytes */
  rl_layer_params *layer = params;
  layer->variant = RL_LAYER_BEST;
  layer->batch = 1;
  layer->tokens = 2048;
  layer->hidden = 4096;
  layer->heads = 32;
  layer->ffn = 11008;
  layer->causal = 1;
  layer->samples = 20;
  layer->seed = 1;
}

/* --- what devices support ---------------------------------------------------------------------------------------------- */

static bool is_too_large(double elements) { return elements > MAX_ELEMENTS; }

int rl_layer_check_sizes(const rl_layer_params *p, rl_error *err) {
  const double batch = (double)p->batch, hidden = (double)p->hidden, context = (double)rl_layer_context(p);
  if (p->hidden % p->heads != 0) return rl_fail_at(err, "/heads", "heads must divide hidden (%lld)", (long long)p->hidden);
  if (p->hidden / p->heads % 2 != 0) return rl_fail_at(err, "/heads", "hidden / heads must be even: rope rotates pairs");
  if (is_too_large(batch * context * 3 * hidden))
    return rl_fail_at(err, "/tokens", "batch · (cached_tokens + tokens) · 3 · hidden may be at most %d", MAX_ELEMENTS);
  if (is_too_large(2 * (double)p->ffn * hidden) || is_too_large(2 * batch * (double)p->tokens * (double)p->ffn))
    return rl_fail_at(err, "/ffn", "2 · ffn · hidden and 2 · ffn · batch · tokens may be at most %d", MAX_ELEMENTS);
  if (is_too_large(3 * hidden * hidden)) return rl_fail_at(err, "/hidden", "3 · hidden² may be at most %d", MAX_ELEMENTS);
  return 0;
}

static int cpu_supports(const void *params, rl_error *err) {
  const rl_layer_params *p = params;
  if (rl_layer_check_sizes(p, err) < 0) return -1;
  if (RL_LAYER_CPU_VARIANTS & 1 << p->variant) return 0;
  return rl_fail_at(err, "/variant",
                    "variant %s of the layer exists only on GPUs: on the CPU its code would equal the code of another variant",
                    rl_layer_variant_names[p->variant]);
}

static int cuda_supports(const void *params, rl_error *err) {
  const rl_layer_params *p = params;
  if (rl_layer_check_sizes(p, err) < 0) return -1;
  const int64_t head_size = rl_layer_head_size(p);
  if (head_size % GPU_SIZE_MULTIPLE != 0 || head_size > RL_LAYER_GPU_HEAD_SIZE_MAX)
    return rl_fail_at(err, "/heads",
                      "on a GPU, hidden / heads must be a multiple of %d and at most %d, because cuDNN computes the attention",
                      GPU_SIZE_MULTIPLE, RL_LAYER_GPU_HEAD_SIZE_MAX);
  if (p->ffn % GPU_SIZE_MULTIPLE != 0)
    return rl_fail_at(err, "/ffn", "on a GPU, ffn must be a multiple of %d", GPU_SIZE_MULTIPLE);
  if (p->tokens > 1 && p->cached_tokens > 0)
    return rl_fail_at(err, "/cached_tokens", "on a GPU, cached_tokens may be more than 0 only if tokens is 1 (decode)");
  return 0;
}

const rl_engine_description rl_layer_cpu_description = {.name = "cpu",
                                                        .workload = "transformer_layer",
                                                        .device = RL_DEVICE_CPU,
                                                        .summary = "OpenBLAS and loops on all threads, in fp32",
                                                        .supports = cpu_supports};
const rl_engine_description rl_layer_cuda_description = {.name = "cuda",
                                                         .workload = "transformer_layer",
                                                         .device = RL_DEVICE_CUDA,
                                                         .summary = "cuBLASLt, cuDNN and hand-written kernels",
                                                         .supports = cuda_supports};
static const rl_engine_description *const engines[] = {&rl_layer_cuda_description, &rl_layer_cpu_description, NULL};

/* --- cost -------------------------------------------------------------------------------------------------------------- */

static double weight_elements(const rl_layer_params *p) {
  const double hidden = (double)p->hidden;
  return 4 * hidden * hidden + 3 * hidden * (double)p->ffn;
}

double rl_layer_product_operations(const rl_layer_params *p) { return 2 * (double)rl_layer_rows(p) * weight_elements(p); }

/* Counts two dot products of a head (scores, and weighted values) for each pair of a query and a key to which it attends. */
static double attention_operations(const rl_layer_params *p) {
  const double tokens = (double)p->tokens, context = (double)rl_layer_context(p);
  const double pairs = p->causal ? tokens * (double)p->cached_tokens + tokens * (tokens + 1) / 2 : tokens * context;
  return 4 * (double)p->batch * pairs * (double)p->hidden;
}

/* Counts the operations of the matrix products, which tensor cores execute. Counts the bytes of weights, norms, x and cached k
 * and v, which must be read once, and those of y and of the new k and v, which must be written once. All other data can stay on
 * the chip. */
static rl_cost cost(const void *params, uint64_t images) {
  (void)images;
  const rl_layer_params *p = params;
  const double hidden = (double)p->hidden, rows = (double)rl_layer_rows(p),
               size = (double)rl_dtype_size(rl_layer_element_dtype(p));
  const double written = 3 * rows * hidden, cached = 2 * (double)p->batch * (double)p->cached_tokens * hidden;
  return (rl_cost){.bytes = size * (weight_elements(p) + 4 * hidden + rows * hidden + cached + written),
                   .operations = rl_layer_product_operations(p) + attention_operations(p),
                   .written_bytes = size * written,
                   .precision = rl_layer_dtype_names[p->dtype]};
}

static void iteration_counts(const void *params, uint32_t *warmup, uint32_t *measured) {
  *warmup = 0; /* each sample sets its cache state itself */
  *measured = (uint32_t)((const rl_layer_params *)params)->samples;
}

const rl_workload rl_transformer_layer = {
    .name = "transformer_layer",
    .job_kind = "layer",
    .summary = "a decoder layer of a transformer: norms, attention with rope, and a gated feed-forward network",
    .fields = rl_layer_fields,
    .params_size = sizeof(rl_layer_params),
    .defaults = defaults,
    .cost = cost,
    .iteration_counts = iteration_counts,
    .timing_mode = RL_TIMING_LAUNCHES,
    .engines = engines,
    .multi_value_parameter = &variants,
    .launch_data = rl_layer_launch_data};
