/* Implements spec.h, defines the table of job kinds, and implements the functions that the kinds share (spec_internal.h). */
#include "request/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/named_paths.h"
#include "model/imported_trace.h"
#include "request/nondefault.h"
#include "request/spec_internal.h"

/* --- shared by all kinds ----------------------------------------------------------------------------------------------- */

rl_device_kind rl_spec_device_kind(const char *device) { return strcmp(device, "cpu") == 0 ? RL_DEVICE_CPU : RL_DEVICE_CUDA; }

int rl_spec_move_text(char *text, char *out, size_t size, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *owned = text;
  if (owned == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a job");
  if ((size_t)snprintf(out, size, "%s", owned) >= size)
    return rl_fail_at(
        err, "",
        "with all defaults filled in, the JSON text of the request, or of a part of it, is longer than %zu bytes: shorten it",
        size - 1);
  return 0;
}

int rl_spec_write_request(const rl_field *fields, const void *request, rl_job_spec *spec, rl_error *err) {
  return rl_spec_move_text(rl_fields_print(fields, request), spec->request, sizeof spec->request, err);
}

int rl_spec_add_run(const rl_workload *workload, const char *variant, const void *params, rl_job_spec *spec, rl_error *err) {
  if (spec->run_count == RL_RUNS_MAX) return rl_fail_at(err, "", "the job has more than %d runs", RL_RUNS_MAX);
  rl_run_spec *run = &spec->runs[spec->run_count++];
  snprintf(run->workload, sizeof run->workload, "%s", workload->name);
  snprintf(run->variant, sizeof run->variant, "%s", variant);
  char *nondefault_params = rl_nondefault_params(workload, params);
  if (rl_spec_move_text(nondefault_params, run->nondefault_params, sizeof run->nondefault_params, err) < 0) return -1;
  return rl_spec_move_text(rl_fields_print(workload->fields, params), run->params, sizeof run->params, err);
}

static bool requests_counters(const rl_spec_common *common) {
  const rl_profile_options *profile_options = &common->profile_options;
  return common->set != RL_PROFILE_SET_AUTO || profile_options->sections != 0 || profile_options->metrics[0] != '\0' ||
         profile_options->kernel_pattern[0] != '\0' || profile_options->matching_index >= 0 ||
         profile_options->cache != RL_L2_FULL;
}

int rl_spec_apply_common(rl_spec_common *common, rl_job_spec *spec, rl_error *err) {
  if (requests_counters(common)) common->passes |= 1u << RL_PASS_COUNTERS;
  snprintf(spec->device, sizeof spec->device, "%s", common->device);
  spec->passes = common->passes;
  spec->time_limit_s = common->deadline_s;
  snprintf(spec->worker_build, sizeof spec->worker_build, "%s", common->worker_build);
  if ((common->passes & 1u << RL_PASS_COUNTERS) == 0) return 0;
  rl_profile_options profile_options = rl_profile_options_resolve(common->set, &common->profile_options);
  return rl_spec_move_text(rl_fields_print(rl_profile_options_fields, &profile_options), spec->profile, sizeof spec->profile,
                           err);
}

/* --- the kinds of jobs ------------------------------------------------------------------------------------------------- */

const rl_job_kind rl_job_kinds[] = {{.name = "train",
                                     .summary = "train the MNIST CNN in one or more precisions and compare them",
                                     .make_fields = rl_spec_workload_make_fields,
                                     .expand = rl_spec_workload_expand,
                                     .restrict_to_device = rl_spec_workload_restrict_to_device},
                                    {.name = "kernel",
                                     .summary = "time one kernel in each of its variants and check its result",
                                     .fields = rl_spec_kernel_fields,
                                     .expand = rl_spec_kernel_expand,
                                     .restrict_to_device = rl_spec_kernel_restrict_to_device},
                                    {.name = "layer",
                                     .summary = "time a transformer layer in each of its variants and check its result",
                                     .make_fields = rl_spec_workload_make_fields,
                                     .expand = rl_spec_workload_expand,
                                     .restrict_to_device = rl_spec_workload_restrict_to_device},
                                    {.name = "ceilings",
                                     .summary = "measure the highest bandwidths and arithmetic rates that the device reaches",
                                     .fields = rl_spec_ceilings_fields,
                                     .expand = rl_spec_ceilings_expand},
                                    {.name = "source",
                                     .summary = "time a posted kernel in each of its variants and check its result",
                                     .fields = rl_spec_source_fields,
                                     .expand = rl_spec_source_expand,
                                     .runs_posted_code = true},
                                    {.name = RL_IMPORT_KIND,
                                     .summary = "import a trace that another profiler recorded; POST /imports submits it",
                                     .fields = rl_spec_import_fields,
                                     .expand = rl_spec_refuse_import},
                                    {0}};

const rl_field *rl_job_kind_fields(const rl_job_kind *kind, rl_request_fields *storage) {
  return kind->fields != NULL ? kind->fields : kind->make_fields(kind->name, storage);
}

static const rl_job_kind *find_kind(const char *name) {
  for (const rl_job_kind *kind = rl_job_kinds; kind->name != NULL; kind++)
    if (strcmp(kind->name, name) == 0) return kind;
  return NULL;
}

static int fail_unknown_kind(rl_error *err) {
  rl_fail_at(err, "/kind", "kind must be one of:");
  for (const rl_job_kind *kind = rl_job_kinds; err != NULL && kind->name != NULL; kind++) {
    size_t used = strlen(err->message);
    if (kind->expand == rl_spec_refuse_import) continue; /* POST /imports submits it */
    snprintf(err->message + used, sizeof err->message - used, "%s %s", kind == rl_job_kinds ? "" : ",", kind->name);
  }
  return -1;
}

static int check_posting_is_allowed(const rl_job_policy *policy, rl_error *err) {
  if (policy->posting == RL_POSTING_OFF)
    return rl_fail(err, RL_HTTP, 403,
                   "This daemon does not run posted code; its administrator can allow it with allow_source = true.");
  if (policy->posting == RL_POSTING_NEEDS_TOKEN)
    return rl_fail(err, RL_HTTP, 401,
                   "Posted code needs a token: send one from `rooflinectl token` as `Authorization: Bearer TOKEN`.");
  return 0;
}

static int check_worker_build(const rl_job_spec *spec, const rl_job_policy *policy, rl_error *err) {
  char path[1024];
  if (spec->worker_build[0] == '\0' || policy->builds == NULL ||
      rl_named_paths_find(policy->builds, spec->worker_build, path, sizeof path))
    return 0;
  return rl_fail_at(err, "/worker_build", "the setting `builds` has no build named %s", spec->worker_build);
}

static int expand_kind(const rl_job_kind *kind, const cJSON *object, const rl_job_policy *policy, rl_job_spec *spec,
                       rl_error *err) {
  snprintf(spec->kind, sizeof spec->kind, "%s", kind->name);
  if ((kind->runs_posted_code && check_posting_is_allowed(policy, err) < 0) || kind->expand(object, spec, err) < 0 ||
      rl_spec_check_name(object, err) < 0 || check_worker_build(spec, policy, err) < 0)
    return -1;
  if (spec->buffer_bytes > policy->source_buffer_bytes)
    return rl_fail_at(err, "/arguments", "the buffers take %lld bytes in total; this daemon allows %lld (source_buffer_bytes)",
                      (long long)spec->buffer_bytes, (long long)policy->source_buffer_bytes);
  return 0;
}

static int expand(const cJSON *object, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err) {
  if (!cJSON_IsObject(object)) return rl_fail_at(err, "", "must be a JSON object");
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(object, "kind");
  if (name == NULL) return rl_fail_at(err, "/kind", "kind is required");
  const rl_job_kind *kind = cJSON_IsString(name) ? find_kind(name->valuestring) : NULL;
  return kind != NULL ? expand_kind(kind, object, policy, spec, err) : fail_unknown_kind(err);
}

int rl_job_spec_parse(const char *text, size_t length, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err) {
  cJSON *object = rl_json_parse(text, length, err);
  if (object == NULL) return -1;
  rl_job_spec expanded = {0};
  int rc = expand(object, policy, &expanded, err);
  cJSON_Delete(object);
  if (rc < 0) rl_job_spec_clear(&expanded);
  else *spec = expanded;
  return rc;
}

int rl_job_spec_restrict_to_device(rl_job_spec *spec, const char *unsupported_engines, rl_error *err) {
  const rl_job_kind *kind = find_kind(spec->kind);
  return kind != NULL && kind->restrict_to_device != NULL ? kind->restrict_to_device(spec, unsupported_engines, err) : 0;
}
