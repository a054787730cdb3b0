/* The engine "cpu" of the layer: OpenBLAS and loops on all threads. Tensors are fp32; the values of weights and inputs are
 * rounded to the layer's type. There are two variants:
 *
 *   baseline  each operation reads its input from memory and writes its result to memory
 *   fused     q, k and v are one product. A thread adds the residual to a panel (some columns) of a product, or applies the gate
 *             to it, while the panel is in cache */
#include <cblas.h>
#include <errno.h>
#include <stdlib.h>

#include "kernel/dtype.h"
#include "kernel/norm.h"
#include "kernel/parallel.h"
#include "kernel/sums.h"
#include "layer/engines.h"
#include "layer/instance.h"

#define RL_LOOPS_HEADER "layer/loops/layer.h"
#include "kernel/float_and_double.h"

enum { MIN_PANEL = 16, MAX_PANEL = 512 }; /* bounds of the number of columns of a panel, which a thread computes per task */

RL_DEFINE_CLEANUP(free_floats, float *, free, NULL)

/* State of the engine, stored in rl_layer_instance.engine_state. */
typedef struct cpu_layer {
  rl_device *device;
  float *normed;    /* [rows][hidden] */
  float *projected; /* [rows][hidden]: result of a product before the residual is added */
  float *gate, *up; /* [rows][ffn] */
  float *rotations; /* [context][head_size], filled by rl_layer_fill_rotations */
} cpu_layer;

static void close_state(void *engine_state) {
  cpu_layer *state = engine_state;
  float *const memory[] = {state->normed, state->projected, state->gate, state->up, state->rotations};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) state->device->ops->release(state->device, memory[i]);
  free(state);
}

static const float *input_of(const rl_layer_instance *self, int input) { return self->inputs[input]; }
static float *stage_of(const rl_layer_instance *self, int stage) { return self->stages[stage]; }
static const cpu_layer *state_of(const rl_layer_instance *self) { return self->engine_state; }

static int run_over_rows(rl_layer_instance *self, rl_parallel_function *function, void *context, rl_error *err) {
  return rl_parallel_for(self->thread_pool, self->base.device, rl_layer_rows(&self->params), 1, function, context, err);
}

/* --- norms ------------------------------------------------------------------------------------------------------------- */

typedef struct norm {
  const float *x, *weight, *bias;
  float *y;
  int64_t columns;
} norm;

static int norm_rows(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const norm *task = context;
  (void)thread, (void)err;
  for (int64_t row = first; row < first + count; row++)
    norm_row_float(task->x + row * task->columns, task->weight, task->bias, task->columns, task->y + row * task->columns);
  return 0;
}

static int normalize(rl_layer_instance *self, const float *x, int weight, rl_error *err) {
  norm task = {x, input_of(self, weight), input_of(self, weight + 1), state_of(self)->normed, self->params.hidden};
  return run_over_rows(self, norm_rows, &task, err);
}

/* --- products ---------------------------------------------------------------------------------------------------------- */

/* A product out = x · weightᵀ. In the variant `fused` it also adds the residual or applies the gate. The rows of a sequence are
 * adjacent in `out`; the first row of sequence i is out + i · sequence_stride. */
typedef struct product {
  const rl_layer_instance *self;
  const float *x, *weight;
  float *out;
  int64_t outputs, inputs;
  int64_t out_stride, sequence_stride; /* elements between rows, and between sequences, of `out`; 0: no gaps */
  const float *residual;               /* [rows][outputs]; NULL: none */
  const float *up_weight;              /* out = silu(x · weightᵀ) · (x · up_weightᵀ); NULL: no gate */
} product;

static void multiply(const product *p, const float *x, int64_t rows, const float *weight, int64_t first, int64_t count,
                     float *out, int64_t out_stride) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)count, (int)p->inputs, 1, x, (int)p->inputs,
              weight + first * p->inputs, (int)p->inputs, 0, out, (int)out_stride);
}

static void add_residual(const product *p, int64_t first, int64_t count) {
  for (int64_t row = 0; row < rl_layer_rows(&p->self->params); row++)
    for (int64_t i = row * p->outputs + first; i < row * p->outputs + first + count; i++) p->out[i] += p->residual[i];
}

