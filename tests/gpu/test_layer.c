/* Compares every variant of the layer on the GPU with the layer in double precision, on sizes that are no multiples of tiles.
 * Usage: test_gpu_layer */
#include "fixture.h"

#include "tests/unit/layer_cases.h"

static void every_variant_computes_the_layer(void **state) {
  (void)state;
  static const layer_shape shapes[] = {{1, 1, 0, 8, 1, 8, 1},        {1, 37, 0, 64, 4, 72, 1},      {2, 129, 0, 256, 4, 200, 0},
                                       {3, 1, 29, 128, 2, 264, 1},   {1, 131, 0, 384, 3, 520, 1},   {1, 300, 0, 512, 4, 1000, 1},
                                       {2, 65, 0, 128, 1, 1032, 1},  {5, 1, 77, 256, 2, 136, 0},    {1, 257, 0, 640, 10, 1288, 1},
                                       {1, 1, 0, 1024, 8, 2736, 1},  {2, 100, 0, 320, 4, 888, 1},   {1, 1, 37, 72, 3, 344, 1},
                                       {1, 1, 500, 264, 3, 2056, 1}, {1, 1, 1029, 640, 5, 1288, 0}, {1, 1, 300, 512, 2, 520, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int variant = 0; variant < RL_LAYER_VARIANT_COUNT; variant++)
      for (int dtype = 0; dtype < 2; dtype++)
        assert_layer_is_correct(device, layer_params(shapes[i], dtype, variant, fresh_seed()));
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

/* Tests the default layer on a sample of rows, and that the last variant is no slower than the first. */
static void the_default_layer_is_correct_and_has_its_launches(void **state) {
  (void)state;
  double first_us = 0;
  for (int variant = 0; variant < RL_LAYER_VARIANT_COUNT; variant++) {
    rl_layer_params params;
    rl_check check = {NAN, NAN, NAN};
    double us[8];
    rl_transformer_layer.defaults(&params);
    params.variant = variant;
    rl_layer_instance *layer = open_layer_case(device, &params);
    must(layer->base.ops->check(&layer->base, &check, e));
    must(device->ops->sample(device, &layer->step, RL_CACHE_WARM, 8, NULL, us, e));
    print_message("%-8s %2zu launches, %8.1f us, error %.2e of %.2e\n", rl_layer_variant_names[variant], layer->step.launch_count,
                  us[7], check.relative_error, check.tolerance);
    for (size_t l = 0; l < layer->step.launch_count; l++) print_message("  %s\n", layer->launches[l].name);
    if (variant == 0) first_us = us[7];
    if (variant == RL_LAYER_BEST) assert_true(us[7] <= first_us);
    close_layer(layer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_variant_computes_the_layer),
                                     cmocka_unit_test(the_default_layer_is_correct_and_has_its_launches)};
  need_gpu(NULL);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
