/* Tests the workload `sequence`, which runs several kernels, its members: decoding, cost, order of the launches, the check, and
 * errors, which name the member. */
#include "kernel_cases.h"

#include <errno.h>
#include <stdlib.h>

#include "kernel/sequence.h"

static rl_device *device;

static const char three_members[] =
    "[{\"kernel\":\"residual_add\",\"dtype\":\"bf16\",\"shape\":{\"n\":1001}},"
    "{\"kernel\":\"relu\",\"dtype\":\"fp16\",\"shape\":{\"n\":300},\"variant\":\"vector\"},"
    "{\"kernel\":\"relu\",\"shape\":{\"n\":70001}}]";

static rl_kernel_sequence_params make_params(const char *kernels) {
  rl_kernel_sequence_params params;
  rl_kernel_sequence.defaults(&params);
  snprintf(params.kernels, sizeof params.kernels, "%s", kernels);
  return params;
}

static rl_instance *open_sequence(const rl_kernel_sequence_params *params) {
  rl_error err = {0};
  rl_instance *instance = NULL;
  const rl_engine *engine = rl_engine_find("sequence", "auto", params, &err);
  if (!engine || engine->open(device, params, &instance, &err) < 0) fail_msg("%s: %s", err.json_pointer, err.message);
  return instance;
}

