/* Helpers for the tests of the transformer layer's engines: they open a layer of a given shape, compute the layer in double
 * precision from its inputs, and compare the engine's output with that result. */
#ifndef RL_TESTS_LAYER_CASES_H
#define RL_TESTS_LAYER_CASES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernel/dtype.h"
#include "layer/instance.h"
#include "layer/reference.h"

typedef struct layer_shape {
  int64_t batch, tokens, cached_tokens, hidden, heads, ffn, causal;
} layer_shape;

static inline rl_layer_params layer_params(layer_shape shape, int dtype, int variant, int64_t seed) {
  rl_layer_params params;
  rl_transformer_layer.defaults(&params);
  params.dtype = dtype;
  params.variant = variant;
  params.batch = shape.batch;
  params.tokens = shape.tokens;
  params.cached_tokens = shape.cached_tokens;
  params.hidden = shape.hidden;
  params.heads = shape.heads;
  params.ffn = shape.ffn;
  params.causal = shape.causal;
  params.samples = 2;
  params.seed = seed;
  return params;
}

/* Returns a seed that differs from run to run. */
static inline int64_t fresh_seed(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline const char *describe_layer(const rl_layer_params *p) {
  static char text[256];
  snprintf(text, sizeof text, "%s %s batch %lld tokens %lld + %lld hidden %lld heads %lld ffn %lld causal %lld seed %lld",
           rl_layer_variant_names[p->variant], rl_layer_dtype_names[p->dtype], (long long)p->batch, (long long)p->cached_tokens,
           (long long)p->tokens, (long long)p->hidden, (long long)p->heads, (long long)p->ffn, (long long)p->causal,
           (long long)p->seed);
  return text;
}

static inline rl_layer_instance *open_layer_case(rl_device *target, const rl_layer_params *params) {
  rl_error err = {0};
  rl_instance *instance = NULL;
  const rl_engine *engine = rl_engine_find("transformer_layer", "auto", params, &err);
  if (!engine || engine->open(target, params, &instance, &err) < 0)
    fail_msg("%s: %s %s", describe_layer(params), err.json_pointer, err.message);
  return (rl_layer_instance *)instance;
}

static inline void close_layer(rl_layer_instance *layer) { layer->base.ops->close(&layer->base); }

/* Returns the layer's output, [rows][hidden], computed in double from the inputs. The caller frees it. */
static inline double *compute_whole_layer(rl_layer_instance *layer) {
  const rl_layer_params *p = &layer->params;
  const int64_t rows = rl_layer_rows(p), context = rl_layer_context(p), hidden = p->hidden;
  int64_t *all_rows = malloc((size_t)rows * sizeof *all_rows);
  for (int64_t i = 0; i < rows; i++) all_rows[i] = i;
  const rl_layer_reference reference = {p, layer->thread_pool, layer->base.device, all_rows, rows};
  double *x = malloc((size_t)(rows * hidden) * sizeof(double)), *qkv = malloc((size_t)(rows * 3 * hidden) * sizeof(double)),
         *cache = malloc((size_t)(p->batch * context * 3 * hidden) * sizeof(double)),
         *attention = malloc((size_t)(rows * hidden) * sizeof(double)), *h = malloc((size_t)(rows * hidden) * sizeof(double)),
         *gated = malloc((size_t)(rows * p->ffn) * sizeof(double)), *output = malloc((size_t)(rows * hidden) * sizeof(double));
  rl_layer_fill_input(p, RL_LAYER_X, 0, rows * hidden, x);
  rl_layer_fill_input(p, RL_LAYER_INITIAL_QKV, 0, p->batch * context * 3 * hidden, cache);
  assert_int_equal(rl_layer_reference_qkv(&reference, x, qkv, NULL), 0);
  for (int64_t i = 0; i < rows; i++)
    memcpy(cache + rl_layer_qkv_row(p, i) * 3 * hidden, qkv + i * 3 * hidden, (size_t)(3 * hidden) * sizeof(double));
  for (int64_t i = 0; i < rows; i++)
    assert_int_equal(
        rl_layer_reference_attention(&reference, i, cache + i / p->tokens * context * 3 * hidden, attention + i * hidden, NULL),
        0);
  assert_int_equal(rl_layer_reference_hidden(&reference, x, attention, h, NULL), 0);
  assert_int_equal(rl_layer_reference_gated(&reference, h, gated, NULL), 0);
  assert_int_equal(rl_layer_reference_output(&reference, h, gated, output, NULL), 0);
  free(all_rows), free(x), free(qkv), free(cache), free(attention), free(h), free(gated);
  return output;
}

/* Returns the output that the engine computed, [rows][hidden]. The caller frees it. */
static inline double *read_output(rl_layer_instance *layer) {
  const int64_t elements = rl_layer_stage_elements(&layer->params, RL_LAYER_OUTPUT);
  const size_t size = rl_dtype_size(layer->stored_dtype);
  void *stored = malloc((size_t)elements * size);
  double *values = malloc((size_t)elements * sizeof *values);
  rl_device *target = layer->base.device;
  assert_int_equal(target->ops->download(target, stored, layer->stages[RL_LAYER_OUTPUT], (size_t)elements * size, NULL), 0);
  rl_dtype_to_double(layer->stored_dtype, stored, elements, values);
  free(stored);
  return values;
}

/* Fails the test unless every launch of the step declares its data. */
static inline void assert_data_is_declared(const rl_layer_instance *layer) {
  rl_launch_data data;
  for (size_t i = 0; i < layer->step.launch_count; i++)
    if (!rl_layer_launch_data(&layer->params, layer->launches[i].name, &data))
      fail_msg("%s: launch_data.c lacks the launch %s", describe_layer(&layer->params), layer->launches[i].name);
}

/* Opens a layer and fails the test unless the engine's own check passes and the whole output is close to the result of
 * compute_whole_layer. The accepted error is 6 epsilons, because about twenty intermediate results of the layer are rounded to
 * its element type. */
static inline void assert_layer_is_correct(rl_device *target, rl_layer_params params) {
  rl_error err = {0};
  rl_check check = {NAN, NAN, NAN};
  rl_layer_instance *layer = open_layer_case(target, &params);
  assert_data_is_declared(layer);
  if (layer->base.ops->check(&layer->base, &check, &err) < 0) fail_msg("%s: %s", describe_layer(&params), err.message);
  assert_true(check.relative_error <= check.tolerance && check.checked_ratio > 0 && check.checked_ratio <= 1);
  double *expected = compute_whole_layer(layer), *result = read_output(layer), squared_error = 0, squared_norm = 0;
  for (int64_t i = 0; i < rl_layer_stage_elements(&params, RL_LAYER_OUTPUT); i++) {
    squared_error += (result[i] - expected[i]) * (result[i] - expected[i]);
    squared_norm += expected[i] * expected[i];
  }
  const double error = sqrt(squared_error / squared_norm), limit = 6 * rl_dtype_epsilon(rl_layer_element_dtype(&params));
  if (!(error <= limit)) fail_msg("%s: the output's error is %g, more than %g", describe_layer(&params), error, limit);
  free(expected), free(result);
  close_layer(layer);
}

#endif
