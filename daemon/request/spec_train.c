/* train: one run for each value of the workload's multi_value_parameter, the precision. The fields of the request are those of
 * the workload's parameters and those that all kinds share. */
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "request/spec_internal.h"

enum { PARAMS_SIZE_MAX = 2048 };

typedef struct train_request {
  int kind;
  uint32_t choices; /* bit i: value i of the multi_value_parameter */
  rl_spec_common common;
  alignas(max_align_t) unsigned char params[PARAMS_SIZE_MAX]; /* the workload's own struct */
} train_request;

static const char *const kind_names[] = {"train", NULL};
static const rl_field kind_row =
    RL_FIELD(train_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "what to measure");
static const rl_field common_rows[] = {RL_SPEC_COMMON_FIELDS(train_request), RL_SPEC_PROFILE_FIELDS(train_request),
                                       RL_SPEC_SELECTION_FIELDS(train_request)};
enum { COMMON_ROWS = sizeof common_rows / sizeof *common_rows };

/* The registered workload that train jobs measure. */
static const rl_workload *training_workload(void) {
  const rl_workload *const *workload = rl_workloads;
  while (strcmp((*workload)->kind, "train") != 0) workload++;
  return *workload;
}

static const rl_field *choice_field(const rl_workload *workload) {
  const rl_field *field = workload->fields;
  while (strcmp(field->name, workload->multi_value_parameter->field) != 0) field++;
  return field;
}

static bool has_name(const char *const *names, const char *name) {
  while (*names != NULL && strcmp(*names, name) != 0) names++;
  return *names != NULL;
}

/* "auto" and the names of the engines; a name that both kinds of devices have stands once. */
static void list_engines(const rl_workload *workload, const char *names[RL_REQUEST_ENGINES_MAX]) {
  int count = 0;
  memset(names, 0, sizeof *names * RL_REQUEST_ENGINES_MAX);
  names[count++] = "auto";
  for (const rl_engine_description *const *engine = workload->engines; *engine != NULL && count < RL_REQUEST_ENGINES_MAX - 1;
       engine++)
    if (!has_name(names, (*engine)->name)) names[count++] = (*engine)->name;
}

/* The list of values for the workload's choice, in place of the choice itself. */
static rl_field choices_row(const rl_workload *workload) {
  return (rl_field){.name = workload->multi_value_parameter->request_key,
                    .type = RL_FIELD_CHOICES,
                    .offset = offsetof(train_request, choices),
                    .size = sizeof(uint32_t),
                    .names = choice_field(workload)->names,
                    .summary = workload->multi_value_parameter->summary};
}

static rl_field parameter_row(const rl_field *parameter, const char *const *engines) {
  rl_field row = *parameter;
  row.offset += offsetof(train_request, params);
  if (strcmp(row.name, "engine") == 0) row.names = engines;
  return row;
}

const rl_field *rl_spec_train_make_fields(rl_request_fields *storage) {
  const rl_workload *workload = training_workload();
  const rl_field *choice = choice_field(workload);
  rl_field *row = storage->rows, *const end = row + RL_REQUEST_FIELDS_MAX - COMMON_ROWS - 1;
  list_engines(workload, storage->engines);
  *row++ = kind_row;
  *row++ = choices_row(workload);
  for (const rl_field *field = workload->fields; field->name != NULL && row < end; field++)
    if (field != choice) *row++ = parameter_row(field, storage->engines);
  memcpy(row, common_rows, sizeof common_rows);
  row[COMMON_ROWS] = (rl_field){0};
  return storage->rows;
}

/* A job whose engine exists on CPUs alone runs on the CPU, unless the request names a device. */
static void choose_device(const rl_workload *workload, const train_request *request, rl_job_spec *spec) {
  const char *name = rl_workload_engine_name(workload, request->params);
  bool on_cpu = false, on_gpu = false;
  for (const rl_engine_description *const *engine = workload->engines; *engine != NULL; engine++) {
    if (strcmp((*engine)->name, name) != 0) continue;
    on_cpu |= (*engine)->device == RL_DEVICE_CPU;
    on_gpu |= (*engine)->device == RL_DEVICE_CUDA;
  }
  if (spec->device[0] == '\0' && on_cpu && !on_gpu) snprintf(spec->device, sizeof spec->device, "cpu");
}

static int add_runs(const rl_workload *workload, train_request *request, rl_job_spec *spec, rl_error *err) {
  const rl_field *choice = choice_field(workload);
  for (int value = 0; choice->names[value] != NULL; value++) {
    if ((request->choices & 1u << value) == 0) continue;
    memcpy(request->params + choice->offset, &value, sizeof value);
    if (rl_spec_add_run(workload, choice->names[value], request->params, spec, err) < 0) return -1;
  }
  return 0;
}

int rl_spec_train_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  const rl_workload *workload = training_workload();
  train_request request = {.choices = workload->multi_value_parameter->default_values, .common = RL_SPEC_COMMON_DEFAULTS};
  rl_request_fields storage;
  const rl_field *fields = rl_spec_train_make_fields(&storage);
  if (workload->params_size > sizeof request.params)
    return rl_fail(err, RL_SYS, 0, "the parameters of %s take %zu bytes", workload->name, workload->params_size);
  workload->defaults(request.params);
  if (rl_fields_decode(fields, object, "", &request, sizeof request, err) < 0 ||
      rl_spec_apply_common(&request.common, spec, err) < 0 || add_runs(workload, &request, spec, err) < 0)
    return -1;
  choose_device(workload, &request, spec);
  if (spec->device[0] != '\0' && rl_spec_train_fit(spec, "", err) < 0) return -1;
  return rl_spec_write_request(fields, &request, spec, err);
}

static bool has_line(const char *lines, const char *text) {
  size_t length = strlen(text);
  for (const char *line = lines; line != NULL; line = strchr(line, '\n'), line += line != NULL)
    if (strncmp(line, text, length) == 0 && (line[length] == '\n' || line[length] == '\0')) return true;
  return false;
}

static int check_params(const rl_workload *workload, const rl_job_spec *spec, const char *unsupported_engines, const void *params,
                        rl_error *err) {
  const char *engine = rl_workload_engine_name(workload, params);
  if (rl_workload_supports(workload, rl_spec_device_kind(spec->device), params, err) < 0) return -1;
  if (!has_line(unsupported_engines, engine)) return 0;
  return rl_fail_at(err, "/engine", "%s cannot run engine %s; use \"auto\"", spec->device, engine);
}

static int check_run(const rl_workload *workload, const rl_job_spec *spec, int run, const char *unsupported_engines,
                     rl_error *err) {
  alignas(max_align_t) unsigned char params[PARAMS_SIZE_MAX];
  const char *text = spec->runs[run].params;
  rl_error unsupported = {0};
  workload->defaults(params);
  if (rl_fields_parse(workload->fields, text, strlen(text), params, workload->params_size, err) < 0) return -1;
  if (check_params(workload, spec, unsupported_engines, params, &unsupported) == 0) return 0;
  if (strcmp(unsupported.pointer + 1, workload->multi_value_parameter->field) == 0)
    snprintf(unsupported.pointer, sizeof unsupported.pointer, "/%s", workload->multi_value_parameter->request_key);
  if (err != NULL) *err = unsupported;
  return -1;
}

int rl_spec_train_fit(rl_job_spec *spec, const char *unsupported_engines, rl_error *err) {
  const rl_workload *workload = training_workload();
  for (int run = 0; run < spec->run_count; run++)
    if (check_run(workload, spec, run, unsupported_engines, err) < 0) return -1;
  return 0;
}
