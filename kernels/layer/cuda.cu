/* The engine "cuda" of the layer. cuBLASLt computes products, cuDNN computes attention, and our kernels (elementwise.h,
 * hopper/product.h) the other operations. For one row, row_product.h and decode_attention.h can compute the whole layer.
 * variants[] has the properties of each variant. */
#include <cstdlib>
#include <errno.h>
#include <math.h>

#include "cuda_check.h"
#include "hopper/product.h"
#include "kernel/dtype.h"
#include "layer/decode_attention.h"
#include "layer/elementwise.h"
#include "layer/engines.h"
#include "layer/instance.h"
#include "layer/row_product.h"
#include "library/attention.h"
#include "library/gemm.h"
#include "library/tune.h"

enum { WORKSPACE_BYTES = 64 << 20, MAX_SEARCHED_ALGORITHMS = 32, MAX_SEARCHED_PLANS = 10, MEASUREMENTS_MAX = 10 };

/* Properties of a variant. */
typedef struct variant_properties {
  bool joins_products;      /* q, k and v are one product, gate and up are one product, and products add the residual */
  bool uses_two_streams;    /* gate and up are two products on two streams */
  bool searches_algorithms; /* takes the fastest of several algorithms of each library, by timing them */
  bool uses_our_kernels;    /* uses hopper/product.h and, for one row, our kernels for one row, where they are faster */
} variant_properties;
static const variant_properties variants[RL_LAYER_VARIANT_COUNT] = {{false, false, false, false}, /* baseline */
                                                                    {false, false, false, false}, /* graph */
                                                                    {true, false, false, false},  /* fused */
                                                                    {true, true, false, false},   /* streams */
                                                                    {true, false, true, false},   /* tuned */
                                                                    {true, false, true, true}};   /* best */

typedef enum layer_product { Q, K, V, QKV, O, GATE, UP, GATE_UP, DOWN, PRODUCT_COUNT } layer_product;

/* State of the engine, stored in rl_layer_instance.engine_state. */
typedef struct cuda_layer {
  rl_device *device;
  cublasLtHandle_t cublas;
  cudnnHandle_t cudnn;
  rl_gemm *products[PRODUCT_COUNT];               /* NULL: the variant does not use this product */
  rl_hopper_product *our_products[PRODUCT_COUNT]; /* for QKV, O, GATE_UP and DOWN only; NULL: cuBLASLt computes the product */
  rl_dnn *attention;
  void *workspaces[2]; /* of the products; the second one is for UP on the side stream */
  void *attention_workspace;
  void *normed;    /* [rows][hidden] */
  void *projected; /* [rows][hidden]: result of a product before the residual is added */
  void *gate_up;   /* [rows][2 · ffn]; with two products: gate [rows][ffn], then up [rows][ffn] */
  void *rotations; /* float [context][head_size], filled by rl_layer_fill_rotations */
  void *next_row_counter;
  cudaStream_t side_stream;
  cudaEvent_t forked; /* recorded on the main stream before the work of the side stream */
  cudaEvent_t joined; /* recorded on the side stream after its work */
  bool has_clusters;
  int multiprocessors;
  rl_open_measurement measurements[MEASUREMENTS_MAX];
} cuda_layer;

static void close_state(void *engine_state) {
  cuda_layer *state = (cuda_layer *)engine_state;
  rl_device *device = state->device;
  for (int i = 0; i < PRODUCT_COUNT; i++) {
    rl_gemm_close(state->products[i]);
    rl_hopper_product_close(state->our_products[i]);
  }
  rl_dnn_close(state->attention);
  if (state->cublas) cublasLtDestroy(state->cublas);
  if (state->cudnn) cudnnDestroy(state->cudnn);
  if (state->side_stream) cudaStreamDestroy(state->side_stream);
  if (state->forked) cudaEventDestroy(state->forked);
  if (state->joined) cudaEventDestroy(state->joined);
  void *const memory[] = {state->workspaces[0], state->workspaces[1], state->attention_workspace, state->normed,
                          state->projected,     state->gate_up,       state->rotations,           state->next_row_counter};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device->ops->release(device, memory[i]);
  free(state);
}

static const char attention_part[] = "attention", feed_forward_part[] = "feed_forward"; /* NVTX ranges */

