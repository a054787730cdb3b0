/* The kinds of jobs that have a file of their own, for the table in spec.c, and what they share with it. */
#ifndef RL_REQUEST_SPEC_KINDS_H
#define RL_REQUEST_SPEC_KINDS_H

#include "model/catalogue.h"
#include "request/spec.h"
#include "workload.h"

/* What every kind's request has. */
typedef struct rl_spec_common {
  char device[16];
  uint32_t passes; /* bit i: rl_pass i */
  int64_t deadline_s;
  int set;            /* rl_set: of a kind whose runs can be profiled, as is profile */
  rl_profile profile; /* beside the set */
} rl_spec_common;
#define RL_SPEC_COMMON_DEFAULTS                                \
  {                                                            \
    .passes = 1u << RL_PASS_TIMING, .profile = {.launch = -1 } \
  }

/* A row of something inside rl_spec_common, which STRUCT has as its member `common`. */
#define RL_SPEC_FIELD(STRUCT, NAME, PATH, TYPE, ...)                                                                   \
  {                                                                                                                    \
    .name = NAME, .type = (TYPE), .offset = offsetof(STRUCT, common.PATH), .size = sizeof(((STRUCT *)0)->common.PATH), \
    __VA_ARGS__                                                                                                        \
  }
#define RL_SPEC_COMMON_FIELDS(STRUCT)                                                                \
  RL_SPEC_FIELD(STRUCT, "device", device, RL_FIELD_TEXT,                                             \
                .summary = "an id from /devices; default: the first usable GPU, else the CPU"),      \
      RL_SPEC_FIELD(STRUCT, "passes", passes, RL_FIELD_CHOICES, .names = rl_pass_names,              \
                    .summary = "ways of looking at each run; default timing"),                       \
      RL_SPEC_FIELD(STRUCT, "deadline_s", deadline_s, RL_FIELD_INT, .minimum = 0, .maximum = 604800, \
                    .summary = "of the whole job, from its start; default 0: the daemon's job_deadline_s")
/* Of a kind whose runs can be profiled. */
#define RL_SPEC_PROFILE_FIELDS(STRUCT)                                                                                       \
  RL_SPEC_FIELD(STRUCT, "set", set, RL_FIELD_CHOICE, .names = rl_profile_set_names,                                          \
                .summary =                                                                                                   \
                    "sections of the report to collect, as of Nsight Compute; adds the counters pass; "                      \
                    "default auto: basic where the counters pass is asked for, and neither sections nor "                    \
                    "metrics are"),                                                                                          \
      RL_SPEC_FIELD(STRUCT, "sections", profile.sections, RL_FIELD_CHOICES, .names = rl_section_names, .may_be_empty = true, \
                    .summary = "further sections; adds the counters pass"),                                                  \
      RL_SPEC_FIELD(STRUCT, "metrics", profile.metrics, RL_FIELD_NAMES,                                                      \
                    .summary = "further metrics by their raw names; adds the counters pass")
/* Of a kind whose step has several kernels. */
#define RL_SPEC_SELECTION_FIELDS(STRUCT)                                                                         \
  RL_SPEC_FIELD(STRUCT, "kernels", profile.kernels, RL_FIELD_TEXT,                                               \
                .summary =                                                                                       \
                    "which kernels of the step the counters pass looks at: a pattern of *, ? and [] over names " \
                    "of kernels and of launches; adds the counters pass; default: every one"),                   \
      RL_SPEC_FIELD(STRUCT, "launch", profile.launch, RL_FIELD_INT, .minimum = -1, .maximum = 1000000,           \
                    .summary = "which of these in the order of the step, from 0; adds the counters pass; default -1: all")

/* Fill in the spec's device, passes, deadline and profile: what was asked of a profile adds the counters pass, in *common too;
 * with that pass and nothing asked for the profile is the usual one. */
int rl_spec_take_common(rl_spec_common *common, rl_job_spec *spec, rl_error *err);
/* The request as its fields print it, with every default filled in. */
int rl_spec_keep_request(const rl_field *fields, const void *request, rl_job_spec *spec, rl_error *err);
/* Put malloc'ed text into a buffer of the spec and free it; NULL says that memory was out. */
int rl_spec_keep_text(char *text, char *out, size_t size, rl_error *err);
/* The spec's next run, with its parameters as their fields print them. */
int rl_spec_add_run(const rl_workload *workload, const char *variant, const void *params, rl_job_spec *spec, rl_error *err);

extern const rl_field rl_spec_train_fields[];
int rl_spec_train_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

extern const rl_field rl_spec_kernel_fields[], rl_spec_sequence_fields[], rl_spec_ceilings_fields[];
int rl_spec_kernel_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);
int rl_spec_sequence_expand(const cJSON *object, rl_job_spec *spec, rl_error *err); /* of a kernel job with "kernels" */
int rl_spec_sequence_check_for_cpu(const rl_run_spec *run, rl_error *err);          /* RL_INPUT where a variant is a GPU's */
int rl_spec_ceilings_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

extern const rl_field rl_spec_source_fields[];
int rl_spec_source_expand(const cJSON *object, rl_job_spec *spec, rl_error *err);

#endif
