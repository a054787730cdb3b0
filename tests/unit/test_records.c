/* Tests the growing arrays of records and their limit, and the schemas of API responses that contain records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "model/records.h"

static void arrays_grow_and_keep_their_order(void **state) {
  (void)state;
  rl_records records = {0};
  rl_error err;
  char name[32];
  for (int i = 0; i < 1000; i++) {
    rl_epoch epoch = {.epoch = i};
    rl_kernel kernel = {.ordinal = i};
    rl_kernel_metric metric = {.ordinal = i};
    rl_phase phase = {.position = i};
    rl_instruction instruction = {.offset = 16 * i};
    rl_series_point point = {.x = i};
    rl_activity_row rows[3] = {{.start_ns = 3 * i}, {.start_ns = 3 * i + 1}, {.start_ns = 3 * i + 2}};
    int length = snprintf(name, sizeof name, "name %d and more", i);
    assert_int_equal(rl_records_add(&records, RL_RECORD_EPOCH, &epoch, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_KERNEL, &kernel, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_PHASE, &phase, 1, &err), 0);
    assert_int_equal(rl_records_add_metric(&records, &metric, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_INSTRUCTION, &instruction, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_POINT, &point, 1, &err), 0);
    assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 3, &err), 0);
    assert_int_equal(rl_records_add_name(&records, name, (size_t)length - strlen(" and more"), &err), 0);
    assert_int_equal(rl_records_add_measurement(&records, "wait_ms", i, NULL, &err), 0);
  }
  assert_int_equal(records.row_count, 3000);
  for (int i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, "name %d", i);
    assert_int_equal(records.epochs[i].epoch, i);
    assert_int_equal(records.kernels[i].ordinal, i);
    assert_int_equal(records.phases[i].position, i);
    assert_int_equal(records.metrics[i].ordinal, i);
    assert_int_equal(records.instructions[i].offset, 16 * i);
    assert_true(records.points[i].x == i);
    assert_int_equal(records.rows[3 * i + 2].start_ns, 3 * i + 2);
    assert_string_equal(records.names[i], name);
    assert_true(records.measurements[i].value == i);
  }
  records.limit_bytes = 77;
  rl_records_clear(&records);
  assert_int_equal(records.bytes, 0);
  assert_int_equal(records.limit_bytes, 77);
  assert_null(records.rows);
}

static void growth_stops_at_the_limit(void **state) {
  (void)state;
  rl_records records = {.limit_bytes = 10 * sizeof(rl_activity_row)};
  rl_error err;
  rl_activity_row rows[8] = {0};
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 8, &err), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 3, &err), -1);
  assert_int_equal(err.domain, RL_WIRE);
  assert_int_equal(err.code, RL_WIRE_MEMORY_LIMIT);
  assert_int_equal(records.row_count, 8);
  assert_int_equal(rl_records_add_name(&records, "x", 500, &err), -1);
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, 2, &err), 0); /* failed calls do not count towards the limit */
  assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, rows, SIZE_MAX / 8, &err), -1);
  rl_records_clear(&records);
}

static void a_missing_value_needs_a_reason(void **state) {
  (void)state;
  rl_records records = {0};
  rl_error err;
  assert_int_equal(rl_records_add_measurement(&records, "power_w", NAN, NULL, &err), -1);
  assert_int_equal(rl_records_add_measurement(&records, "power_w", INFINITY, "", &err), -1);
  assert_int_equal(records.measurement_count, 0);
  assert_int_equal(rl_records_add_measurement(&records, "power_w", NAN, "no sensor", &err), 0);
  assert_string_equal(records.measurements[0].reason, "no sensor");
  rl_records_clear(&records);
}

/* --- records in API responses ------------------------------------------------------------------------------------------ */

/* A response schema of openapi.json. Its properties are the fields of a record except those in `hidden`, and those in `added`. */
typedef struct response_schema {
  const char *schema;
  const rl_field *fields;
  const char *const *hidden, *const *added;
} response_schema;

#define NAME_LIST(...) \
  (const char *const[]) { __VA_ARGS__ __VA_OPT__(, ) NULL }