static cuda_layer *state_of(const rl_layer_instance *self) { return (cuda_layer *)self->engine_state; }
static const variant_properties *properties_of(const rl_layer_instance *self) { return &variants[self->params.variant]; }

/* Returns the address of an element of a tensor; types have 2 bytes. */
static char *element_address(const void *tensor, int64_t element) { return (char *)tensor + element * 2; }
/* Returns the address of q of the first new token. */
static char *new_qkv(const rl_layer_instance *self) {
  return element_address(self->stages[RL_LAYER_QKV], self->params.cached_tokens * 3 * self->params.hidden);
}
/* Returns the distance between the new tokens' rows of qkv, in elements. With several new tokens no token is cached, so the rows
 * are adjacent. With one new token, its rows in two sequences are `context` rows apart. */
static int64_t qkv_stride(const rl_layer_params *p) { return (p->tokens == 1 ? rl_layer_context(p) : 1) * 3 * p->hidden; }

/* --- launches ---------------------------------------------------------------------------------------------------------- */

static int normalize(const rl_layer_instance *self, const void *x, int weight, rl_stream stream, rl_error *err) {
  const cuda_layer *state = state_of(self);
  const rl_layer_norm norm = {x,
                              self->inputs[weight],
                              self->inputs[weight + 1],
                              state->normed,
                              rl_layer_rows(&self->params),
                              self->params.hidden,
                              (uint32_t *)state->next_row_counter,
                              state->has_clusters};
  return rl_layer_norm_launch(self->stored_dtype, &norm, (cudaStream_t)stream, err);
}

static int enqueue_norm1(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  return normalize(self, self->inputs[RL_LAYER_X], RL_LAYER_NORM1_WEIGHT, stream, err);
}

static int enqueue_norm2(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  return normalize(self, self->stages[RL_LAYER_HIDDEN], RL_LAYER_NORM2_WEIGHT, stream, err);
}

template <layer_product PRODUCT> static int enqueue_product(void *arg, rl_stream stream, rl_error *err) {
  return rl_gemm_enqueue(state_of((const rl_layer_instance *)arg)->products[PRODUCT], stream, err);
}

template <layer_product PRODUCT> static int enqueue_our_product(void *arg, rl_stream stream, rl_error *err) {
  return rl_hopper_product_enqueue(state_of((const rl_layer_instance *)arg)->our_products[PRODUCT], stream, err);
}

static int enqueue_rope(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  const rl_layer_params *p = &self->params;
  const rl_layer_rope rope = {new_qkv(self),
                              p->batch,
                              p->tokens,
                              p->cached_tokens,
                              rl_layer_context(p),
                              p->hidden,
                              rl_layer_head_size(p),
                              (const float2 *)state_of(self)->rotations};
  return rl_layer_rope_launch(self->stored_dtype, &rope, (cudaStream_t)stream, err);
}

static int enqueue_attention(void *arg, rl_stream stream, rl_error *err) {
  return rl_dnn_enqueue(state_of((const rl_layer_instance *)arg)->attention, stream, err);
}

static int add_residual(const rl_layer_instance *self, const void *x, void *y, rl_stream stream, rl_error *err) {
  return rl_layer_add_launch(self->stored_dtype, x, state_of(self)->projected, y,
                             rl_layer_rows(&self->params) * self->params.hidden, (cudaStream_t)stream, err);
}

static int enqueue_residual1(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  return add_residual(self, self->inputs[RL_LAYER_X], self->stages[RL_LAYER_HIDDEN], stream, err);
}

static int enqueue_residual2(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  return add_residual(self, self->stages[RL_LAYER_HIDDEN], self->stages[RL_LAYER_OUTPUT], stream, err);
}

/* Returns the distance from gate to up of a row, in elements. */
static int64_t up_offset(const rl_layer_instance *self) {
  const bool is_joined = state_of(self)->products[GATE_UP] != NULL;
  return is_joined ? self->params.ffn : rl_layer_rows(&self->params) * self->params.ffn;
}

static int enqueue_silu_mul(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  const cuda_layer *state = state_of(self);
  const rl_layer_gate gate = {state->gate_up,
                              element_address(state->gate_up, up_offset(self)),
                              (state->products[GATE_UP] ? 2 : 1) * self->params.ffn,
                              self->stages[RL_LAYER_GATED],
                              rl_layer_rows(&self->params),
                              self->params.ffn};
  return rl_layer_gate_launch(self->stored_dtype, &gate, (cudaStream_t)stream, err);
}

