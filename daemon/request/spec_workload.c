/* Expands requests of the job kinds "train" and "layer", whose fields are made from the parameters of a workload. The request
 * lists values of one parameter, the workload's multi_value_parameter, in the field "precisions" (train) or "variants" (layer);
 * each value becomes one run. The other fields of the request are the workload's other parameters and the fields that all kinds
 * share. */
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "request/spec_internal.h"

enum { MAX_PARAMS_BYTES = 2048 };

typedef struct workload_request {
  int kind;
  uint32_t requested_values; /* bit i: value i of the multi_value_parameter is requested */
  rl_spec_common common;
  alignas(max_align_t) unsigned char params[MAX_PARAMS_BYTES]; /* struct of the workload's parameters */
} workload_request;

static const rl_field common_fields[] = {RL_SPEC_COMMON_FIELDS(workload_request), RL_SPEC_PROFILE_FIELDS(workload_request),
                                         RL_SPEC_SELECTION_FIELDS(workload_request)};
enum { COMMON_FIELD_COUNT = sizeof common_fields / sizeof *common_fields };

/* Returns the first workload of rl_workloads whose job_kind is this kind. */
static const rl_workload *find_workload_of_kind(const char *kind) {
  const rl_workload *const *workload = rl_workloads;
  while (strcmp((*workload)->job_kind, kind) != 0) workload++;
  return *workload;
}

/* Returns the field of the workload's multi_value_parameter. */
static const rl_field *find_multi_value_parameter(const rl_workload *workload) {
  const rl_field *field = workload->fields;
  while (strcmp(field->name, workload->multi_value_parameter->field) != 0) field++;
  return field;
}

static bool has_name(const char *const *names, const char *name) {
  while (*names != NULL && strcmp(*names, name) != 0) names++;
  return *names != NULL;
}

/* Lists "auto" and the names of the workload's engines. A name that the CPU and GPUs have in common is listed once. */
static void list_engines(const rl_workload *workload, const char *names[RL_REQUEST_ENGINES_MAX]) {
  int count = 0;
  memset(names, 0, sizeof *names * RL_REQUEST_ENGINES_MAX);
  names[count++] = "auto";
  for (const rl_engine_description *const *engine = workload->engines; *engine != NULL && count < RL_REQUEST_ENGINES_MAX - 1;
       engine++)
    if (!has_name(names, (*engine)->name)) names[count++] = (*engine)->name;
}

/* Returns the request's field for a list of values of the multi_value_parameter, which replaces the field of a single value. */
static rl_field make_values_field(const rl_workload *workload) {
  return (rl_field){.name = workload->multi_value_parameter->request_key,
                    .type = RL_FIELD_CHOICES,
                    .offset = offsetof(workload_request, requested_values),
                    .size = sizeof(uint32_t),
                    .names = find_multi_value_parameter(workload)->names,
                    .summary = workload->multi_value_parameter->summary};
}

static rl_field make_parameter_field(const rl_field *parameter, const char *const *engines) {
  rl_field field = *parameter;
  field.offset += offsetof(workload_request, params);
  if (strcmp(field.name, "engine") == 0) field.names = engines;
  return field;
}

static rl_field make_kind_field(const char *kind, rl_request_fields *storage) {
  storage->kinds[0] = kind;
  storage->kinds[1] = NULL;
  return (rl_field)RL_FIELD(workload_request, kind, RL_FIELD_CHOICE, .names = storage->kinds, .required = true,
                            .summary = "kind of the job");
}

const rl_field *rl_spec_workload_make_fields(const char *kind, rl_request_fields *storage) {
  const rl_workload *workload = find_workload_of_kind(kind);
  const rl_field *multi_value_field = find_multi_value_parameter(workload);
  rl_field *next = storage->fields, *const end = next + RL_REQUEST_FIELDS_MAX - COMMON_FIELD_COUNT - 1;
  list_engines(workload, storage->engines);
  *next++ = make_kind_field(workload->job_kind, storage);
  *next++ = make_values_field(workload);
  for (const rl_field *field = workload->fields; field->name != NULL && next < end; field++)
    if (field != multi_value_field) *next++ = make_parameter_field(field, storage->engines);
  memcpy(next, common_fields, sizeof common_fields);
  next[COMMON_FIELD_COUNT] = (rl_field){0};
  return storage->fields;
}

/* Sets spec->device to "cpu" if the request names no device and the requested engine exists only on the CPU. */
static void choose_device(const rl_workload *workload, const workload_request *request, rl_job_spec *spec) {
  const char *name = rl_workload_engine_name(workload, request->params);
  bool on_cpu = false, on_gpu = false;
  for (const rl_engine_description *const *engine = workload->engines; *engine != NULL; engine++) {
    if (strcmp((*engine)->name, name) != 0) continue;
    on_cpu |= (*engine)->device == RL_DEVICE_CPU;
    on_gpu |= (*engine)->device == RL_DEVICE_CUDA;
  }
  if (spec->device[0] == '\0' && on_cpu && !on_gpu) snprintf(spec->device, sizeof spec->device, "cpu");
}