static int apply_gate(const product *p, int64_t first, int64_t count, rl_error *err) {
  const int64_t rows = rl_layer_rows(&p->self->params);
  RL_CLEANUP(free_floats) float *up = malloc((size_t)(rows * count) * sizeof *up);
  if (up == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a layer's product");
  multiply(p, p->x, rows, p->up_weight, first, count, up, count);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t i = 0; i < count; i++) {
      float *gate = p->out + row * p->out_stride + first + i;
      *gate = gated_float(*gate, up[row * count + i]);
    }
  return 0;
}

static int multiply_panel(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const product *p = context;
  const int64_t tokens = p->self->params.tokens;
  (void)thread;
  for (int64_t sequence = 0; sequence < p->self->params.batch; sequence++)
    multiply(p, p->x + sequence * tokens * p->inputs, tokens, p->weight, first, count,
             p->out + sequence * p->sequence_stride + first, p->out_stride);
  if (p->residual != NULL) add_residual(p, first, count);
  return p->up_weight != NULL ? apply_gate(p, first, count, err) : 0;
}

static int run_product(rl_layer_instance *self, product p, rl_error *err) {
  const int64_t threads = rl_thread_pool_thread_count(self->thread_pool), share = (p.outputs + threads - 1) / threads;
  const int64_t panel = share < MIN_PANEL ? MIN_PANEL : share > MAX_PANEL ? MAX_PANEL : share;
  p.self = self;
  if (p.out_stride == 0) p.out_stride = p.outputs;
  if (p.sequence_stride == 0) p.sequence_stride = self->params.tokens * p.out_stride;
  return rl_parallel_for(self->thread_pool, self->base.device, p.outputs, panel, multiply_panel, &p, err);
}

/* --- launches: attention ------------------------------------------------------------------------------------------------ */

static int enqueue_norm1(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return normalize(arg, input_of(arg, RL_LAYER_X), RL_LAYER_NORM1_WEIGHT, err);
}

/* Computes projections [first, first + count) of q, k and v (0, 1 and 2) into the rows of the new tokens. */
static int project_qkv(rl_layer_instance *self, int64_t first, int64_t count, rl_error *err) {
  const rl_layer_params *p = &self->params;
  const product projection = {.x = state_of(self)->normed,
                              .weight = input_of(self, RL_LAYER_QKV_WEIGHT) + first * p->hidden * p->hidden,
                              .out = stage_of(self, RL_LAYER_QKV) + p->cached_tokens * 3 * p->hidden + first * p->hidden,
                              .outputs = count * p->hidden,
                              .inputs = p->hidden,
                              .out_stride = 3 * p->hidden,
                              .sequence_stride = rl_layer_context(p) * 3 * p->hidden};
  return run_product(self, projection, err);
}

#define DEFINE_ENQUEUE_PROJECTION(NAME, FIRST, COUNT)           \
  static int NAME(void *arg, rl_stream stream, rl_error *err) { \
    (void)stream;                                               \
    return project_qkv(arg, FIRST, COUNT, err);                 \
  }
DEFINE_ENQUEUE_PROJECTION(enqueue_q, 0, 1)
DEFINE_ENQUEUE_PROJECTION(enqueue_k, 1, 1)
DEFINE_ENQUEUE_PROJECTION(enqueue_v, 2, 1)
DEFINE_ENQUEUE_PROJECTION(enqueue_qkv, 0, 3)

static int rope_rows(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const rl_layer_instance *self = context;
  const rl_layer_params *p = &self->params;
  const int64_t head_size = rl_layer_head_size(p);
  (void)thread, (void)err;
  for (int64_t row = first; row < first + count; row++)
    rope_row_float(stage_of(self, RL_LAYER_QKV) + rl_layer_qkv_row(p, row) * 3 * p->hidden, 2 * p->heads, head_size,
                   state_of(self)->rotations + rl_layer_position(p, row) * head_size);
  return 0;
}

static int enqueue_rope(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return run_over_rows(arg, rope_rows, arg, err);
}