/* Computes gate on the main stream and up on the side stream. The side stream waits for the earlier work of the main stream; then
 * the main stream waits for the side stream. */
static int enqueue_gate_beside_up(void *arg, rl_stream stream, rl_error *err) {
  cuda_layer *state = state_of((const rl_layer_instance *)arg);
  cudaStream_t main = (cudaStream_t)stream, side = state->side_stream;
  return rl_cuda_check(cudaEventRecord(state->forked, main), "forking", err) < 0 ||
                 rl_cuda_check(cudaStreamWaitEvent(side, state->forked, 0), "forking", err) < 0 ||
                 rl_gemm_enqueue(state->products[GATE], stream, err) < 0 ||
                 rl_gemm_enqueue(state->products[UP], (rl_stream)side, err) < 0 ||
                 rl_cuda_check(cudaEventRecord(state->joined, side), "joining", err) < 0 ||
                 rl_cuda_check(cudaStreamWaitEvent(main, state->joined, 0), "joining", err) < 0
             ? -1
             : 0;
}

/* Each of the next two functions launches a product of cuBLASLt and the kernel after it. choose_our_products compares their time
 * with the time of our product, whose epilogue does the work of the second kernel. */
static int enqueue_qkv_then_rope(void *arg, rl_stream stream, rl_error *err) {
  return enqueue_product<QKV>(arg, stream, err) < 0 ? -1 : enqueue_rope(arg, stream, err);
}
static int enqueue_gate_up_then_silu_mul(void *arg, rl_stream stream, rl_error *err) {
  return enqueue_product<GATE_UP>(arg, stream, err) < 0 ? -1 : enqueue_silu_mul(arg, stream, err);
}

/* --- opening: products -------------------------------------------------------------------------------------------------- */

static cudaDataType_t cuda_type(const rl_layer_instance *self) {
  return self->stored_dtype == RL_DTYPE_FP16 ? CUDA_R_16F : CUDA_R_16BF;
}

/* The product out[rows][outputs] = x[rows][inputs] · weight[outputs][inputs]ᵀ + addend. Matrices are row-major; cuBLASLt, which
 * is column-major, computes outᵀ = weight · xᵀ. */
typedef struct projection {
  const void *x, *weight;
  void *out;
  int64_t outputs, inputs, out_stride;
  const void *addend;
} projection;

static int open_product(rl_layer_instance *self, layer_product product, projection p, rl_error *err) {
  cuda_layer *state = state_of(self);
  rl_gemm_shape shape = {};
  shape.m = p.outputs, shape.n = rl_layer_rows(&self->params), shape.k = p.inputs;
  shape.transpose_a = true;
  shape.lda = shape.ldb = p.inputs, shape.ldd = p.out_stride;
  shape.batch_count = 1;
  shape.input = shape.output = cuda_type(self);
  shape.exact_split_k = true;
  shape.addend = p.addend;
  /* Two products that run at the same time need two workspaces. */
  void *workspace = state->workspaces[properties_of(self)->uses_two_streams && product == UP];
  return rl_gemm_open(state->cublas, &shape, p.weight, p.x, p.out, workspace, WORKSPACE_BYTES,
                      properties_of(self)->searches_algorithms ? MAX_SEARCHED_ALGORITHMS : 1, self->base.device->stream,
                      &state->products[product], err);
}

static int open_qkv_products(rl_layer_instance *self, rl_error *err) {
  const int64_t hidden = self->params.hidden, stride = qkv_stride(&self->params);
  const void *normed = state_of(self)->normed, *weight = self->inputs[RL_LAYER_QKV_WEIGHT];
  char *out = new_qkv(self);
  if (properties_of(self)->joins_products)
    return open_product(self, QKV, {normed, weight, out, 3 * hidden, hidden, stride, NULL}, err);
  for (int i = 0; i < 3; i++)
    if (open_product(self, (layer_product)(Q + i),
                     {normed, element_address(weight, i * hidden * hidden), element_address(out, i * hidden), hidden, hidden,
                      stride, NULL},
                     err) < 0)
      return -1;
  return 0;
}

