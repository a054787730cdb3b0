/* Expands requests of the job kind "kernel" with the field "kernels" into one run, which launches several kernels in order. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_members.h"
#include "kernel/sequence.h"
#include "request/spec_internal.h"

typedef struct sequence_request {
  int kind;
  const cJSON *kernels;
  int64_t samples, pause_ms, seed;
  rl_spec_common common;
} sequence_request;

static const char *const kind_names[] = {"kernel", NULL};

const rl_field rl_spec_sequence_fields[] = {
    RL_FIELD(sequence_request, kind, RL_FIELD_CHOICE, .names = kind_names, .required = true, .summary = "kind of the job"),
    RL_FIELD(sequence_request, kernels, RL_FIELD_ARRAY, .required = true, .maximum = RL_KERNEL_SEQUENCE_MAX_MEMBERS,
             .fields = rl_kernel_sequence_member_fields, .summary = "launches in order, each with its own buffers"),
    RL_FIELD(
        sequence_request, samples, RL_FIELD_INT, .minimum = 1, .maximum = 1000,
        .summary =
            "number of times that all launches together are timed with a cold cache, and again with a warm cache; default 20"),
    RL_PAUSE_FIELD(sequence_request),
    RL_FIELD(sequence_request, seed, RL_FIELD_INT, .minimum = 0, .maximum = 9007199254740991.0,
             .summary = "seed of the inputs; default 1"),
    RL_SPEC_COMMON_FIELDS(sequence_request),
    RL_SPEC_PROFILE_FIELDS(sequence_request),
    {0}};

static const sequence_request defaults = {.samples = 20, .seed = 1, .common = RL_SPEC_COMMON_DEFAULTS};

static int add_run(const sequence_request *request, rl_job_spec *spec, rl_error *err) {
  rl_kernel_sequence_params params = {.samples = request->samples, .pause_ms = request->pause_ms, .seed = request->seed};
  if (!cJSON_PrintPreallocated((cJSON *)request->kernels, params.kernels, sizeof params.kernels, false))
    return rl_fail_at(err, "/kernels", "with all defaults filled in, the JSON text of the kernels must be shorter than %d bytes",
                      RL_KERNEL_SEQUENCE_TEXT_SIZE - 5);
  return rl_spec_add_run(&rl_kernel_sequence, rl_kernel_sequence.name, &params, spec, err);
}

/* Returns the array of the requested kernels with all defaults filled in, which the caller deletes; NULL with err on failure. */
static cJSON *complete_kernels(const sequence_request *request, rl_error *err) {
  rl_kernel_params members[RL_KERNEL_SEQUENCE_MAX_MEMBERS];
  size_t count;
  if (rl_kernel_sequence_decode(request->kernels, request->seed, members, &count, err) < 0) return NULL;
  cJSON *kernels = rl_kernel_sequence_encode(members, count);
  if (kernels == NULL) rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a job");
  return kernels;
}

int rl_spec_sequence_expand(const cJSON *object, rl_job_spec *spec, rl_error *err) {
  sequence_request request = defaults;
  if (rl_fields_decode(rl_spec_sequence_fields, object, "", &request, sizeof request, err) < 0) return -1;
  RL_CLEANUP(rl_json_cleanup) cJSON *kernels = complete_kernels(&request, err);
  if (kernels == NULL) return -1;
  request.kernels = kernels;
  if (rl_spec_apply_common(&request.common, spec, err) < 0 || add_run(&request, spec, err) < 0) return -1;
  return rl_spec_write_request(rl_spec_sequence_fields, &request, spec, err);
}

int rl_spec_sequence_check_device(const rl_run_spec *run, rl_device_kind kind, rl_error *err) {
  rl_kernel_sequence_params params;
  rl_kernel_sequence.defaults(&params);
  if (rl_fields_parse(rl_kernel_sequence_fields, run->params, strlen(run->params), &params, sizeof params, err) < 0) return -1;
  return rl_kernel_sequence_check(&params, kind, err);
}