static int attention_rows(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const rl_layer_instance *self = context;
  const rl_layer_params *p = &self->params;
  const int64_t head_size = rl_layer_head_size(p), stride = 3 * p->hidden;
  (void)thread;
  RL_CLEANUP(free_floats) float *weights = malloc((size_t)rl_layer_context(p) * sizeof *weights);
  if (weights == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a layer's attention");
  for (int64_t row = first; row < first + count; row++) {
    const float *query = stage_of(self, RL_LAYER_QKV) + rl_layer_qkv_row(p, row) * stride;
    const float *sequence = stage_of(self, RL_LAYER_QKV) + row / p->tokens * rl_layer_context(p) * stride;
    for (int64_t offset = 0; offset < p->hidden; offset += head_size)
      attention_head_float(query + offset, sequence + p->hidden + offset, sequence + 2 * p->hidden + offset, stride,
                           rl_layer_attended_tokens(p, row), head_size, weights,
                           stage_of(self, RL_LAYER_ATTENTION) + row * p->hidden + offset);
  }
  return 0;
}

static int enqueue_attention(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return run_over_rows(arg, attention_rows, arg, err);
}

static product o_projection(const rl_layer_instance *self) {
  return (product){.x = stage_of(self, RL_LAYER_ATTENTION),
                   .weight = input_of(self, RL_LAYER_O_WEIGHT),
                   .out = state_of(self)->projected,
                   .outputs = self->params.hidden,
                   .inputs = self->params.hidden};
}

static int enqueue_o(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return run_product(arg, o_projection(arg), err);
}

static int enqueue_o_residual(void *arg, rl_stream stream, rl_error *err) {
  product projection = o_projection(arg);
  (void)stream;
  projection.out = stage_of(arg, RL_LAYER_HIDDEN);
  projection.residual = input_of(arg, RL_LAYER_X);
  return run_product(arg, projection, err);
}

/* --- launches: residuals and feed-forward -------------------------------------------------------------------------------- */

typedef struct addition { /* out = x + y */
  const float *x, *y;
  float *out;
  int64_t columns;
} addition;

static int add_rows(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const addition *task = context;
  (void)thread, (void)err;
  for (int64_t i = first * task->columns; i < (first + count) * task->columns; i++) task->out[i] = task->x[i] + task->y[i];
  return 0;
}

static int enqueue_residual1(void *arg, rl_stream stream, rl_error *err) {
  rl_layer_instance *self = arg;
  addition task = {input_of(self, RL_LAYER_X), state_of(self)->projected, stage_of(self, RL_LAYER_HIDDEN), self->params.hidden};
  (void)stream;
  return run_over_rows(self, add_rows, &task, err);
}

static int enqueue_residual2(void *arg, rl_stream stream, rl_error *err) {
  rl_layer_instance *self = arg;
  addition task = {stage_of(self, RL_LAYER_HIDDEN), state_of(self)->projected, stage_of(self, RL_LAYER_OUTPUT),
                   self->params.hidden};
  (void)stream;
  return run_over_rows(self, add_rows, &task, err);
}

static int enqueue_norm2(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return normalize(arg, stage_of(arg, RL_LAYER_HIDDEN), RL_LAYER_NORM2_WEIGHT, err);
}

static product gate_projection(const rl_layer_instance *self) {
  return (product){.x = state_of(self)->normed,
                   .weight = input_of(self, RL_LAYER_GATE_UP_WEIGHT),
                   .out = state_of(self)->gate,
                   .outputs = self->params.ffn,
                   .inputs = self->params.hidden};
}

static const float *up_weight(const rl_layer_instance *self) {
  return input_of(self, RL_LAYER_GATE_UP_WEIGHT) + self->params.ffn * self->params.hidden;
}

static int enqueue_gate(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return run_product(arg, gate_projection(arg), err);
}

static int enqueue_up(void *arg, rl_stream stream, rl_error *err) {
  product projection = gate_projection(arg);
  (void)stream;
  projection.weight = up_weight(arg);
  projection.out = state_of(arg)->up;
  return run_product(arg, projection, err);
}

static int gate_rows(void *context, int64_t first, int64_t count, uint32_t thread, rl_error *err) {
  const rl_layer_instance *self = context;
  const int64_t ffn = self->params.ffn;
  (void)thread, (void)err;
  for (int64_t i = first * ffn; i < (first + count) * ffn; i++)
    stage_of(self, RL_LAYER_GATED)[i] = gated_float(state_of(self)->gate[i], state_of(self)->up[i]);
  return 0;
}

static int enqueue_silu_mul(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return run_over_rows(arg, gate_rows, arg, err);
}

static int enqueue_gate_up(void *arg, rl_stream stream, rl_error *err) {
  product projection = gate_projection(arg);
  (void)stream;
  projection.up_weight = up_weight(arg);
  projection.out = stage_of(arg, RL_LAYER_GATED);
  return run_product(arg, projection, err);
}

static product down_projection(const rl_layer_instance *self) {
  return (product){.x = stage_of(self, RL_LAYER_GATED),
                   .weight = input_of(self, RL_LAYER_DOWN_WEIGHT),
                   .out = state_of(self)->projected,
                   .outputs = self->params.hidden,
                   .inputs = self->params.ffn};
}

static int enqueue_down(void *arg, rl_stream stream, rl_error *err) {
  (void)stream;
  return run_product(arg, down_projection(arg), err);
}

static int enqueue_down_residual(void *arg, rl_stream stream, rl_error *err) {
  product projection = down_projection(arg);
  (void)stream;
  projection.out = stage_of(arg, RL_LAYER_OUTPUT);
  projection.residual = stage_of(arg, RL_LAYER_HIDDEN);
  return run_product(arg, projection, err);
}

/* --- opening ----------------------------------------------------------------------------------------------------------- */

typedef struct named_launch {
  const char *name, *nvtx_range;
  int (*enqueue)(void *arg, rl_stream stream, rl_error *err);
} named_launch;

static const named_launch baseline[] = {{"norm1", "attention", enqueue_norm1},
                                        {"q", "attention", enqueue_q},
                                        {"k", "attention", enqueue_k},
                                        {"v", "attention", enqueue_v},
                                        {"rope", "attention", enqueue_rope},
                                        {"attention", "attention", enqueue_attention},
                                        {"o", "attention", enqueue_o},
                                        {"residual1", "attention", enqueue_residual1},
                                        {"norm2", "feed_forward", enqueue_norm2},
                                        {"gate", "feed_forward", enqueue_gate},
                                        {"up", "feed_forward", enqueue_up},
                                        {"silu_mul", "feed_forward", enqueue_silu_mul},
                                        {"down", "feed_forward", enqueue_down},
                                        {"residual2", "feed_forward", enqueue_residual2},
                                        {0}};
static const named_launch fused[] = {{"norm1", "attention", enqueue_norm1},
                                     {"qkv", "attention", enqueue_qkv},
                                     {"rope", "attention", enqueue_rope},
                                     {"attention", "attention", enqueue_attention},
                                     {"o_residual", "attention", enqueue_o_residual},
                                     {"norm2", "feed_forward", enqueue_norm2},
                                     {"gate_up_silu", "feed_forward", enqueue_gate_up},
                                     {"down_residual", "feed_forward", enqueue_down_residual},
                                     {0}};

static int allocate(rl_layer_instance *self, rl_memory_purpose purpose, int64_t elements, float **memory, rl_error *err) {
  rl_device *device = self->base.device;
  void *allocated = NULL;
  if (device->ops->allocate(device, purpose, (size_t)elements * sizeof(float), &allocated, err) < 0) return -1;
  *memory = allocated;
  return 0;
}

static int open_state(rl_layer_instance *self, rl_error *err) {
  const rl_layer_params *p = &self->params;
  const int64_t rows = rl_layer_rows(p);
  cpu_layer *state = calloc(1, sizeof *state);
  if (state == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a layer");
  self->engine_state = state;
  self->engine_close = close_state;
  state->device = self->base.device;
  return allocate(self, RL_MEMORY_ACTIVATIONS, rows * p->hidden, &state->normed, err) < 0 ||
                 allocate(self, RL_MEMORY_ACTIVATIONS, rows * p->hidden, &state->projected, err) < 0 ||
                 allocate(self, RL_MEMORY_ACTIVATIONS, rows * p->ffn, &state->gate, err) < 0 ||
                 allocate(self, RL_MEMORY_ACTIVATIONS, rows * p->ffn, &state->up, err) < 0 ||
                 allocate(self, RL_MEMORY_WORKSPACE, rl_layer_context(p) * rl_layer_head_size(p), &state->rotations, err) < 0
             ? -1
             : rl_layer_fill_rotations(self, state->rotations, err);
}

static int open_layer(rl_device *device, const void *params, rl_instance **instance, rl_error *err) {
  rl_layer_instance *self;
  if (rl_layer_open(device, params, RL_DTYPE_FP32, &self, err) < 0) return -1;
  if (open_state(self, err) < 0) {
    self->base.ops->close(&self->base);
    return -1;
  }
  const named_launch *launches = self->params.variant == RL_LAYER_FUSED ? fused : baseline;
  for (const named_launch *launch = launches; launch->name != NULL; launch++)
    rl_layer_add_launch(self, launch->name, launch->nvtx_range, launch->enqueue);
  openblas_set_num_threads(1); /* multiply_panel runs on the threads of the pool */
  *instance = &self->base;
  return 0;
}

const rl_engine rl_layer_cpu = {.description = &rl_layer_cpu_description, .open = open_layer};