static int open_gate_products(rl_layer_instance *self, rl_error *err) {
  const int64_t hidden = self->params.hidden, ffn = self->params.ffn, rows = rl_layer_rows(&self->params);
  cuda_layer *state = state_of(self);
  const void *weight = self->inputs[RL_LAYER_GATE_UP_WEIGHT];
  if (properties_of(self)->joins_products && !properties_of(self)->uses_two_streams)
    return open_product(self, GATE_UP, {state->normed, weight, state->gate_up, 2 * ffn, hidden, 2 * ffn, NULL}, err);
  return open_product(self, GATE, {state->normed, weight, state->gate_up, ffn, hidden, ffn, NULL}, err) < 0
             ? -1
             : open_product(self, UP,
                            {state->normed, element_address(weight, ffn * hidden), element_address(state->gate_up, rows * ffn),
                             ffn, hidden, ffn, NULL},
                            err);
}

/* Opens the products O and DOWN, whose results are added to a residual. */
static int open_residual_products(rl_layer_instance *self, rl_error *err) {
  const int64_t hidden = self->params.hidden, ffn = self->params.ffn;
  const bool joins = properties_of(self)->joins_products;
  void *const *stages = self->stages, *projected = state_of(self)->projected;
  return open_product(self, O,
                      {stages[RL_LAYER_ATTENTION], self->inputs[RL_LAYER_O_WEIGHT], joins ? stages[RL_LAYER_HIDDEN] : projected,
                       hidden, hidden, hidden, joins ? self->inputs[RL_LAYER_X] : NULL},
                      err) < 0
             ? -1
             : open_product(
                   self, DOWN,
                   {stages[RL_LAYER_GATED], self->inputs[RL_LAYER_DOWN_WEIGHT], joins ? stages[RL_LAYER_OUTPUT] : projected,
                    hidden, ffn, hidden, joins ? stages[RL_LAYER_HIDDEN] : NULL},
                   err);
}

/* --- opening: our products ------------------------------------------------------------------------------------------------ */

static rl_hopper_shape our_shape(const rl_layer_instance *self, layer_product product) {
  const rl_layer_params *p = &self->params;
  const cuda_layer *state = state_of(self);
  void *const *stages = self->stages;
  rl_hopper_shape shape = {};
  shape.dtype = self->stored_dtype;
  shape.rows = rl_layer_rows(p);
  shape.columns = shape.out_stride = product == GATE_UP ? p->ffn : p->hidden;
  shape.inputs = product == DOWN ? p->ffn : p->hidden;
  shape.epilogue = product == QKV ? RL_HOPPER_ROPE : product == GATE_UP ? RL_HOPPER_GATE : RL_HOPPER_ADD;
  shape.x = product == O ? stages[RL_LAYER_ATTENTION] : product == DOWN ? stages[RL_LAYER_GATED] : state->normed;
  switch (product) {
    case QKV:
      shape.weight = self->inputs[RL_LAYER_QKV_WEIGHT];
      shape.out = new_qkv(self);
      shape.columns = 3 * p->hidden;
      shape.out_stride = qkv_stride(p);
      shape.rotations = (const float *)state->rotations;
      shape.head_size = rl_layer_head_size(p);
      shape.rotated_columns = 2 * p->hidden;
      shape.tokens = p->tokens;
      shape.first_position = p->cached_tokens;
      return shape;
    case GATE_UP:
      shape.weight = self->inputs[RL_LAYER_GATE_UP_WEIGHT];
      shape.up_weight = element_address(shape.weight, p->ffn * p->hidden);
      shape.out = stages[RL_LAYER_GATED];
      return shape;
    default:
      shape.weight = self->inputs[product == O ? RL_LAYER_O_WEIGHT : RL_LAYER_DOWN_WEIGHT];
      shape.out = stages[product == O ? RL_LAYER_HIDDEN : RL_LAYER_OUTPUT];
      shape.addend = product == O ? self->inputs[RL_LAYER_X] : stages[RL_LAYER_HIDDEN];
      return shape;
  }
}

typedef int enqueue_function(void *arg, rl_stream stream, rl_error *err);

