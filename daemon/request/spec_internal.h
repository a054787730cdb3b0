/* Private to daemon/request: the fields that all kinds of jobs share, how a kind fills in its spec, and the functions of each
 * kind for the table in spec.c. */
#ifndef RL_REQUEST_SPEC_INTERNAL_H
#define RL_REQUEST_SPEC_INTERNAL_H

#include "model/catalogue.h"
#include "request/job_kind.h"
#include "workload.h"

/* Part of every kind's request. */
typedef struct rl_spec_common {
  char device[16];
  uint32_t passes; /* bit i: rl_pass i */
  int64_t deadline_s;
  int set;            /* index into rl_profile_set_names; like profile, a field only of kinds whose runs can be profiled */
  rl_profile profile; /* collected in addition to the set */
} rl_spec_common;
#define RL_SPEC_COMMON_DEFAULTS                                \
  {                                                            \
    .passes = 1u << RL_PASS_TIMING, .profile = {.launch = -1 } \
  }

/* The field NAME at the member PATH of rl_spec_common, which STRUCT has as its member `common`. */
#define RL_SPEC_FIELD(STRUCT, NAME, PATH, TYPE, ...)                                                                   \
  {                                                                                                                    \
    .name = NAME, .type = (TYPE), .offset = offsetof(STRUCT, common.PATH), .size = sizeof(((STRUCT *)0)->common.PATH), \
    __VA_ARGS__                                                                                                        \
  }
#define RL_SPEC_COMMON_FIELDS(STRUCT)                                                                \
  RL_SPEC_FIELD(STRUCT, "device", device, RL_FIELD_TEXT,                                             \
                .summary = "an id from /devices; default: the first usable GPU, else the CPU"),      \
      RL_SPEC_FIELD(STRUCT, "passes", passes, RL_FIELD_CHOICES, .names = rl_pass_names,              \
                    .summary = "passes under which each run is measured; default timing"),           \
      RL_SPEC_FIELD(STRUCT, "deadline_s", deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800, \
                    .summary = "seconds from the job's start to its end; default 0: the daemon's job_deadline_s")
/* For kinds whose runs can be profiled. */
#define RL_SPEC_PROFILE_FIELDS(STRUCT)                                                                                       \
  RL_SPEC_FIELD(STRUCT, "set", set, RL_FIELD_CHOICE, .names = rl_profile_set_names,                                          \
                .summary =                                                                                                   \
                    "sections of the report to collect, as in Nsight Compute; adds the counters pass; "                      \
                    "default auto: basic if the counters pass is requested without sections and metrics"),                   \
      RL_SPEC_FIELD(STRUCT, "sections", profile.sections, RL_FIELD_CHOICES, .names = rl_section_names, .may_be_empty = true, \
                    .summary = "further sections; adds the counters pass"),                                                  \
      RL_SPEC_FIELD(STRUCT, "metrics", profile.metrics, RL_FIELD_NAMES,                                                      \
                    .summary = "further metrics by their raw names; adds the counters pass")
/* For kinds whose step has several kernels. */
#define RL_SPEC_SELECTION_FIELDS(STRUCT)                                                                             \
  RL_SPEC_FIELD(STRUCT, "kernels", profile.kernels, RL_FIELD_TEXT,                                                   \
                .summary =                                                                                           \
                    "kernels of the step that the counters pass measures: a pattern with *, ? and [] for the names " \
                    "of kernels and launches; adds the counters pass; default: all"),                                \
      RL_SPEC_FIELD(STRUCT, "launch", profile.launch, RL_FIELD_INT, .minimum = -1, .maximum = 1000000,               \
                    .summary =                                                                                       \
                        "index of one of these kernels in the order of the step, from 0; adds the counters "         \
                        "pass; default -1: all")

/* RL_DEVICE_CPU for "cpu", else RL_DEVICE_CUDA. */
rl_device_kind rl_spec_device_kind(const char *device);

/* Fills in the spec's device, passes, deadline and profile. A request for a profile adds the counters pass, also to *common. The
 * counters pass without such a request gets the usual profile. */
int rl_spec_apply_common(rl_spec_common *common, rl_job_spec *spec, rl_error *err);
/* Prints the request, with every default filled in, into the spec. */
int rl_spec_write_request(const rl_field *fields, const void *request, rl_job_spec *spec, rl_error *err);
/* Copies text, which is malloc'ed, into out[size] and frees it. -1 where text is NULL (memory was out) or too long. */
int rl_spec_move_text(char *text, char *out, size_t size, rl_error *err);
/* Appends a run with these parameters to the spec. */
int rl_spec_add_run(const rl_workload *workload, const char *variant, const void *params, rl_job_spec *spec, rl_error *err);

/* rl_job_kind.make_fields, .expand and .fit of each kind. */
const rl_field *rl_spec_train_make_fields(rl_request_fields *storage);
int rl_spec_train_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_train_fit(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);

extern const rl_field rl_spec_kernel_fields[], rl_spec_sequence_fields[], rl_spec_ceilings_fields[], rl_spec_source_fields[];
int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_kernel_fit(rl_job_spec *spec, const char *unsupported_engines, rl_error *err);
int rl_spec_sequence_expand(const cJSON *object, rl_job_spec *spec, rl_error *err); /* a kernel job with "kernels" */
/* -1 with RL_INPUT at /kernels/N/variant where the CPU does not have the variant. */
int rl_spec_sequence_check_for_cpu(const rl_run_spec *run, rl_error *err);
int rl_spec_ceilings_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_source_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

#endif
