/* Expands requests of the job kind "source" into one run for each variant of a posted kernel. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "request/spec_internal.h"
#include "source/source.h"

typedef struct source_job_request {
  rl_source_request program; /* must be the first member, because RL_SOURCE_FIELDS has offsets in rl_source_request */
  int kind;
  char source[RL_SHA256_SIZE]; /* SHA-256 of the program's JSON text; the field's name in the API is "source" */
  int64_t samples;
  rl_spec_common common;
} source_job_request;
_Static_assert(offsetof(source_job_request, program) == 0, "RL_SOURCE_FIELDS has offsets in rl_source_request");

static const char *const kind_names[] = {"source", NULL};

#define KIND_FIELD \
  RL_FIELD(source_job_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "kind of the job")
#define SAMPLES_FIELD                                                                \
  RL_FIELD(source_job_request, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000, \
           .summary = "number of launches that are timed with a cold cache, and again with a warm cache; default 20")

const rl_field rl_spec_source_fields[] = {KIND_FIELD,
                                          RL_SOURCE_FIELDS,
                                          SAMPLES_FIELD,
                                          RL_SPEC_PROFILE_FIELDS(source_job_request),
                                          RL_SPEC_COMMON_FIELDS(source_job_request),
                                          {0}};

/* Fields of spec->request, the request as it is stored with the job. The posted program is stored separately, as
 * spec->source_json; spec->request contains only the SHA-256 of source_json (field "source"), the entry and the launch
 * configuration. */
static const rl_field stored_fields[] = {KIND_FIELD,
                                         RL_FIELD(source_job_request, source, RL_FIELD_TEXT),
                                         RL_FIELD(rl_source_request, entry, RL_FIELD_TEXT),
                                         RL_FIELD(rl_source_request, grid, RL_FIELD_INTS),
                                         RL_FIELD(rl_source_request, block, RL_FIELD_INTS),
                                         RL_FIELD(rl_source_request, cluster, RL_FIELD_INTS),
                                         RL_FIELD(rl_source_request, cooperative, RL_FIELD_BOOL),
                                         RL_FIELD(rl_source_request, dynamic_shared_bytes, RL_FIELD_INT),
                                         SAMPLES_FIELD,
                                         RL_SPEC_PROFILE_FIELDS(source_job_request),
                                         RL_SPEC_COMMON_FIELDS(source_job_request),
                                         {0}};

static int write_source_json(const rl_source_request *program, rl_job_spec *spec, rl_error *err) {
  spec->source_json = rl_fields_print(rl_source_fields, program);
  if (spec->source_json == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a job");
  if (strlen(spec->source_json) > RL_SOURCE_TEXT_MAX)
    return rl_fail_at(err, "", "the posted program takes more than %d bytes as JSON: shorten code, arguments, or expected values",
                      RL_SOURCE_TEXT_MAX);
  rl_sha256(spec->source_json, strlen(spec->source_json), spec->source_sha256);
  return 0;
}

static int add_runs(const source_job_request *request, const rl_source *source, rl_job_spec *spec, rl_error *err) {
  const void *code = source->binary != NULL ? (const void *)source->binary : source->request.code;
  rl_source_params params;
  rl_source_workload.defaults(&params);
  rl_sha256(code, source->binary != NULL ? source->binary_size : strlen(source->request.code), params.code_sha256);
  memcpy(params.source_sha256, spec->source_sha256, sizeof params.source_sha256);
  params.samples = request->samples;
  params.model = source->model;
  for (int i = 0; i < source->variant_count; i++) {
    params.variant_index = i;
    snprintf(params.variant, sizeof params.variant, "%s", source->variants[i].name);
    if (rl_spec_add_run(&rl_source_workload, params.variant, &params, spec, err) < 0) return -1;
  }
  return 0;
}

int rl_spec_source_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  source_job_request request = {.program = rl_source_request_defaults, .samples = 20, .common = RL_SPEC_COMMON_DEFAULTS};
  RL_CLEANUP(rl_source_clear) rl_source source = {0};
  if (rl_fields_decode(rl_spec_source_fields, object, "", &request, sizeof request, err) < 0 ||
      rl_source_check(&request.program, &source, err) < 0 || write_source_json(&request.program, spec, err) < 0 ||
      rl_spec_apply_common(&request.common, spec, err) < 0)
    return -1;
  if (strcmp(request.common.device, "cpu") == 0)
    return rl_fail_at(err, "/device", "posted code needs a GPU; the device is %s", request.common.device);
  memcpy(request.source, spec->source_sha256, sizeof request.source);
  spec->needs_gpu = true;
  spec->buffer_bytes = source.buffer_bytes;
  if (add_runs(&request, &source, spec, err) < 0) return -1;
  return rl_spec_write_request(stored_fields, &request, spec, err);
}