/* A part of the step for which the engine chooses between the library's launches and our kernels. */
typedef struct kernel_choice {
  layer_product product;                                    /* PRODUCT_COUNT: the whole step */
  const char *name, *library_measurement, *our_measurement; /* names of the part and of the two times (rl_open_measurement) */
  enqueue_function *library, *ours;
} kernel_choice;
static const kernel_choice kernel_choices[] = {
    {QKV, "qkv", "library_qkv_rope_us", "our_qkv_rope_us", enqueue_qkv_then_rope, enqueue_our_product<QKV>},
    {O, "o", "library_o_residual_us", "our_o_residual_us", enqueue_product<O>, enqueue_our_product<O>},
    {GATE_UP, "gate_up", "library_gate_up_silu_us", "our_gate_up_silu_us", enqueue_gate_up_then_silu_mul,
     enqueue_our_product<GATE_UP>},
    {DOWN, "down", "library_down_residual_us", "our_down_residual_us", enqueue_product<DOWN>, enqueue_our_product<DOWN>}};

/* Adds measurements of both times, which were taken with a warm cache. The times are NAN if the choice came from the tuning
 * cache. */
static void add_time_measurements(rl_layer_instance *self, const kernel_choice *choice, double library_us, double our_us) {
  static const char reason[] = "the choice was taken from the tuning cache";
  rl_open_measurement *next = state_of(self)->measurements + self->base.open_measurement_count;
  next[0] = {choice->library_measurement, library_us, reason};
  next[1] = {choice->our_measurement, our_us, reason};
  self->base.open_measurements = state_of(self)->measurements;
  self->base.open_measurement_count += 2;
}

/* Sets *is_faster to the choice in the tuning cache. If there is none, measures whether our kernel takes less time. */
static int compare_with_library(rl_layer_instance *self, const kernel_choice *choice, bool *is_faster, rl_error *err) {
  const rl_layer_params *p = &self->params;
  double library_us = NAN, our_us = NAN;
  char key[160];
  snprintf(key, sizeof key, "layer %s %lld %lld %lld %lld %lld %d", choice->name, (long long)rl_layer_rows(p),
           (long long)p->hidden, (long long)p->heads, (long long)p->ffn, (long long)rl_layer_context(p), self->stored_dtype);
  const int64_t cached = rl_tuning_cache_find(key);
  *is_faster = cached == 1;
  if (cached >= 0) {
    add_time_measurements(self, choice, NAN, NAN);
    return 0;
  }
  if (rl_tune_measure_us(choice->library, self, self->base.device->stream, &library_us, err) < 0 ||
      rl_tune_measure_us(choice->ours, self, self->base.device->stream, &our_us, err) < 0)
    return -1;
  *is_faster = our_us < library_us;
  rl_tuning_cache_add(key, *is_faster);
  add_time_measurements(self, choice, library_us, our_us);
  return 0;
}

/* Opens our kernel for each product where it is faster than the library's. */
static int choose_our_products(rl_layer_instance *self, rl_error *err) {
  cuda_layer *state = state_of(self);
  for (const kernel_choice *choice = kernel_choices; choice < kernel_choices + sizeof kernel_choices / sizeof *kernel_choices;
       choice++) {
    const rl_hopper_shape shape = our_shape(self, choice->product);
    rl_hopper_product **ours = &state->our_products[choice->product];
    bool is_faster;
    if (!rl_hopper_product_supports(self->base.device, &shape)) continue;
    if (rl_hopper_product_open(&shape, ours, err) < 0 || compare_with_library(self, choice, &is_faster, err) < 0) return -1;
    if (is_faster) continue;
    rl_hopper_product_close(*ours);
    *ours = NULL;
  }
  return 0;
}

/* --- opening: our kernels for one row ------------------------------------------------------------------------------------- */

static rl_row_product row_product(const rl_layer_instance *self, layer_product product) {
  const rl_layer_params *p = &self->params;
  const rl_hopper_shape shape = our_shape(self, product);
  rl_row_product row = {};
  row.dtype = shape.dtype;
  row.epilogue = shape.epilogue;
  row.columns = shape.columns;
  row.inputs = shape.inputs;
  row.x = product == QKV ? self->inputs[RL_LAYER_X] : product == GATE_UP ? self->stages[RL_LAYER_HIDDEN] : shape.x;
  row.weight = shape.weight;
  row.up_weight = shape.up_weight;
  row.norm_weight = self->inputs[product == QKV ? RL_LAYER_NORM1_WEIGHT : RL_LAYER_NORM2_WEIGHT];
  row.norm_bias = self->inputs[product == QKV ? RL_LAYER_NORM1_BIAS : RL_LAYER_NORM2_BIAS];
  row.addend = shape.addend;
  row.out = shape.out;
  if (product == QKV) row.rotations = shape.rotations + p->cached_tokens * shape.head_size;
  row.head_size = shape.head_size;
  row.rotated_columns = shape.rotated_columns;
  row.multiprocessors = state_of(self)->multiprocessors;
  return row;
}

