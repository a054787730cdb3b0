/* Makes jobs of the kind "import": jobs with one run, which imports the trace in an uploaded file. */
#include <stdio.h>
#include <string.h>

#include "model/imported_trace.h"
#include "request/spec.h"
#include "request/spec_internal.h"

typedef struct import_request {
  int kind;
  char file_name[RL_FILE_NAME_SIZE];
  int format;
  int64_t bytes;
  char sha256[RL_SHA256_SIZE];
  int64_t deadline_s;
} import_request;

static const char *const kind_names[] = {RL_IMPORT_KIND, NULL};

const rl_field rl_spec_import_fields[] = {
    RL_FIELD(import_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "kind of the job"),
    RL_FIELD(import_request, file_name, RL_FIELD_TEXT, .summary = "name of the uploaded file; empty: unknown"),
    RL_FIELD(import_request, format, RL_FIELD_CHOICE, .names = rl_trace_format_names, .summary = "format of the trace"),
    RL_FIELD(import_request, bytes, RL_FIELD_INT, .minimum = 0, .maximum = 9e15, .summary = "size of the file"),
    RL_FIELD(import_request, sha256, RL_FIELD_SHA256, .summary = "SHA-256 of the file"),
    RL_FIELD(import_request, deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800,
             .summary = "seconds from the job's start to its end; default 0: the daemon's job_deadline_s"),
    {0}};

int rl_spec_refuse_import(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  (void)object, (void)spec;
  return rl_fail_at(err, "/kind", "a trace is imported by POST /imports, with the file as its body");
}

/* Adds the run. nondefault_params contains only the hash of the file, so that two imports of equal files count as repetitions of
 * each other. */
static int add_run(const rl_imported_trace_params *params, rl_job_spec *spec, rl_error *err) {
  rl_run_spec *run = &spec->runs[spec->run_count++];
  snprintf(run->workload, sizeof run->workload, "%s", RL_IMPORT_WORKLOAD);
  snprintf(run->variant, sizeof run->variant, "%s", rl_trace_format_names[params->format]);
  snprintf(run->nondefault_params, sizeof run->nondefault_params, "{\"sha256\":\"%s\"}", params->sha256);
  return rl_spec_move_text(rl_fields_print(rl_imported_trace_fields, params), run->params, sizeof run->params, err);
}

int rl_job_spec_make_import(const rl_imported_trace_params *params, int64_t time_limit_s, rl_job_spec *spec, rl_error *err) {
  rl_job_spec new_spec = {
      .kind = RL_IMPORT_KIND,
      .device = RL_IMPORT_DEVICE,
      .passes = (1u << RL_PASS_COUNT) - 1, /* all; a pass whose results the trace lacks becomes unavailable, with the reason */
      .time_limit_s = time_limit_s};
  import_request request = {.format = params->format, .bytes = params->bytes, .deadline_s = time_limit_s};
  memcpy(request.file_name, params->file_name, sizeof request.file_name);
  memcpy(request.sha256, params->sha256, sizeof request.sha256);
  if (add_run(params, &new_spec, err) < 0 || rl_spec_write_request(rl_spec_import_fields, &request, &new_spec, err) < 0)
    return -1;
  *spec = new_spec;
  return 0;
}
