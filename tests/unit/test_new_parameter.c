/* Adds a parameter and an engine to the workload mnist_cnn, and tests that code outside of kernels/ needs no change: requests
 * accept both, the check of openapi.json fails until the document has them, and stored runs stay comparable with new runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "request/spec.h"
#include "train/engines.h"
#include "train/model.h"

/* This program links its own rl_workloads instead of that of kernels/registry.c. Its only workload is mnist_cnn, to which
 * extend_mnist_cnn() adds a parameter and an engine. */
static rl_workload extended_mnist_cnn;
const rl_workload *const rl_workloads[] = {&extended_mnist_cnn, NULL};

typedef struct extended_params {
  rl_train_params train; /* first: the offsets of rl_train_fields are relative to it */
  int64_t early_stop_epochs;
} extended_params;

static rl_field fields[RL_REQUEST_FIELDS_MAX];
static const rl_engine_description *engines[RL_REQUEST_ENGINES_MAX];

static int supports_only_fp32(const void *params, rl_error *err) {
  const extended_params *extended = params;
  return extended->train.precision == RL_FP32 ? 0 : rl_fail_at(err, "/precision", "engine tiled trains in fp32 alone");
}
static const rl_engine_description tiled = {
    .name = "tiled", .workload = "mnist_cnn", .device = RL_DEVICE_CPU, .summary = "a new engine", .supports = supports_only_fp32};

static void extended_defaults(void *params) {
  rl_mnist_cnn.defaults(params);
  ((extended_params *)params)->early_stop_epochs = 5;
}

static void extend_mnist_cnn(void) {
  int count = 0;
  for (; rl_train_fields[count].name != NULL; count++) fields[count] = rl_train_fields[count];
  memmove(fields + 1, fields,
          sizeof *fields * (size_t)count); /* the new field comes first, so that the index of every other field changes */
  fields[0] = (rl_field)RL_FIELD(extended_params, early_stop_epochs, RL_FIELD_INT, .minimum = 1, .maximum = 9, .summary = "new");
  for (count = 0; rl_train_engines[count] != NULL; count++) engines[count] = rl_train_engines[count];
  engines[count] = &tiled;
  extended_mnist_cnn.fields = fields;
  extended_mnist_cnn.engines = engines;
  extended_mnist_cnn.params_size = sizeof(extended_params);
  extended_mnist_cnn.defaults = extended_defaults;
}

static int reset_mnist_cnn(void **state) {
  (void)state;
  extended_mnist_cnn = rl_mnist_cnn;
  return 0;
}

static int parse_spec(const char *text, rl_job_spec *spec, rl_error *err) {
  static const rl_job_policy policy = {RL_POSTING_OFF, 0};
  return rl_job_spec_parse(text, strlen(text), &policy, spec, err);
}

static void assert_accepted(const char *text, rl_job_spec *spec) {
  rl_error err = {0};
  if (parse_spec(text, spec, &err) < 0) fail_msg("%s: %s", text, err.message);
}

static void assert_refused(const char *text, const char *pointer) {
  rl_job_spec spec;
  rl_error err = {0};
  if (parse_spec(text, &spec, &err) == 0) fail_msg("accepted: %s", text);
  assert_string_equal(err.json_pointer, pointer);
}

static void the_request_accepts_a_new_parameter_within_its_bounds(void **state) {
  (void)state;
  rl_job_spec spec;
  assert_refused("{\"kind\":\"train\",\"early_stop_epochs\":3}", "/early_stop_epochs");
  extend_mnist_cnn();
  assert_accepted("{\"kind\":\"train\",\"early_stop_epochs\":3}", &spec);
  assert_int_equal(spec.run_count, 2);
  for (int i = 0; i < spec.run_count; i++) assert_non_null(strstr(spec.runs[i].params, "\"early_stop_epochs\":3,"));
  assert_non_null(strstr(spec.request, "\"early_stop_epochs\":3,"));
  assert_accepted("{\"kind\":\"train\"}", &spec);
  assert_non_null(strstr(spec.runs[0].params, "\"early_stop_epochs\":5,"));
  assert_refused("{\"kind\":\"train\",\"early_stop_epochs\":10}", "/early_stop_epochs");
}