template <layer_product PRODUCT> static int enqueue_row_product(void *arg, rl_stream stream, rl_error *err) {
  const rl_row_product product = row_product((const rl_layer_instance *)arg, PRODUCT);
  return rl_row_product_launch(&product, (cudaStream_t)stream, err);
}

static int enqueue_row_attention(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  const rl_layer_params *p = &self->params;
  const rl_decode_attention attention = {
      self->stored_dtype,    self->stages[RL_LAYER_QKV], self->stages[RL_LAYER_ATTENTION], p->heads,
      rl_layer_head_size(p), rl_layer_context(p),        state_of(self)->multiprocessors};
  return rl_decode_attention_launch(&attention, (cudaStream_t)stream, err);
}

static const struct {
  const char *name, *part;
  enqueue_function *enqueue;
} row_launches[] = {{"norm1_qkv_rope", attention_part, enqueue_row_product<QKV>},
                    {"attention", attention_part, enqueue_row_attention},
                    {"o_residual", attention_part, enqueue_row_product<O>},
                    {"norm2_gate_up_silu", feed_forward_part, enqueue_row_product<GATE_UP>},
                    {"down_residual", feed_forward_part, enqueue_row_product<DOWN>}};

static int enqueue_row_launches(void *arg, rl_stream stream, rl_error *err) {
  for (const auto &launch : row_launches)
    if (launch.enqueue(arg, stream, err) < 0) return -1;
  return 0;
}

/* Enqueues the launches of the step. */
static int enqueue_step(void *arg, rl_stream stream, rl_error *err) {
  const rl_layer_instance *self = (const rl_layer_instance *)arg;
  for (size_t i = 0; i < self->step.launch_count; i++)
    if (self->launches[i].enqueue(arg, stream, err) < 0) return -1;
  return 0;
}

/* Uses our kernels for one row if the layer has one row and they are faster than the step's launches. */
static int choose_row_launches(rl_layer_instance *self, rl_error *err) {
  static const kernel_choice whole_step = {PRODUCT_COUNT, "row",        "library_row_us",
                                           "our_row_us",  enqueue_step, enqueue_row_launches};
  const rl_layer_params *p = &self->params;
  bool is_faster;
  if (rl_layer_rows(p) != 1 || !state_of(self)->has_clusters || !rl_row_product_supports(RL_HOPPER_GATE, p->hidden) ||
      !rl_row_product_supports(RL_HOPPER_ADD, p->ffn))
    return 0;
  if (compare_with_library(self, &whole_step, &is_faster, err) < 0) return -1;
  if (!is_faster) return 0;
  self->base.deterministic_note = NULL; /* the note is about cuDNN's attention, which is not launched */
  self->step.launch_count = 0;
  for (const auto &launch : row_launches) rl_layer_add_launch(self, launch.name, launch.part, launch.enqueue);
  return 0;
}

/* --- opening: attention, memory and handles ------------------------------------------------------------------------------- */