static void members_have_defaults_and_their_own_seeds(void **state) {
  (void)state;
  rl_kernel_sequence_params params = make_params(three_members);
  rl_kernel_params members[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  size_t count = 0;
  assert_int_equal(rl_kernel_sequence_decode_params(&params, members, &count, NULL), 0);
  assert_int_equal(count, 3);
  assert_true(members[1].op == &rl_kernel_relu && members[1].dtype == RL_DTYPE_FP16 && members[2].dtype == RL_DTYPE_FP32);
  assert_string_equal(members[1].variant, "vector");
  assert_string_equal(members[2].variant, "scalar");
  assert_string_equal(members[2].shape, "{\"n\":70001}");
  assert_true(members[1].seed != members[2].seed && members[2].seed >= 0);
  /* the encoded members decode to the same parameters */
  rl_kernel_params decoded[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  cJSON *encoded = rl_kernel_sequence_encode(members, count);
  assert_true(cJSON_PrintPreallocated(encoded, params.kernels, sizeof params.kernels, false));
  assert_int_equal(rl_kernel_sequence_decode_params(&params, decoded, &count, NULL), 0);
  assert_int_equal(count, 3);
  assert_memory_equal(decoded, members, 3 * sizeof *decoded);
  cJSON_Delete(encoded);
}

static void costs_add_up(void **state) {
  (void)state;
  rl_kernel_sequence_params mixed = make_params(three_members);
  rl_kernel_sequence_params same = make_params(
      "[{\"kernel\":\"copy\",\"dtype\":\"bf16\",\"shape\":{\"n\":10}},"
      "{\"kernel\":\"relu\",\"dtype\":\"bf16\",\"shape\":{\"n\":5}}]");
  rl_cost cost = rl_kernel_sequence.cost(&mixed, 0);
  assert_true(cost.bytes == 3 * 2 * 1001 + 2 * 2 * 300 + 2 * 4 * 70001.0);
  assert_true(cost.written_bytes == 2 * 1001 + 2 * 300 + 4 * 70001.0);
  assert_true(cost.operations == 1001 + 300 + 70001.0);
  assert_null(cost.precision); /* several precisions */
  cost = rl_kernel_sequence.cost(&same, 0);
  assert_true(cost.bytes == 2 * 2 * 15 && cost.operations == 5);
  assert_string_equal(cost.precision, "bf16");
}

typedef struct launch_log {
  char names[256]; /* of the launches, each followed by a space */
} launch_log;

static void append_name(void *context, const rl_span *span) {
  launch_log *log = context;
  size_t used = strlen(log->names);
  snprintf(log->names + used, sizeof log->names - used, "%s ", span->launch->name);
}

static void launches_are_in_order_and_have_different_names(void **state) {
  (void)state;
  rl_kernel_sequence_params params = make_params(three_members);
  params.samples = 2;
  rl_instance *instance = open_sequence(&params);
  launch_log log = {""};
  rl_observer observer = {.context = &log, .span = append_name};
  rl_elapsed elapsed;
  rl_check check = {NAN, NAN, NAN};
  rl_error err = {0};
  assert_int_equal(device->ops->run_eager(device, &instance->iteration, &observer, &elapsed, NULL), 0);
  assert_string_equal(log.names, "residual_add relu relu_2 residual_add relu relu_2 ");
  assert_int_equal(elapsed.stream_operations, 6);
  if (instance->ops->check(instance, &check, &err) < 0) fail_msg("%s", err.message);
  assert_true(check.relative_error > 0 && check.relative_error <= check.tolerance); /* residual_add rounds, relu does not */
  assert_true(instance->deterministic && !instance->ops->save(instance, NULL) && !instance->ops->restore(instance, NULL));
  assert_int_equal(device->memory_usage.bytes[RL_MEMORY_DATASET], 2 * 2 * 1001 + 2 * 300 + 4 * 70001);
  instance->ops->close(instance);
  assert_int_equal(device->memory_usage.total_bytes, 0);
}

static void a_sequence_is_sampled_as_a_whole(void **state) {
  (void)state;
  rl_kernel_sequence_params params = make_params(three_members);
  rl_instance *instance = open_sequence(&params);
  const rl_sequence *step = &instance->iteration.sequences[instance->step_sequence];
  double us[3];
  assert_int_equal(step->launch_count, 3);
  assert_int_equal(device->ops->sample(device, step, RL_CACHE_WARM, 3, NULL, us, NULL), 0);
  assert_true(us[0] > 0 && us[1] > 0 && us[2] > 0);
  instance->ops->close(instance);
}

static void errors_name_the_kernel(void **state) {
  (void)state;
  static const struct {
    const char *kernels, *pointer;
  } cases[] = {{"[]", "/kernels"},
               {"{}", "/kernels"},
               {"[1]", "/kernels/0"},
               {"[{\"shape\":{\"n\":1}}]", "/kernels/0/kernel"},
               {"[{\"kernel\":\"relu\",\"shape\":{\"n\":1}},{\"kernel\":\"knead\",\"shape\":{\"n\":1}}]", "/kernels/1/kernel"},
               {"[{\"kernel\":\"relu\"}]", "/kernels/0/shape"},
               {"[{\"kernel\":\"relu\",\"shape\":{\"n\":0}}]", "/kernels/0/shape/n"},
               {"[{\"kernel\":\"relu\",\"shape\":{\"n\":1},\"dtype\":\"tf32\"}]", "/kernels/0/dtype"},
               {"[{\"kernel\":\"relu\",\"shape\":{\"n\":1},\"variant\":\"best\"}]", "/kernels/0/variant"},
               {"[{\"kernel\":\"relu\",\"shape\":{\"n\":1},\"samples\":3}]", "/kernels/0/samples"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_sequence_params params = make_params(cases[i].kernels);
    rl_error err = {0};
    assert_null(rl_engine_find("sequence", "auto", &params, &err));
    assert_int_equal(err.domain, RL_INPUT);
    assert_string_equal(err.json_pointer, cases[i].pointer);
    assert_true(isnan(rl_kernel_sequence.cost(&params, 0).bytes));
  }
}

static void a_sequence_has_at_most_32_members(void **state) {
  (void)state;
  for (int count = RL_KERNEL_SEQUENCE_MAX_MEMBERS; count <= RL_KERNEL_SEQUENCE_MAX_MEMBERS + 1; count++) {
    char kernels[RL_KERNEL_SEQUENCE_TEXT_SIZE] = "[";
    for (int i = 0; i < count; i++)
      strcat(kernels, i ? ",{\"kernel\":\"copy\",\"shape\":{\"n\":7}}" : "{\"kernel\":\"copy\",\"shape\":{\"n\":7}}");
    strcat(kernels, "]");
    rl_kernel_sequence_params params = make_params(kernels);
    rl_error err = {0};
    bool fits = rl_engine_find("sequence", "auto", &params, &err) != NULL;
    assert_int_equal(fits, count == RL_KERNEL_SEQUENCE_MAX_MEMBERS);
    if (!fits) assert_string_equal(err.json_pointer, "/kernels");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(members_have_defaults_and_their_own_seeds),
                                     cmocka_unit_test(costs_add_up),
                                     cmocka_unit_test(launches_are_in_order_and_have_different_names),
                                     cmocka_unit_test(a_sequence_is_sampled_as_a_whole),
                                     cmocka_unit_test(errors_name_the_kernel),
                                     cmocka_unit_test(a_sequence_has_at_most_32_members)};
  setenv("ROOFLINED_THREADS", "2", 1);
  device = rl_device_open(0, NULL);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device->ops->close(device);
  return failed;
}
