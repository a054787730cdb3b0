/* Tests the model's layout, initial weights, cost, parameters and shuffle, the FP16 conversion and loss scaling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "train/loss_scale.h"
#include "train/model.h"

static void tensors_fill_the_parameters(void **state) {
  (void)state;
  static const uint32_t fan_in[RL_TENSORS] = {9, 9, 288, 288, 2304, 2304, 128, 128};
  float *w = malloc(sizeof *w * RL_PARAMETERS), *second_weights = malloc(sizeof *w * RL_PARAMETERS);
  rl_model_initialise(7, w);
  rl_model_initialise(7, second_weights);
  assert_memory_equal(w, second_weights, sizeof *w * RL_PARAMETERS);
  rl_model_initialise(8, second_weights);
  assert_memory_not_equal(w, second_weights, sizeof *w * RL_PARAMETERS);
  assert_int_equal(rl_tensor_offsets[0], 0);
  assert_int_equal(rl_tensor_offsets[RL_TENSORS], RL_PARAMETERS);
  for (int t = 0; t < RL_TENSORS; t++) {
    assert_int_equal(rl_tensor_offsets[t + 1] - rl_tensor_offsets[t], rl_tensor_sizes[t]);
    double bound = 1 / sqrt(fan_in[t]), sum = 0, squares = 0, largest = 0, n = rl_tensor_sizes[t];
    for (uint32_t i = rl_tensor_offsets[t]; i < rl_tensor_offsets[t + 1]; i++) {
      sum += w[i];
      squares += (double)w[i] * w[i];
      largest = fmax(largest, fabs(w[i]));
    }
    double deviation = bound / sqrt(3); /* of a uniform distribution on (-bound, bound) */
    assert_true(largest <= bound * (1 + 1e-7) && largest > bound * (1 - 12 / n));
    assert_true(fabs(sum / n) < 4 * deviation / sqrt(n));
    if (n > 100) assert_true(fabs(sqrt(squares / n) / deviation - 1) < 4 / sqrt(n));
  }
  free(w);
  free(second_weights);
}

static void cost_counts_the_models_operations(void **state) {
  (void)state;
  assert_true(rl_model_operations_per_image() == 18605568 && rl_model_min_operations_per_image() == 7537152);
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  assert_true(rl_mnist_cnn.cost(&params, 60000).operations == 60000 * 7537152.0);
  assert_true(rl_mnist_cnn.cost(&params, 10).operations == 10 * 7537152.0);
  assert_true(rl_mnist_cnn.cost(&params, 100).bytes - rl_mnist_cnn.cost(&params, 10).bytes == 90 * (28 * 28 + 1));
  params.warmup_epochs = 3;
  params.epochs = 5;
  uint32_t warmup, measured;
  rl_mnist_cnn.iteration_counts(&params, &warmup, &measured);
  assert_int_equal(warmup, 3);
  assert_int_equal(measured, 5);
}