static int open_attention(rl_layer_instance *self, rl_error *err) {
  const rl_layer_params *p = &self->params;
  cuda_layer *state = state_of(self);
  const int64_t hidden = p->hidden, head_size = rl_layer_head_size(p), context = rl_layer_context(p);
  const rl_attention_strides of_qkv = {context * 3 * hidden, head_size, 3 * hidden};
  rl_attention_shape shape = {p->batch, p->heads, p->heads, p->tokens, context, head_size};
  shape.causal = p->causal && p->tokens > 1; /* one new token attends to all tokens */
  shape.type = self->stored_dtype == RL_DTYPE_FP16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  shape.q = shape.kv = of_qkv;
  shape.o = {p->tokens * hidden, head_size, hidden};
  void *qkv = self->stages[RL_LAYER_QKV];
  const rl_dnn_search search = {WORKSPACE_BYTES, properties_of(self)->searches_algorithms ? MAX_SEARCHED_PLANS : 1};
  if (rl_attention_open(state->cudnn, &shape, new_qkv(self), element_address(qkv, hidden), element_address(qkv, 2 * hidden),
                        self->stages[RL_LAYER_ATTENTION], &search, self->base.device->stream, &state->attention, err) < 0)
    return -1;
  const rl_dnn_choice *chosen = rl_dnn_read_choice(state->attention);
  if (!chosen->deterministic)
    self->base.deterministic_note = "cuDNN's attention engine adds in an order that varies between runs";
  if (chosen->workspace_bytes > 0 && state->device->ops->allocate(state->device, RL_MEMORY_WORKSPACE, chosen->workspace_bytes,
                                                                  &state->attention_workspace, err) < 0)
    return -1;
  return rl_dnn_set_workspace(state->attention, state->attention_workspace, err);
}

static int upload_rotations(rl_layer_instance *self, rl_error *err) {
  const rl_layer_params *p = &self->params;
  cuda_layer *state = state_of(self);
  const size_t bytes = (size_t)(rl_layer_context(p) * rl_layer_head_size(p)) * sizeof(float);
  float *rotations = (float *)malloc(bytes);
  if (!rotations) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a table of angles");
  int rc = rl_layer_fill_rotations(self, rotations, err);
  if (rc == 0) rc = state->device->ops->allocate(state->device, RL_MEMORY_WORKSPACE, bytes, &state->rotations, err);
  if (rc == 0) rc = state->device->ops->upload(state->device, state->rotations, rotations, bytes, err);
  free(rotations);
  return rc;
}

static int allocate_state(rl_layer_instance *self, rl_error *err) {
  cuda_layer *state = state_of(self);
  rl_device *device = state->device;
  const rl_layer_params *p = &self->params;
  const size_t row_bytes = (size_t)rl_layer_rows(p) * 2;
  const struct {
    void **memory;
    rl_memory_purpose purpose;
    size_t bytes;
  } buffers[] = {
      {&state->workspaces[0], RL_MEMORY_WORKSPACE, WORKSPACE_BYTES},
      {&state->workspaces[1], RL_MEMORY_WORKSPACE, (size_t)(properties_of(self)->uses_two_streams ? WORKSPACE_BYTES : 0)},
      {&state->normed, RL_MEMORY_ACTIVATIONS, row_bytes * (size_t)p->hidden},
      {&state->projected, RL_MEMORY_ACTIVATIONS, properties_of(self)->joins_products ? 0 : row_bytes * (size_t)p->hidden},
      {&state->gate_up, RL_MEMORY_ACTIVATIONS, row_bytes * 2 * (size_t)p->ffn},
      {&state->next_row_counter, RL_MEMORY_WORKSPACE, sizeof(uint32_t)}};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    if (device->ops->allocate(device, buffers[i].purpose, buffers[i].bytes, buffers[i].memory, err) < 0) return -1;
  return device->ops->fill(device, state->next_row_counter, 0, sizeof(uint32_t), err);
}

static int open_handles(rl_layer_instance *self, rl_error *err) {
  cuda_layer *state = (cuda_layer *)calloc(1, sizeof *state);
  if (!state) return rl_fail_errno(err, "preparing a layer");
  self->engine_state = state;
  self->engine_close = close_state;
  state->device = self->base.device;
  int major = 0;
  if (rl_cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, state->device->index),
                    "reading the compute capability", err) < 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&state->multiprocessors, cudaDevAttrMultiProcessorCount, state->device->index),
                    "reading the number of multiprocessors", err) < 0)
    return -1;
  state->has_clusters = major >= 9;
  if (rl_tune_set_cache_key_prefix(state->device, err) < 0 ||
      rl_cublas_check(cublasLtCreate(&state->cublas), "starting cuBLASLt", err) < 0 ||
      rl_cudnn_check(cudnnCreate(&state->cudnn), "starting cuDNN", err) < 0)
    return -1;
  if (!properties_of(self)->uses_two_streams) return 0;
  return rl_cuda_check(cudaStreamCreateWithFlags(&state->side_stream, cudaStreamNonBlocking), "creating a stream", err) < 0 ||
                 rl_cuda_check(cudaEventCreateWithFlags(&state->forked, cudaEventDisableTiming), "creating an event", err) < 0 ||
                 rl_cuda_check(cudaEventCreateWithFlags(&state->joined, cudaEventDisableTiming), "creating an event", err) < 0
             ? -1
             : 0;
}

