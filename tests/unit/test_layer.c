/* Tests the workload transformer_layer on the CPU: its sizes, its cost, and every variant against the layer in double
 * precision. */
#include "layer_cases.h"

static rl_device *device;

static rl_layer_params default_layer(void) {
  rl_layer_params params;
  rl_transformer_layer.defaults(&params);
  return params;
}

static void the_cost_of_the_default_layer_follows_from_its_products(void **state) {
  (void)state;
  rl_layer_params params = default_layer();
  const double weights = 4 * 4096.0 * 4096 + 3 * 4096.0 * 11008, pairs = 2048.0 * 2049 / 2;
  assert_true(rl_layer_product_operations(&params) == 2 * 2048 * weights); /* 829 GFLOP */
  rl_cost cost = rl_transformer_layer.cost(&params, 0);
  assert_true(cost.operations == 2 * 2048 * weights + 4 * pairs * 4096);
  assert_true(cost.written_bytes == 2 * 3 * 2048.0 * 4096); /* y, k, v */
  assert_true(cost.bytes == 2 * (weights + 4 * 4096 + 4 * 2048.0 * 4096));
  assert_string_equal(cost.precision, "fp16");
  params.causal = 0;
  assert_true(rl_transformer_layer.cost(&params, 0).operations == 2 * 2048 * weights + 4 * 2048.0 * 2048 * 4096);
}

static void decode_reads_the_cache(void **state) {
  (void)state;
  rl_layer_params params = default_layer();
  params.tokens = 1;
  params.batch = 3;
  params.cached_tokens = 100;
  rl_cost cost = rl_transformer_layer.cost(&params, 0);
  const double weights = 4 * 4096.0 * 4096 + 3 * 4096.0 * 11008;
  assert_true(cost.bytes == 2 * (weights + 4 * 4096 + 4 * 3 * 4096.0 + 2 * 3 * 100 * 4096.0));
  assert_true(cost.operations == 2 * 3 * weights + 4 * 3 * 101.0 * 4096);
  assert_int_equal(rl_layer_qkv_row(&params, 2), 2 * 101 + 100);
  assert_int_equal(rl_layer_attended_tokens(&params, 2), 101);
}