static const response_schema responses[] = {
    {"Epoch", rl_epoch_fields, NAME_LIST(), NAME_LIST("epoch_ms", "images_per_s", "suspect", "suspect_reason")},
    {"Sample", rl_sample_fields, NAME_LIST(), NAME_LIST("suspect", "suspect_reason")},
    {"Measurement", rl_measurement_fields, NAME_LIST(), NAME_LIST("pass")},
    {"Kernel", rl_kernel_fields, NAME_LIST("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
     NAME_LIST("id", "run", "variant", "pass", "counted_duration_us", "grid", "block", "metrics", "phases")},
    {"Phase", rl_phase_fields, NAME_LIST("ordinal", "position"), NAME_LIST()},
    {"Instruction", rl_instruction_fields, NAME_LIST("ordinal"), NAME_LIST()},
    {"ProgressEvent", rl_progress_fields, NAME_LIST(), NAME_LIST("run_id", "at")},
};

static bool is_among(const char *const *names, const char *name) {
  for (; *names != NULL; names++)
    if (strcmp(*names, name) == 0) return true;
  return false;
}

static const char *type_name(const rl_field *field) {
  switch (field->type) {
    case RL_FIELD_BOOL: return "boolean";
    case RL_FIELD_INT: return "integer";
    case RL_FIELD_REAL:
    case RL_FIELD_NULLABLE_REAL: return "number";
    case RL_FIELD_JSON: return "object"; /* {} if it is NULL in the database */
    default: return "string";
  }
}

static void check_property(const char *schema, const rl_field *field, const cJSON *property) {
  const bool nullable = field->type == RL_FIELD_NULLABLE_REAL || (field->zero_is_null && field->type != RL_FIELD_JSON);
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(property, "type");
  const cJSON *first_type = nullable ? cJSON_GetArrayItem(type, 0) : type,
              *second_type = nullable ? cJSON_GetArrayItem(type, 1) : NULL;
  if (!cJSON_IsString(first_type) || strcmp(first_type->valuestring, type_name(field)) != 0 ||
      (nullable && (!cJSON_IsString(second_type) || strcmp(second_type->valuestring, "null") != 0)))
    fail_msg("%s.%s of openapi.json must be of type %s%s", schema, field->name, type_name(field), nullable ? " or null" : "");
}

static void check_response(const response_schema *response, const cJSON *schema) {
  const cJSON *properties = cJSON_GetObjectItemCaseSensitive(schema, "properties");
  int expected_count = 0;
  if (properties == NULL) fail_msg("openapi.json has no schema %s", response->schema);
  for (const rl_field *field = response->fields; field->name != NULL; field++) {
    const cJSON *property = cJSON_GetObjectItemCaseSensitive(properties, field->name);
    const bool hidden = is_among(response->hidden, field->name);
    if (hidden != (property == NULL))
      fail_msg("%s of openapi.json must %shave %s", response->schema, hidden ? "not " : "", field->name);
    if (!hidden) check_property(response->schema, field, property);
    expected_count += !hidden;
  }
  for (const char *const *name = response->added; *name != NULL; name++, expected_count++)
    if (!cJSON_HasObjectItem(properties, *name)) fail_msg("%s of openapi.json must have %s", response->schema, *name);
  if (cJSON_GetArraySize(properties) != expected_count)
    fail_msg("%s of openapi.json has properties that are neither fields of the record nor in `added`", response->schema);
}

static void responses_have_the_fields_of_their_records(void **state) {
  (void)state;
  static char text[1 << 20];
  rl_error err;
  FILE *document = fopen(RL_SOURCE "/schema/openapi.json", "r");
  assert_non_null(document);
  size_t length = fread(text, 1, sizeof text, document);
  fclose(document);
  cJSON *openapi = rl_json_parse(text, length, &err);
  if (openapi == NULL) fail_msg("openapi.json: %s", err.message);
  const cJSON *components = cJSON_GetObjectItemCaseSensitive(openapi, "components");
  const cJSON *schemas = cJSON_GetObjectItemCaseSensitive(components, "schemas");
  for (size_t i = 0; i < sizeof responses / sizeof *responses; i++)
    check_response(&responses[i], cJSON_GetObjectItemCaseSensitive(schemas, responses[i].schema));
  cJSON_Delete(openapi);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_grow_and_keep_their_order), cmocka_unit_test(growth_stops_at_the_limit),
      cmocka_unit_test(a_missing_value_needs_a_reason), cmocka_unit_test(responses_have_the_fields_of_their_records)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