/* --- the step ---------------------------------------------------------------------------------------------------------- */

static void add_attention_launches(rl_layer_instance *self) {
  const cuda_layer *state = state_of(self);
  rl_layer_add_launch(self, "norm1", attention_part, enqueue_norm1);
  if (state->products[Q]) {
    rl_layer_add_launch(self, "q", attention_part, enqueue_product<Q>);
    rl_layer_add_launch(self, "k", attention_part, enqueue_product<K>);
    rl_layer_add_launch(self, "v", attention_part, enqueue_product<V>);
  } else if (!state->our_products[QKV]) rl_layer_add_launch(self, "qkv", attention_part, enqueue_product<QKV>);
  if (state->our_products[QKV]) rl_layer_add_launch(self, "qkv_rope", attention_part, enqueue_our_product<QKV>);
  else rl_layer_add_launch(self, "rope", attention_part, enqueue_rope);
  rl_layer_add_launch(self, "attention", attention_part, enqueue_attention);
  rl_layer_add_launch(self, properties_of(self)->joins_products ? "o_residual" : "o", attention_part,
                      state->our_products[O] ? enqueue_our_product<O> : enqueue_product<O>);
  if (!properties_of(self)->joins_products) rl_layer_add_launch(self, "residual1", attention_part, enqueue_residual1);
}

static void add_gate_launches(rl_layer_instance *self) {
  const cuda_layer *state = state_of(self);
  if (state->our_products[GATE_UP]) {
    rl_layer_add_launch(self, "gate_up_silu", feed_forward_part, enqueue_our_product<GATE_UP>);
    return;
  }
  if (properties_of(self)->uses_two_streams)
    rl_layer_add_launch(self, "gate_beside_up", feed_forward_part, enqueue_gate_beside_up);
  else if (properties_of(self)->joins_products) rl_layer_add_launch(self, "gate_up", feed_forward_part, enqueue_product<GATE_UP>);
  else {
    rl_layer_add_launch(self, "gate", feed_forward_part, enqueue_product<GATE>);
    rl_layer_add_launch(self, "up", feed_forward_part, enqueue_product<UP>);
  }
  rl_layer_add_launch(self, "silu_mul", feed_forward_part, enqueue_silu_mul);
}

static void add_feed_forward_launches(rl_layer_instance *self) {
  rl_layer_add_launch(self, "norm2", feed_forward_part, enqueue_norm2);
  add_gate_launches(self);
  rl_layer_add_launch(self, properties_of(self)->joins_products ? "down_residual" : "down", feed_forward_part,
                      state_of(self)->our_products[DOWN] ? enqueue_our_product<DOWN> : enqueue_product<DOWN>);
  if (!properties_of(self)->joins_products) rl_layer_add_launch(self, "residual2", feed_forward_part, enqueue_residual2);
}

static int open_layer(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  const rl_layer_params *p = (const rl_layer_params *)params;
  rl_layer_instance *self;
  if (rl_layer_open(device, p, rl_layer_element_dtype(p), &self, err) < 0) return -1;
  if (open_handles(self, err) < 0 || allocate_state(self, err) < 0 || upload_rotations(self, err) < 0 ||
      open_qkv_products(self, err) < 0 || open_gate_products(self, err) < 0 || open_residual_products(self, err) < 0 ||
      open_attention(self, err) < 0 || (properties_of(self)->uses_our_kernels && choose_our_products(self, err) < 0)) {
    self->base.ops->close(&self->base);
    return -1;
  }
  add_attention_launches(self);
  add_feed_forward_launches(self);
  if (properties_of(self)->uses_our_kernels && choose_row_launches(self, err) < 0) {
    self->base.ops->close(&self->base);
    return -1;
  }
  if (!self->base.deterministic_note && properties_of(self)->searches_algorithms)
    self->base.deterministic_note = rl_tuning_cache_nondeterminism_reason();
  self->base.deterministic = !self->base.deterministic_note;
  *instance = &self->base;
  return 0;
}

const rl_engine rl_layer_cuda = {&rl_layer_cuda_description, open_layer};