static void sizes_that_do_not_fit_are_refused_with_a_pointer(void **state) {
  (void)state;
  static const struct {
    layer_shape shape;
    int variant;
    const char *on_cpu, *on_gpu; /* NULL: accepted */
  } cases[] = {{{1, 5, 0, 32, 2, 24, 1}, RL_LAYER_FUSED, NULL, NULL},
               {{1, 5, 0, 32, 3, 24, 1}, RL_LAYER_FUSED, "/heads", "/heads"}, /* 3 does not divide 32 */
               {{1, 5, 0, 30, 2, 24, 1}, RL_LAYER_FUSED, "/heads", "/heads"}, /* heads of 15 elements */
               {{1, 5, 0, 20, 2, 24, 1}, RL_LAYER_FUSED, NULL, "/heads"},     /* heads of 10 elements */
               {{1, 5, 0, 1024, 2, 24, 1}, RL_LAYER_FUSED, NULL, "/heads"},   /* heads of 512 elements */
               {{1, 5, 0, 32, 2, 23, 1}, RL_LAYER_FUSED, NULL, "/ffn"},
               {{1, 5, 7, 32, 2, 24, 1}, RL_LAYER_FUSED, NULL, "/cached_tokens"}, /* cuDNN's mask begins at token 0 */
               {{1, 1, 7, 32, 2, 24, 1}, RL_LAYER_FUSED, NULL, NULL},
               {{1024, 131072, 0, 32, 2, 24, 1}, RL_LAYER_FUSED, "/tokens", "/tokens"},
               {{1, 5, 0, 32768, 128, 131072, 1}, RL_LAYER_FUSED, "/ffn", "/ffn"},
               {{1, 5, 0, 8192, 64, 28672, 1}, RL_LAYER_FUSED, NULL, NULL},
               {{1, 5, 0, 16384, 128, 8, 1}, RL_LAYER_FUSED, "/hidden", "/hidden"},
               {{1, 5, 0, 32, 2, 24, 1}, RL_LAYER_GRAPH, "/variant", NULL},
               {{1, 5, 0, 32, 2, 24, 1}, RL_LAYER_BEST, "/variant", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int gpu = 0; gpu < 2; gpu++) {
      const char *pointer = gpu ? cases[i].on_gpu : cases[i].on_cpu;
      const rl_layer_params params = layer_params(cases[i].shape, 0, cases[i].variant, 1);
      rl_error err = {0};
      const int rc = rl_workload_supports(&rl_transformer_layer, gpu ? RL_DEVICE_CUDA : RL_DEVICE_CPU, &params, &err);
      assert_int_equal(rc, pointer ? -1 : 0);
      if (pointer) assert_string_equal(err.json_pointer, pointer);
    }
}

static void every_variant_computes_the_layer(void **state) {
  (void)state;
  static const layer_shape shapes[] = {{1, 1, 0, 2, 1, 1, 1},    {1, 37, 0, 48, 3, 65, 1}, {2, 17, 0, 40, 2, 33, 0},
                                       {3, 1, 29, 64, 4, 96, 1}, {2, 5, 11, 24, 1, 40, 1}, {1, 67, 0, 128, 2, 200, 1},
                                       {2, 3, 8, 36, 3, 7, 0}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int variant = 0; variant < RL_LAYER_VARIANT_COUNT; variant++)
      for (int dtype = 0; dtype < 2 && RL_LAYER_CPU_VARIANTS & 1 << variant; dtype++)
        assert_layer_is_correct(device, layer_params(shapes[i], dtype, variant, fresh_seed()));
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

/* With `causal`, a row attends only to its own token and to earlier tokens. */
static void a_causal_row_does_not_see_later_tokens(void **state) {
  (void)state;
  const layer_shape causal = {1, 9, 0, 32, 2, 24, 1}, full = {1, 9, 0, 32, 2, 24, 0};
  const rl_layer_params masked_params = layer_params(causal, 0, RL_LAYER_BASELINE, 5),
                        unmasked_params = layer_params(full, 0, RL_LAYER_BASELINE, 5);
  rl_layer_instance *masked = open_layer_case(device, &masked_params), *unmasked = open_layer_case(device, &unmasked_params);
  rl_check check;
  assert_int_equal(masked->base.ops->check(&masked->base, &check, NULL), 0);
  assert_int_equal(unmasked->base.ops->check(&unmasked->base, &check, NULL), 0);
  const float *a = masked->stages[RL_LAYER_OUTPUT], *b = unmasked->stages[RL_LAYER_OUTPUT];
  assert_memory_not_equal(a, b, 32 * sizeof *a); /* row 0 attends to its own token, and without the mask to all tokens */
  assert_memory_equal(a + 8 * 32, b + 8 * 32, 32 * sizeof *a); /* the last row attends to all tokens with and without the mask */
  close_layer(masked);
  close_layer(unmasked);
}

/* Executes the step with launches `first` and first + 1 in exchanged order; launch_count exchanges none. */
static void execute_step(rl_layer_instance *layer, size_t first) {
  rl_error err = {0};
  assert_int_equal(rl_layer_poison(layer, &err), 0);
  for (size_t i = 0; i < layer->step.launch_count; i++) {
    const rl_launch *launch = &layer->launches[i == first ? i + 1 : i == first + 1 ? i - 1 : i];
    assert_int_equal(launch->enqueue(launch->arg, layer->base.device->stream, &err), 0);
  }
}

static void reverse_x(rl_layer_instance *layer) {
  const int64_t elements = rl_layer_input_elements(&layer->params, RL_LAYER_X);
  float *x = layer->inputs[RL_LAYER_X];
  for (int64_t i = 0; i < elements / 2; i++) {
    const float first = x[i];
    x[i] = x[elements - 1 - i];
    x[elements - 1 - i] = first;
  }
}

/* Copies all results of a step with two exchanged launches to `results`. Executes the step with another x before, so that a
 * launch that runs too early reads other values. */
static void read_exchanged(rl_layer_instance *layer, size_t first, float *results) {
  reverse_x(layer);
  execute_step(layer, layer->step.launch_count);
  reverse_x(layer);
  execute_step(layer, first);
  for (int stage = 0; stage < RL_LAYER_STAGE_COUNT; stage++) {
    const int64_t count = rl_layer_stage_elements(&layer->params, stage);
    memcpy(results, layer->stages[stage], (size_t)count * sizeof *results);
    results += count;
  }
}

/* Returns the number of pairs of successive launches whose declared data is independent. Fails the test if one of these pairs has
 * other results in exchanged order, or if another pair has the same. */
static size_t count_exchangeable(int variant) {
  const rl_layer_params params = layer_params((layer_shape){2, 5, 0, 48, 3, 40, 1}, 0, variant, fresh_seed());
  rl_layer_instance *layer = open_layer_case(device, &params);
  size_t count = 0, independent = 0;
  for (int stage = 0; stage < RL_LAYER_STAGE_COUNT; stage++) count += (size_t)rl_layer_stage_elements(&params, stage);
  float *expected = calloc(count, sizeof *expected), *found = calloc(count, sizeof *found);
  read_exchanged(layer, layer->step.launch_count, expected);
  for (size_t i = 0; i + 1 < layer->step.launch_count; i++) {
    rl_launch_data a, b;
    assert_true(rl_layer_launch_data(&params, layer->launches[i].name, &a) &&
                rl_layer_launch_data(&params, layer->launches[i + 1].name, &b));
    const bool depends = (a.writes & (b.reads | b.writes)) != 0 || (a.reads & b.writes) != 0;
    read_exchanged(layer, i, found);
    if ((memcmp(expected, found, count * sizeof *found) != 0) != depends)
      fail_msg("%s: %s and %s", describe_layer(&params), layer->launches[i].name, layer->launches[i + 1].name);
    independent += !depends;
  }
  free(expected), free(found);
  close_layer(layer);
  return independent;
}

static void declared_data_says_which_launches_can_be_exchanged(void **state) {
  (void)state;
  assert_int_equal(count_exchangeable(RL_LAYER_BASELINE), 4); /* q and k, k and v, v and rope, gate and up */
  assert_int_equal(count_exchangeable(RL_LAYER_FUSED), 0);
}

static void declared_bytes_are_those_of_the_tensors(void **state) {
  (void)state;
  rl_layer_params params = default_layer();
  rl_launch_data data;
  params.tokens = 1, params.cached_tokens = 2047;
  assert_true(rl_layer_launch_data(&params, "q", &data) && data.bytes == 2 * (4096.0 * 4096 + 2 * 4096));
  assert_true(rl_layer_launch_data(&params, "gate_up", &data) && data.bytes == 2 * (2 * 11008.0 * 4096 + 4096 + 2 * 11008));
  assert_true(rl_layer_launch_data(&params, "attention", &data) && data.bytes == 2 * (4 * 4096 + 2 * 2047.0 * 4096));
  assert_true(rl_layer_launch_data(&params, "rope", &data) && data.bytes == 2 * 4 * 4096);
  assert_true(rl_layer_launch_data(&params, "norm1", &data) && data.bytes == 2 * (2 + 2) * 4096);
  assert_false(rl_layer_launch_data(&params, "conv1", &data));
}

/* Executes a launch of damaged_layer, whose own function is damaged_enqueue, then changes an element of its result. */
static int (*damaged_enqueue)(void *, rl_stream, rl_error *);
static rl_layer_instance *damaged_layer;
static int damaged_stage;
static int enqueue_and_damage(void *arg, rl_stream stream, rl_error *err) {
  if (damaged_enqueue(arg, stream, err) < 0) return -1;
  float *result = damaged_layer->stages[damaged_stage];
  result[rl_layer_stage_columns(&damaged_layer->params, damaged_stage) - 1] *= 1.5f;
  return 0;
}

/* The check fails and names the result that has the wrong element. */
static void the_check_finds_a_wrong_element_of_each_result(void **state) {
  (void)state;
  static const struct {
    int stage;
    const char *launch;
  } cases[] = {{RL_LAYER_QKV, "rope"},
               {RL_LAYER_ATTENTION, "attention"},
               {RL_LAYER_HIDDEN, "o_residual"},
               {RL_LAYER_GATED, "gate_up_silu"},
               {RL_LAYER_OUTPUT, "down_residual"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_layer_params params = layer_params((layer_shape){1, 3, 0, 32, 2, 24, 1}, 0, RL_LAYER_FUSED, 3);
    rl_error err = {0};
    rl_check check;
    rl_layer_instance *layer = damaged_layer = open_layer_case(device, &params);
    damaged_stage = cases[i].stage;
    for (size_t l = 0; l < layer->step.launch_count; l++) {
      if (strcmp(layer->launches[l].name, cases[i].launch) != 0) continue;
      damaged_enqueue = layer->launches[l].enqueue;
      layer->launches[l].enqueue = enqueue_and_damage;
    }
    assert_int_equal(layer->base.ops->check(&layer->base, &check, &err), -1);
    assert_non_null(strstr(err.message, rl_layer_stage_names[cases[i].stage]));
    close_layer(layer);
  }
}

/* Writes no result, so that the NaN with which the check fills all results before it runs the launches stays there. */
static int enqueue_nothing(void *arg, rl_stream stream, rl_error *err) {
  (void)arg, (void)stream, (void)err;
  return 0;
}

static void the_check_finds_missing_results(void **state) {
  (void)state;
  const rl_layer_params params = layer_params((layer_shape){2, 1, 4, 32, 2, 24, 1}, 1, RL_LAYER_FUSED, 3);
  rl_error err = {0};
  rl_check check;
  rl_layer_instance *layer = open_layer_case(device, &params);
  assert_int_equal(layer->base.ops->check(&layer->base, &check, &err), 0);
  for (size_t l = 0; l < layer->step.launch_count; l++) {
    rl_launch original_launch = layer->launches[l];
    if (strncmp(original_launch.name, "norm", 4) == 0 || strcmp(original_launch.name, "rope") == 0)
      continue; /* the check compares no result of these launches */
    layer->launches[l].enqueue = enqueue_nothing;
    assert_int_equal(layer->base.ops->check(&layer->base, &check, &err), -1);
    layer->launches[l] = original_launch;
  }
  close_layer(layer);
}

static void the_baseline_is_enqueued_launch_by_launch(void **state) {
  (void)state;
  for (int variant = 0; variant < RL_LAYER_VARIANT_COUNT; variant++) {
    if (!(RL_LAYER_CPU_VARIANTS & 1 << variant)) continue;
    const rl_layer_params params = layer_params((layer_shape){1, 3, 0, 32, 2, 24, 1}, 0, variant, 3);
    rl_layer_instance *layer = open_layer_case(device, &params);
    double us[2];
    assert_int_equal(layer->step.enqueued_individually, variant == RL_LAYER_BASELINE);
    assert_int_equal(layer->step.launch_count, variant == RL_LAYER_BASELINE ? 14 : 8);
    assert_int_equal(device->ops->sample(device, &layer->step, RL_CACHE_WARM, 2, NULL, us, NULL), 0);
    assert_true(us[0] > 0 && us[1] > 0);
    close_layer(layer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_cost_of_the_default_layer_follows_from_its_products),
                                     cmocka_unit_test(decode_reads_the_cache),
                                     cmocka_unit_test(sizes_that_do_not_fit_are_refused_with_a_pointer),
                                     cmocka_unit_test(every_variant_computes_the_layer),
                                     cmocka_unit_test(a_causal_row_does_not_see_later_tokens),
                                     cmocka_unit_test(declared_data_says_which_launches_can_be_exchanged),
                                     cmocka_unit_test(declared_bytes_are_those_of_the_tensors),
                                     cmocka_unit_test(the_check_finds_a_wrong_element_of_each_result),
                                     cmocka_unit_test(the_check_finds_missing_results),
                                     cmocka_unit_test(the_baseline_is_enqueued_launch_by_launch)};
  setenv("ROOFLINED_THREADS", "2", 1);
  device = rl_device_open(0, NULL);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