static void the_request_accepts_a_new_engine_where_it_runs(void **state) {
  (void)state;
  rl_job_spec spec;
  assert_refused("{\"kind\":\"train\",\"engine\":\"tiled\",\"precisions\":[\"fp32\"]}", "/engine");
  extend_mnist_cnn();
  assert_accepted("{\"kind\":\"train\",\"engine\":\"tiled\",\"precisions\":[\"fp32\"]}", &spec);
  assert_string_equal(spec.device, "cpu");
  assert_refused("{\"kind\":\"train\",\"engine\":\"tiled\",\"precisions\":[\"fp32\",\"fp16\"]}", "/precisions");
  assert_refused("{\"kind\":\"train\",\"engine\":\"tiled\",\"precisions\":[\"fp32\"],\"device\":\"gpu0\"}", "/engine");
}

static bool openapi_matches_the_fields(void) {
  char text[1 << 20];
  FILE *file = fopen(RL_SOURCE_DIR "/schema/openapi.json", "r");
  rl_error err = {0};
  assert_non_null(file);
  size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  cJSON *document = rl_json_parse(text, size, &err);
  const cJSON *components = cJSON_GetObjectItem(document, "components");
  cJSON *documented = cJSON_GetObjectItem(cJSON_GetObjectItem(components, "schemas"), "TrainJob");
  assert_non_null(documented);
  cJSON_DeleteItemFromObject(documented, "description");
  rl_request_fields storage;
  cJSON *schema = rl_fields_schema(rl_job_kind_fields(&rl_job_kinds[0], &storage));
  bool same = cJSON_Compare(documented, schema, true);
  cJSON_Delete(schema);
  cJSON_Delete(document);
  return same;
}

static void the_openapi_check_finds_undocumented_fields(void **state) {
  (void)state;
  assert_true(openapi_matches_the_fields());
  extend_mnist_cnn();
  assert_false(openapi_matches_the_fields());
  extended_mnist_cnn.fields = rl_train_fields; /* with the new engine only */
  assert_false(openapi_matches_the_fields());
}

static void nondefault_params_of_stored_runs_stay_valid(void **state) {
  (void)state;
  static const char *const requests[] = {"{\"kind\":\"train\"}",
                                         "{\"kind\":\"train\",\"batch_size\":128,\"learning_rate\":0.5,\"engine\":\"blas\"}"};
  static const char *const expected[] = {"{\"precision\":\"fp16\"}",
                                         "{\"batch_size\":128,\"engine\":\"blas\",\"learning_rate\":0.5,\"precision\":\"fp16\"}"};
  rl_job_spec before[2], after;
  for (int i = 0; i < 2; i++) {
    assert_accepted(requests[i], &before[i]);
    assert_string_equal(before[i].runs[1].nondefault_params, expected[i]);
  }
  extend_mnist_cnn();
  for (int i = 0; i < 2; i++) {
    assert_accepted(requests[i], &after);
    assert_string_not_equal(after.runs[1].params, before[i].runs[1].params);
    assert_string_equal(after.runs[1].nondefault_params, before[i].runs[1].nondefault_params);
  }
  assert_accepted("{\"kind\":\"train\",\"early_stop_epochs\":6}", &after);
  assert_string_not_equal(after.runs[1].nondefault_params, before[0].runs[1].nondefault_params);
}

int main(void) {
#define WITH_RESET(TEST) cmocka_unit_test_setup(TEST, reset_mnist_cnn)
  const struct CMUnitTest tests[] = {WITH_RESET(the_request_accepts_a_new_parameter_within_its_bounds),
                                     WITH_RESET(the_request_accepts_a_new_engine_where_it_runs),
                                     WITH_RESET(the_openapi_check_finds_undocumented_fields),
                                     WITH_RESET(nondefault_params_of_stored_runs_stay_valid)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