static void defaults_are_within_their_bounds(void **state) {
  (void)state;
  rl_train_params params, parsed = {0};
  memset(&params, 0, sizeof params);
  rl_mnist_cnn.defaults(&params);
  char *text = rl_fields_print(rl_train_fields, &params);
  rl_error err = {0};
  if (rl_fields_parse(rl_train_fields, text, strlen(text), &parsed, sizeof parsed, &err) != 0) fail_msg("%s", err.message);
  assert_int_equal(parsed.batch_size, 64);
  free(text);
  static const char *const wrong[] = {"{\"batch_size\":0}",    "{\"batch_size\":8193}",   "{\"epochs\":0}",
                                      "{\"learning_rate\":0}", "{\"precision\":\"fp8\"}", "{\"seed\":-1}"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(rl_fields_parse(rl_train_fields, wrong[i], strlen(wrong[i]), &parsed, sizeof parsed, &err), -1);
}

/* Each field's summary, which openapi.json contains, states the field's default. */
static void summaries_name_the_defaults(void **state) {
  (void)state;
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  cJSON *values = cJSON_CreateObject();
  assert_int_equal(rl_fields_encode(rl_train_fields, &params, values), 0);
  for (const rl_field *field = rl_train_fields; field->name != NULL; field++) {
    const cJSON *value = cJSON_GetObjectItem(values, field->name);
    char *printed = cJSON_PrintUnformatted(value), expected[64];
    snprintf(expected, sizeof expected, "default %s", cJSON_IsString(value) ? value->valuestring : printed);
    if (strstr(field->summary, expected) == NULL) fail_msg("%s: \"%s\" does not name %s", field->name, field->summary, expected);
    free(printed);
  }
  cJSON_Delete(values);
}

static void shuffle_is_a_bijection(void **state) {
  (void)state;
  static const uint32_t counts[] = {1, 2, 3, 5, 17, 255, 257, 4097, 59999, 60000, 65537};
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    uint8_t *seen = calloc(1, counts[k]);
    uint64_t key = rl_shuffle_key(3, k);
    for (uint32_t i = 0; i < counts[k]; i++) {
      uint32_t image = rl_permute(i, counts[k], key);
      assert_true(image < counts[k] && !seen[image]);
      seen[image] = 1;
    }
    free(seen);
  }
  /* Another epoch has another order, and the mean distance between an image and its position is a third of the count, as for a
   * random permutation. */
  uint32_t same = 0;
  double moved = 0;
  for (uint32_t i = 0; i < 60000; i++) {
    uint32_t first = rl_permute(i, 60000, rl_shuffle_key(3, 0)), second = rl_permute(i, 60000, rl_shuffle_key(3, 1));
    same += first == second;
    moved += fabs((double)first - i) / 60000;
  }
  assert_true(same < 12); /* 1 is expected of random permutations */
  assert_true(fabs(moved / 60000 - 1 / 3.) < 0.01);
}

static void halves_round_to_nearest_even(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    float value = rl_half_to_float((uint16_t)bits);
    if (isnan(value)) assert_true((rl_half_from_float(value) & 0x7fff) > 0x7c00);
    else assert_int_equal(rl_half_from_float(value), bits);
  }
  static const struct {
    float value;
    uint16_t half;
  } cases[] = {{1.0f, 0x3c00},         {65504.0f, 0x7bff},       {65519.996f, 0x7bff},
               {65520.0f, 0x7c00},     {-1e9f, 0xfc00},          {0x1p-24f, 1},
               {0x1p-25f, 0},          {0x1.8p-25f, 1},          {0x1.8p-24f, 2},
               {1 + 0x1p-11f, 0x3c00}, {1 + 0x1.8p-10f, 0x3c02}, {-0.0f, 0x8000}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_int_equal(rl_half_from_float(cases[i].value), cases[i].half);
}

static void loss_scale_follows_grad_scaler(void **state) {
  (void)state;
  rl_loss_scale scale = {.scale = RL_LOSS_SCALE_START};
  rl_loss_scale_update(&scale, false);
  assert_true(scale.scale == 32768 && scale.skipped == 1);
  for (int i = 0; i < 1999; i++) rl_loss_scale_update(&scale, true);
  assert_true(scale.scale == 32768);
  rl_loss_scale_update(&scale, true);
  assert_true(scale.scale == 65536 && scale.finite_steps == 0);
  for (int i = 0; i < 1999; i++) rl_loss_scale_update(&scale, true);
  rl_loss_scale_update(&scale, false); /* counting starts again */
  for (int i = 0; i < 1999; i++) rl_loss_scale_update(&scale, true);
  assert_true(scale.scale == 32768 && scale.skipped == 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_fill_the_parameters),      cmocka_unit_test(cost_counts_the_models_operations),
      cmocka_unit_test(defaults_are_within_their_bounds), cmocka_unit_test(summaries_name_the_defaults),
      cmocka_unit_test(shuffle_is_a_bijection),           cmocka_unit_test(halves_round_to_nearest_even),
      cmocka_unit_test(loss_scale_follows_grad_scaler)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