static int add_runs(const rl_workload *workload, workload_request *request, rl_job_spec *spec, rl_error *err) {
  const rl_field *multi_value_field = find_multi_value_parameter(workload);
  for (int value = 0; multi_value_field->names[value] != NULL; value++) {
    if ((request->requested_values & 1u << value) == 0) continue;
    memcpy(request->params + multi_value_field->offset, &value, sizeof value);
    if (rl_spec_add_run(workload, multi_value_field->names[value], request->params, spec, err) < 0) return -1;
  }
  return 0;
}

int rl_spec_workload_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  const rl_workload *workload = find_workload_of_kind(spec->kind);
  workload_request request = {.requested_values = workload->multi_value_parameter->default_value_mask,
                              .common = RL_SPEC_COMMON_DEFAULTS};
  rl_request_fields storage;
  const rl_field *fields = rl_spec_workload_make_fields(spec->kind, &storage);
  if (workload->params_size > sizeof request.params)
    return rl_fail(err, RL_ERRNO, 0, "the parameters of %s take %zu bytes, more than MAX_PARAMS_BYTES (%d)", workload->name,
                   workload->params_size, MAX_PARAMS_BYTES);
  workload->defaults(request.params);
  if (rl_fields_decode(fields, object, "", &request, sizeof request, err) < 0 ||
      rl_spec_apply_common(&request.common, spec, err) < 0 || add_runs(workload, &request, spec, err) < 0)
    return -1;
  choose_device(workload, &request, spec);
  if (spec->device[0] != '\0' && rl_spec_workload_restrict_to_device(spec, "", err) < 0) return -1;
  return rl_spec_write_request(fields, &request, spec, err);
}

static bool contains_line(const char *lines, const char *text) {
  size_t length = strlen(text);
  for (const char *line = lines; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
    if (strncmp(line, text, length) == 0 && (line[length] == '\n' || line[length] == '\0')) return true;
  return false;
}

static int check_params_on_device(const rl_workload *workload, const rl_job_spec *spec, const char *unsupported_engines,
                                  const void *params, rl_error *err) {
  const char *engine = rl_workload_engine_name(workload, params);
  if (rl_workload_supports(workload, rl_spec_device_kind(spec->device), params, err) < 0) return -1;
  if (!contains_line(unsupported_engines, engine)) return 0;
  return rl_fail_at(err, "/engine", "%s cannot run engine %s; use \"auto\"", spec->device, engine);
}

static int check_run_on_device(const rl_workload *workload, const rl_job_spec *spec, int run, const char *unsupported_engines,
                               rl_error *err) {
  alignas(max_align_t) unsigned char params[MAX_PARAMS_BYTES];
  const char *text = spec->runs[run].params;
  rl_error device_error = {0};
  workload->defaults(params);
  if (rl_fields_parse(workload->fields, text, strlen(text), params, workload->params_size, err) < 0) return -1;
  if (check_params_on_device(workload, spec, unsupported_engines, params, &device_error) == 0) return 0;
  if (strcmp(device_error.json_pointer + 1, workload->multi_value_parameter->field) == 0)
    snprintf(device_error.json_pointer, sizeof device_error.json_pointer, "/%s", workload->multi_value_parameter->request_key);
  if (err != NULL) *err = device_error;
  return -1;
}

/* Returns whether runs that the device does not support may be removed. They may if the workload's default stands for "every
 * value that the device supports", and the request selects exactly the default values. */
static bool may_remove_unsupported_runs(const rl_workload *workload, const rl_job_spec *spec) {
  const rl_field *multi_value_field = find_multi_value_parameter(workload);
  uint32_t values = 0;
  for (int value = 0; multi_value_field->names[value] != NULL; value++)
    for (int run = 0; run < spec->run_count; run++)
      if (strcmp(multi_value_field->names[value], spec->runs[run].variant) == 0) values |= 1u << value;
  return workload->multi_value_parameter->default_skips_unsupported_values &&
         values == workload->multi_value_parameter->default_value_mask;
}

int rl_spec_workload_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err) {
  const rl_workload *workload = find_workload_of_kind(spec->kind);
  const bool skips = may_remove_unsupported_runs(workload, spec);
  int kept_count = 0;
  for (int run = 0; run < spec->run_count; run++) {
    if (check_run_on_device(workload, spec, run, unsupported_engines, err) >= 0) spec->runs[kept_count++] = spec->runs[run];
    else if (!skips) return -1;
  }
  spec->run_count = kept_count;
  return kept_count > 0 ? 0 : -1;
}
